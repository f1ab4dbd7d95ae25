//! Barrier at a central rank: everybody signals rank 0, and when all have come it signals everybody.

use super::{Algorithm, Call, Phase, Schedule};
use crate::program::CollectiveKind;

pub(super) const ENTRY: Algorithm = Schedule { kind: CollectiveKind::Barrier, fits: |_| true, schedule }
    .named("linear", "everybody signals rank 0, then rank 0 signals everybody (the central counter of textbooks)");

fn schedule(call: &Call, k: u32, phase: &mut Phase) -> bool {
    match (call.me(), k) {
        (0, 0) => (1..call.size).for_each(|rank| phase.receive_even_empty(rank)),
        (0, 1) => (1..call.size).for_each(|rank| phase.send_even_empty(rank, 0)),
        (_, 0) => phase.send_even_empty(0, 0),
        (_, 1) => phase.receive_even_empty(0),
        _ => return false,
    }
    true
}

#[cfg(test)]
mod tests {
    use super::super::trial::traffic;

    #[test]
    fn rank_0_signals_all_and_the_others_once() {
        let seen = traffic(&super::ENTRY, 5, 0, 0);
        assert_eq!(seen.messages, [4, 1, 1, 1, 1]);
        assert_eq!(seen.phases, [2; 5]);
    }
}
