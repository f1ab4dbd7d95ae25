//! Scatter straight from the root, in one go. Serves scatterv.

use super::{Algorithm, Call, Phase, Schedule};
use crate::program::CollectiveKind;

pub(super) const ENTRY: Algorithm = Schedule { kind: CollectiveKind::Scatter, fits: |_| true, schedule }
    .named("linear", "the root sends every rank its block at once (MPICH for scatterv)");

fn schedule(call: &Call, k: u32, phase: &mut Phase) -> bool {
    if k > 0 {
        return false;
    }
    if call.position() == 0 {
        let blocks = call.blocks();
        (0..call.size).filter(|rank| *rank != call.me()).for_each(|rank| phase.send(rank, blocks.of(rank)));
    } else {
        phase.receive(call.root.0, call.own_block());
    }
    true
}

#[cfg(test)]
mod tests {
    use super::super::trial::{listed, run, traffic};

    #[test]
    fn every_rank_gets_its_own_block() {
        assert_eq!(traffic(&super::ENTRY, 5, 3, 10).received, [10, 10, 10, 0, 10]);
        let seen = run(&super::ENTRY, &listed(super::ENTRY.build.kind, 3, &[4, 0, 6, 7, 8]));
        assert_eq!(seen.received, [4, 0, 6, 0, 8]);
        assert_eq!(seen.messages, [0, 0, 0, 3, 0]);
    }
}
