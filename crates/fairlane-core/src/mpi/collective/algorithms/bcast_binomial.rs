//! Broadcast down a binomial tree, the largest subtree first: the number of ranks that have the data doubles in every
//! round.

use super::pattern::BinomialTree;
use super::{Algorithm, Call, Phase, Schedule};
use crate::program::CollectiveKind;

pub(super) const ENTRY: Algorithm = Schedule { kind: CollectiveKind::Bcast, fits: |_| true, schedule }.named(
    "binomial",
    "the whole buffer down a binomial tree (MPICH for short buffers; Thakur, Rabenseifner and Gropp 2005)",
);

fn schedule(call: &Call, k: u32, phase: &mut Phase) -> bool {
    BinomialTree::new(call).descend(k, phase, |_| call.buffer())
}

#[cfg(test)]
mod tests {
    use super::super::trial::traffic;

    #[test]
    fn every_rank_but_the_root_gets_the_buffer_once() {
        for size in 2..40 {
            for root in [0, size / 2, size - 1] {
                let seen = traffic(&super::ENTRY, size, root, 100);
                for rank in 0..size {
                    assert_eq!(seen.received[rank as usize], if rank == root { 0 } else { 100 });
                }
                assert_eq!(seen.messages[root as usize], u64::from(u32::BITS - (size - 1).leading_zeros()));
            }
        }
    }

    #[test]
    fn eight_ranks_from_rank_3() {
        let seen = traffic(&super::ENTRY, 8, 3, 1);
        let edges: Vec<(u32, u32)> = seen.pairs.into_keys().collect();
        assert_eq!(edges, [(1, 2), (3, 4), (3, 5), (3, 7), (5, 6), (7, 0), (7, 1)]);
    }
}
