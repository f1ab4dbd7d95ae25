//! Broadcast of a long buffer: scattered down a binomial tree in `n` nearly equal blocks, which then go round a ring.
//! Blocks are numbered from the root.

use super::blocks::Blocks;
use super::pattern::{BinomialTree, ring_step};
use super::{Algorithm, Call, Phase, Schedule};
use crate::program::CollectiveKind;

pub(super) const ENTRY: Algorithm = Schedule { kind: CollectiveKind::Bcast, fits: |_| true, schedule }.named(
    "scatter_ring",
    "binomial scatter, then ring allgather (van de Geijn's; Barnett et al. 1994; MPICH for long buffers)",
);

fn schedule(call: &Call, k: u32, phase: &mut Phase) -> bool {
    let blocks = Blocks::Split { total: call.buffer(), parts: call.size };
    let tree = BinomialTree::new(call);
    if tree.descend(k, phase, |subtree| blocks.sum(subtree)) {
        return true;
    }
    let step = k - tree.phases();
    if step >= call.size - 1 || call.buffer() == 0 {
        return false;
    }
    ring_step(call, &blocks, call.position(), step, phase);
    true
}

#[cfg(test)]
mod tests {
    use super::super::trial::traffic;

    #[test]
    fn a_rank_gets_its_subtrees_blocks_and_then_all_but_its_own() {
        let block = 10;
        let seen = traffic(&super::ENTRY, 6, 2, 6 * block);
        // Subtrees of the positions 0 to 5 hold 6, 1, 2, 1, 2 and 1 ranks; rank 2 is position 0.
        let subtrees = [2, 1, 0, 1, 2, 1];
        let expected = subtrees.map(|ranks| (ranks + 5) * block);
        assert_eq!(seen.received, expected);
    }
}
