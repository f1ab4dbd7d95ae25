//! Reduce-scatter by halving: partners at halving distance swap the halves that the other one is responsible for.
//! Among the largest power of two of the ranks; the others hand everything to a neighbour before and get their block
//! after.

use super::fold::Fold;
use super::{Algorithm, Call, Phase, Schedule};
use crate::program::CollectiveKind;

pub(super) const ENTRY: Algorithm = Schedule { kind: CollectiveKind::ReduceScatter, fits: |_| true, schedule }.named(
    "recursive_halving",
    "exchanges of shrinking halves at halving distance (MPICH for short blocks; Thakur et al. 2005)",
);

fn schedule(call: &Call, k: u32, phase: &mut Phase) -> bool {
    let blocks = call.blocks();
    let fold = Fold::odd_stays(call.size);
    let handed_back = blocks.of(fold.dropped(call.me()));
    let rounds = fold.rounds();
    fold.phase((call.me(), k), phase, (blocks.total(), handed_back), rounds, |index, step, phase| {
        let width = 1 << (rounds - 1 - step);
        let bytes_for_group_of = |member: u32| {
            let start = member / width * width;
            blocks.sum(fold.first_rank(start)..fold.first_rank(start + width))
        };
        let partner = index ^ width;
        phase.combine(fold.rank(partner), bytes_for_group_of(index));
        phase.send(fold.rank(partner), bytes_for_group_of(partner));
    })
}

#[cfg(test)]
mod tests {
    use super::super::trial::{listed, run, traffic};

    #[test]
    fn a_power_of_two_moves_all_blocks_but_one() {
        let seen = traffic(&super::ENTRY, 8, 0, 10);
        assert_eq!((seen.sent, seen.reduced), (vec![70; 8], vec![70; 8]));
    }

    #[test]
    fn others_hand_in_all_and_get_their_block() {
        // Three ranks of 4, 2 and 1 bytes: 0 drops out to 1, and 1 swaps 1 byte for the 6 of ranks 0 and 1 with rank 2.
        let seen = run(&super::ENTRY, &listed(super::ENTRY.build.kind, 0, &[4, 2, 1]));
        assert_eq!(seen.sent, [7, 1 + 4, 6]);
        assert_eq!(seen.reduced, [0, 7 + 6, 1]);
    }
}
