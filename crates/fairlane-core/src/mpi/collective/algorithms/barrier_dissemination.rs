//! Barrier by dissemination: in round `k` every rank signals the one 2^k after it, so after ceil(log2 n) rounds
//! everybody has heard, directly or not, of everybody.

use super::pattern::ceil_log2;
use super::{Algorithm, Call, Phase, Schedule};
use crate::program::CollectiveKind;

pub(super) const ENTRY: Algorithm = Schedule { kind: CollectiveKind::Barrier, fits: |_| true, schedule }
    .named("dissemination", "ceil(log2 n) rounds of signals at doubling distance (Hensgen, Finkel and Manber 1988)");

fn schedule(call: &Call, k: u32, phase: &mut Phase) -> bool {
    if k >= ceil_log2(call.size) {
        return false;
    }
    phase.receive_even_empty(call.before(1 << k));
    phase.send_even_empty(call.after(1 << k), 0);
    true
}

#[cfg(test)]
mod tests {
    use super::super::trial::traffic;

    #[test]
    fn every_rank_sends_one_empty_message_a_round() {
        for (size, rounds) in [(2, 1), (3, 2), (8, 3), (9, 4), (33, 6)] {
            let seen = traffic(&super::ENTRY, size, 0, 0);
            assert_eq!(seen.messages, vec![rounds; size as usize]);
            assert_eq!(seen.sent, vec![0; size as usize]);
        }
    }
}
