//! Allgather over a power of two ranks by exchanges at doubling distance: in round `k` partners swap all the blocks of
//! their groups of 2^k ranks.

use super::{Algorithm, Call, Phase, Schedule};
use crate::program::CollectiveKind;

pub(super) const ENTRY: Algorithm =
    Schedule { kind: CollectiveKind::Allgather, fits: |call| call.size.is_power_of_two(), schedule }.named(
        "recursive_doubling",
        "exchanges of growing groups at doubling distance (MPICH, short, power of two; Thakur et al. 2005)",
    );

fn schedule(call: &Call, k: u32, phase: &mut Phase) -> bool {
    if k >= call.size.ilog2() {
        return false;
    }
    let blocks = call.blocks();
    let partner = call.me() ^ (1 << k);
    let group = |rank: u32| {
        let start = rank >> k << k;
        blocks.sum(start..start + (1 << k))
    };
    phase.receive(partner, group(partner));
    phase.send(partner, group(call.me()));
    true
}

#[cfg(test)]
mod tests {
    use super::super::trial::{listed, run, traffic};

    #[test]
    fn every_rank_moves_all_blocks_but_one() {
        let seen = traffic(&super::ENTRY, 8, 0, 10);
        assert_eq!((seen.sent, seen.received), (vec![70; 8], vec![70; 8]));
        let seen = run(&super::ENTRY, &listed(super::ENTRY.build.kind, 0, &[1, 2, 4, 8]));
        assert_eq!(seen.sent, [1 + 3, 2 + 3, 4 + 12, 8 + 12]);
        assert_eq!(seen.received, [14, 13, 11, 7]);
    }
}
