//! Allgather of an even number of ranks in `n / 2` exchanges with the two neighbours in turn: first the own block, then in each
//! step the two blocks that came, or were made up, in the one before.

use super::{Algorithm, Call, Phase, Schedule};
use crate::program::CollectiveKind;

pub(super) const ENTRY: Algorithm =
    Schedule { kind: CollectiveKind::Allgather, fits: |call| call.size.is_multiple_of(2), schedule }.named(
        "neighbor_exchange",
        "n / 2 exchanges of pairs of blocks with both neighbours in turn, n even (Open MPI; Chen et al. 2005)",
    );

fn schedule(call: &Call, k: u32, phase: &mut Phase) -> bool {
    if k >= call.size / 2 || call.is_uniform() && call.own_block() == 0 {
        return false;
    }
    // Even ranks begin with the one after them, odd ranks with the one before.
    let partner = if goes_up(call, k) { call.after(1) } else { call.before(1) };
    let blocks = call.blocks();
    let (coming, going) = if k == 0 {
        (blocks.of(partner), blocks.of(call.me()))
    } else {
        let pair = |step| blocks.sum_around(2 * pair_of(call, step), 2);
        (pair(k), pair(k - 1))
    };
    phase.receive(partner, coming);
    phase.send(partner, going);
    true
}

/// Whether step `k` is with the rank after this one, and brings a pair further up.
fn goes_up(call: &Call, k: u32) -> bool {
    call.me() % 2 == k % 2
}

/// The pair of ranks, by number, whose blocks come in step `k`: further and further away, on both sides in turn. In step 0 the
/// own pair is made up.
fn pair_of(call: &Call, k: u32) -> u32 {
    let (own, pairs, away) = (call.me() / 2, call.size / 2, k.div_ceil(2));
    if goes_up(call, k) { (own + away) % pairs } else { (own + pairs - away) % pairs }
}

#[cfg(test)]
mod tests {
    use super::super::trial::{listed, run, traffic};

    #[test]
    fn every_rank_moves_all_blocks_but_its_own_to_and_from_its_neighbours() {
        for size in (2..20).step_by(2) {
            let all = vec![10 * (size - 1); size as usize];
            let seen = traffic(&super::ENTRY, u32::try_from(size).unwrap(), 0, 10);
            assert_eq!((seen.sent, seen.received), (all.clone(), all));
            assert_eq!(u64::from(seen.phases[0]), size / 2);
            let ring = |(from, to): &(u32, u32)| [1, size - 1].contains(&u64::from(from.abs_diff(*to)));
            assert!(seen.pairs.keys().all(ring));
        }
        let seen = run(&super::ENTRY, &listed(super::ENTRY.build.kind, 0, &[1, 2, 4, 8]));
        assert_eq!(seen.received, [14, 13, 11, 7]);
    }
}
