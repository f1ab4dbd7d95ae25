//! Broadcast of a medium buffer over a power of two ranks: scattered down a binomial tree in `n` nearly equal blocks,
//! which are then gathered everywhere by exchanges at doubling distance. Blocks are numbered from the root.

use super::blocks::Blocks;
use super::pattern::BinomialTree;
use super::{Algorithm, Call, Phase, Schedule};
use crate::program::CollectiveKind;

pub(super) const ENTRY: Algorithm =
    Schedule { kind: CollectiveKind::Bcast, fits: |call| call.size.is_power_of_two(), schedule }.named(
        "scatter_recursive_doubling",
        "binomial scatter, then recursive doubling (MPICH for medium buffers; Thakur, Rabenseifner and Gropp 2005)",
    );

fn schedule(call: &Call, k: u32, phase: &mut Phase) -> bool {
    let blocks = Blocks::Split { total: call.buffer(), parts: call.size };
    let tree = BinomialTree::new(call);
    if tree.descend(k, phase, |subtree| blocks.sum(subtree)) {
        return true;
    }
    let step = k - tree.phases();
    if step >= call.size.ilog2() {
        return false;
    }
    let position = call.position();
    let partner = (call.root.0 + (position ^ (1 << step))) % call.size;
    let group = |position: u32| {
        let start = position >> step << step;
        blocks.sum(start..start + (1 << step))
    };
    phase.receive(partner, group(position ^ (1 << step)));
    phase.send(partner, group(position));
    true
}

#[cfg(test)]
mod tests {
    use super::super::trial::traffic;

    #[test]
    fn a_rank_gets_its_subtrees_blocks_and_then_all_but_its_own() {
        let block = 10;
        let seen = traffic(&super::ENTRY, 8, 7, 8 * block);
        // Subtrees of the positions 0 to 7 hold 8, 1, 2, 1, 4, 1, 2 and 1 ranks; rank 7 is position 0.
        let subtrees = [1, 2, 1, 4, 1, 2, 1, 0];
        assert_eq!(seen.received, subtrees.map(|ranks| (ranks + 7) * block));
        assert_eq!(seen.phases[7], 3 + 3);
    }
}
