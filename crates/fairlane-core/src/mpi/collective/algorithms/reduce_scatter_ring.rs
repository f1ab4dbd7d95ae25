//! Reduce-scatter round a ring: a block starts behind its owner and is combined at every rank on its way round.

use super::pattern::ring_step;
use super::{Algorithm, Call, Phase, Schedule};
use crate::program::CollectiveKind;

pub(super) const ENTRY: Algorithm = Schedule { kind: CollectiveKind::ReduceScatter, fits: |_| true, schedule }
    .named("ring", "every block once round a ring, combined on its way, n - 1 steps (Patarasuk and Yuan 2009)");

fn schedule(call: &Call, k: u32, phase: &mut Phase) -> bool {
    if k >= call.size - 1 || call.is_uniform() && call.own_block() == 0 {
        return false;
    }
    phase.reduced.0 = ring_step(call, &call.blocks(), call.before(1), k, phase);
    true
}

#[cfg(test)]
mod tests {
    use super::super::trial::{listed, run, traffic};

    #[test]
    fn every_block_goes_once_round() {
        let seen = traffic(&super::ENTRY, 7, 0, 10);
        assert_eq!((seen.sent, seen.reduced), (vec![60; 7], vec![60; 7]));
        assert_eq!(seen.pairs.len(), 7);
        // A rank sends all blocks but its own, and gets all but the one that it starts with.
        let seen = run(&super::ENTRY, &listed(super::ENTRY.build.kind, 0, &[4, 2, 1]));
        assert_eq!(seen.sent, [3, 5, 6]);
        assert_eq!(seen.reduced, [6, 3, 5]);
    }
}
