//! Scatter down a binomial tree, the largest subtree first: a rank gets the blocks of its whole subtree.

use super::pattern::BinomialTree;
use super::{Algorithm, Call, Phase, Schedule};
use crate::program::CollectiveKind;

pub(super) const ENTRY: Algorithm = Schedule { kind: CollectiveKind::Scatter, fits: Call::is_uniform, schedule }
    .named("binomial", "blocks of whole subtrees down a binomial tree (MPICH; Thakur, Rabenseifner and Gropp 2005)");

fn schedule(call: &Call, k: u32, phase: &mut Phase) -> bool {
    let blocks = call.blocks();
    BinomialTree::new(call).descend(k, phase, |subtree| blocks.sum(subtree))
}

#[cfg(test)]
mod tests {
    use super::super::trial::traffic;

    #[test]
    fn a_rank_gets_its_subtree() {
        let seen = traffic(&super::ENTRY, 6, 2, 10);
        // Subtrees of the positions 1 to 5 hold 1, 2, 1, 2 and 1 ranks; rank 2 is position 0.
        assert_eq!(seen.received, [20, 10, 0, 10, 20, 10]);
        assert_eq!(seen.sent[2], 50);
    }
}
