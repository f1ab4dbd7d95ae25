//! Scan along the chain of ranks: each gets the result of the ranks before it, adds its own, and passes it on.

use super::{Algorithm, Call, Phase, Schedule};
use crate::program::CollectiveKind;

pub(super) const ENTRY: Algorithm = Schedule { kind: CollectiveKind::Scan, fits: |_| true, schedule }
    .named("linear", "from rank to rank, n - 1 messages one after another (the chain of textbooks)");

fn schedule(call: &Call, k: u32, phase: &mut Phase) -> bool {
    let (me, bytes) = (call.me(), call.buffer());
    let (takes, passes_on) = (me > 0, me + 1 < call.size);
    match k {
        0 if takes => phase.combine(me - 1, bytes),
        _ if passes_on && k == u32::from(takes) => phase.send(me + 1, bytes),
        _ => return false,
    }
    true
}

#[cfg(test)]
mod tests {
    use super::super::trial::traffic;

    #[test]
    fn every_rank_but_the_last_sends_once() {
        let seen = traffic(&super::ENTRY, 4, 0, 10);
        assert_eq!(seen.sent, [10, 10, 10, 0]);
        assert_eq!(seen.reduced, [0, 10, 10, 10]);
    }
}
