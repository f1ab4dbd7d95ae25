//! Allgather round a ring: every block goes once round, one step of `n - 1` at a time.

use super::pattern::ring_step;
use super::{Algorithm, Call, Phase, Schedule};
use crate::program::CollectiveKind;

pub(super) const ENTRY: Algorithm = Schedule { kind: CollectiveKind::Allgather, fits: |_| true, schedule }.named(
    "ring",
    "every block once round a ring, n - 1 steps (MPICH for long blocks; Thakur, Rabenseifner and Gropp 2005)",
);

fn schedule(call: &Call, k: u32, phase: &mut Phase) -> bool {
    let blocks = call.blocks();
    if k >= call.size - 1 || call.is_uniform() && call.own_block() == 0 {
        return false;
    }
    ring_step(call, &blocks, call.me(), k, phase);
    true
}

#[cfg(test)]
mod tests {
    use super::super::trial::{listed, run, traffic};

    #[test]
    fn every_rank_moves_all_blocks_but_one() {
        for size in 2..20 {
            let all = vec![10 * u64::from(size - 1); size as usize];
            let seen = traffic(&super::ENTRY, size, 0, 10);
            assert_eq!((seen.sent, seen.received), (all.clone(), all));
            assert_eq!(seen.pairs.len(), size as usize);
        }
    }

    #[test]
    fn a_rank_passes_on_all_blocks_but_its_neighbours() {
        let seen = run(&super::ENTRY, &listed(super::ENTRY.build.kind, 0, &[1, 2, 4, 8]));
        assert_eq!(seen.received, [14, 13, 11, 7]);
        assert_eq!(seen.sent, [13, 11, 7, 14]);
    }
}
