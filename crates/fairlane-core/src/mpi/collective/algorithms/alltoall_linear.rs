//! All-to-all with all messages at once: a rank posts its receives from those after it, then its sends to those before it, and
//! waits for all. Serves alltoallv.

use super::{Algorithm, Call, Phase, Schedule, alltoall_scattered};
use crate::program::CollectiveKind;

pub(super) const ENTRY: Algorithm = Schedule { kind: CollectiveKind::Alltoall, fits: |_| true, schedule }
    .named("linear", "non-blocking messages to all at once (Open MPI's linear, and its linear_sync without a limit)");

fn schedule(call: &Call, k: u32, phase: &mut Phase) -> bool {
    alltoall_scattered::batch(call, k, u32::MAX, phase)
}

#[cfg(test)]
mod tests {
    use super::super::trial::{listed, run, traffic};

    #[test]
    fn every_pair_gets_its_block_once_in_one_phase() {
        for size in [2_u32, 31, 32, 33, 70] {
            let seen = traffic(&super::ENTRY, size, 0, 10);
            assert_eq!(seen.pairs.len() as u32, size * (size - 1));
            assert!(seen.pairs.values().all(|bytes| *bytes == 10));
            assert_eq!(seen.phases, vec![1; size as usize]);
        }
        let seen = run(&super::ENTRY, &listed(super::ENTRY.build.kind, 0, &[5, 0, 7]));
        assert_eq!((seen.sent, seen.messages), (vec![7, 12, 5], vec![2; 3]));
    }
}
