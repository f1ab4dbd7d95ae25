//! Reduce-scatter in `n - 1` steps: to the rank `k` after its block, from the rank `k` before one's own.

use super::{Algorithm, Call, Phase, Schedule};
use crate::program::CollectiveKind;

pub(super) const ENTRY: Algorithm = Schedule { kind: CollectiveKind::ReduceScatter, fits: |_| true, schedule }
    .named("pairwise", "n - 1 steps, every block straight to its owner (MPICH for long blocks; Thakur et al. 2005)");

fn schedule(call: &Call, k: u32, phase: &mut Phase) -> bool {
    if k >= call.size - 1 || call.is_uniform() && call.own_block() == 0 {
        return false;
    }
    let to = call.after(k + 1);
    phase.combine(call.before(k + 1), call.own_block());
    phase.send(to, call.blocks().of(to));
    true
}

#[cfg(test)]
mod tests {
    use super::super::trial::{listed, run, traffic};

    #[test]
    fn every_block_goes_straight_to_its_owner() {
        let seen = traffic(&super::ENTRY, 7, 0, 10);
        assert_eq!((seen.sent, seen.reduced), (vec![60; 7], vec![60; 7]));
        assert_eq!(seen.pairs.len(), 42);
        let seen = run(&super::ENTRY, &listed(super::ENTRY.build.kind, 0, &[4, 0, 1]));
        assert_eq!(seen.sent, [1, 5, 4]);
        assert_eq!(seen.reduced, [8, 0, 2]);
    }
}
