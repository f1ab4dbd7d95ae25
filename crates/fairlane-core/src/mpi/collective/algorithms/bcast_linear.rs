//! Broadcast by the root alone: it starts a send to every other rank at once.

use super::{Algorithm, Call, Phase, Schedule};
use crate::program::CollectiveKind;

pub(super) const ENTRY: Algorithm = Schedule { kind: CollectiveKind::Bcast, fits: |_| true, schedule }
    .named("linear", "the root sends the whole buffer to every rank at once (the flat tree of textbooks)");

fn schedule(call: &Call, k: u32, phase: &mut Phase) -> bool {
    let bytes = call.buffer();
    if k > 0 {
        return false;
    }
    if call.position() == 0 {
        (1..call.size).for_each(|distance| phase.send(call.after(distance), bytes));
    } else {
        phase.receive(call.root.0, bytes);
    }
    true
}

#[cfg(test)]
mod tests {
    use super::super::trial::traffic;

    #[test]
    fn only_the_root_sends() {
        let seen = traffic(&super::ENTRY, 5, 3, 100);
        assert_eq!(seen.sent, [0, 0, 0, 400, 0]);
        assert_eq!(seen.received, [100, 100, 100, 0, 100]);
    }
}
