//! Gather straight to the root, in one go. Serves gatherv.

use super::{Algorithm, Call, Phase, Schedule};
use crate::program::CollectiveKind;

pub(super) const ENTRY: Algorithm = Schedule { kind: CollectiveKind::Gather, fits: |_| true, schedule }
    .named("linear", "every rank sends its block straight to the root (MPICH for gatherv)");

fn schedule(call: &Call, k: u32, phase: &mut Phase) -> bool {
    if k > 0 {
        return false;
    }
    if call.position() == 0 {
        let blocks = call.blocks();
        (0..call.size).filter(|rank| *rank != call.me()).for_each(|rank| phase.receive(rank, blocks.of(rank)));
    } else {
        phase.send(call.root.0, call.own_block());
    }
    true
}

#[cfg(test)]
mod tests {
    use super::super::trial::{listed, run, traffic};

    #[test]
    fn every_rank_sends_its_own_block() {
        assert_eq!(traffic(&super::ENTRY, 5, 3, 10).sent, [10, 10, 10, 0, 10]);
        let seen = run(&super::ENTRY, &listed(super::ENTRY.build.kind, 3, &[4, 0, 6, 7, 8]));
        assert_eq!(seen.sent, [4, 0, 6, 0, 8]);
        assert_eq!(seen.messages, [1, 0, 1, 0, 1]);
    }
}
