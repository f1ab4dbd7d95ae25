//! Reduction up a binomial tree, the smallest subtree first.

use super::pattern::BinomialTree;
use super::{Algorithm, Call, Phase, Schedule};
use crate::program::CollectiveKind;

pub(super) const ENTRY: Algorithm = Schedule { kind: CollectiveKind::Reduce, fits: |_| true, schedule }.named(
    "binomial",
    "the whole buffer up a binomial tree (MPICH for short buffers; Thakur, Rabenseifner and Gropp 2005)",
);

fn schedule(call: &Call, k: u32, phase: &mut Phase) -> bool {
    let more = BinomialTree::new(call).ascend(k, phase, |_| call.buffer());
    phase.reduced.0 = call.buffer() * phase.receives.len() as u64;
    more
}

#[cfg(test)]
mod tests {
    use super::super::trial::traffic;

    #[test]
    fn every_rank_but_the_root_sends_the_buffer_once() {
        for size in 2..40 {
            for root in [0, size / 2, size - 1] {
                let seen = traffic(&super::ENTRY, size, root, 100);
                for rank in 0..size {
                    assert_eq!(seen.sent[rank as usize], if rank == root { 0 } else { 100 });
                }
                assert_eq!(seen.reduced, seen.received);
                assert_eq!(seen.phases[root as usize], u32::BITS - (size - 1).leading_zeros());
            }
        }
    }
}
