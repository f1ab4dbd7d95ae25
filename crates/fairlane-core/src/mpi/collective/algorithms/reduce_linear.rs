//! Reduction at the root alone: every other rank sends it the whole buffer.

use super::{Algorithm, Call, Phase, Schedule};
use crate::program::CollectiveKind;

pub(super) const ENTRY: Algorithm = Schedule { kind: CollectiveKind::Reduce, fits: |_| true, schedule }
    .named("linear", "every rank sends the whole buffer to the root, which combines them (the flat tree of textbooks)");

fn schedule(call: &Call, k: u32, phase: &mut Phase) -> bool {
    let bytes = call.buffer();
    if k > 0 {
        return false;
    }
    if call.position() == 0 {
        (1..call.size).for_each(|distance| phase.combine(call.after(distance), bytes));
    } else {
        phase.send(call.root.0, bytes);
    }
    true
}

#[cfg(test)]
mod tests {
    use super::super::trial::traffic;

    #[test]
    fn the_root_combines_everything() {
        let seen = traffic(&super::ENTRY, 5, 3, 100);
        assert_eq!(seen.sent, [100, 100, 100, 0, 100]);
        assert_eq!(seen.reduced, [0, 0, 0, 400, 0]);
    }
}
