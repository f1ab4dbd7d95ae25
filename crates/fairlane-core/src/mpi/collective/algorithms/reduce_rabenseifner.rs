//! Reduction of a long buffer: a reduce-scatter by halving the buffer at doubling distance, then a gather of the pieces
//! at the root, the same way back. Among the largest power of two of the ranks; the others hand their buffer to a
//! neighbour first. The root is never one of those (MPICH drops an odd root too and sends it one more piece).

use super::blocks::Blocks;
use super::fold::Fold;
use super::{Algorithm, Call, Phase, Schedule};
use crate::program::CollectiveKind;

pub(super) const ENTRY: Algorithm = Schedule { kind: CollectiveKind::Reduce, fits: |_| true, schedule }.named(
    "rabenseifner",
    "reduce-scatter by recursive halving, then binomial gather (Rabenseifner 2004; MPICH for long buffers)",
);

fn schedule(call: &Call, k: u32, phase: &mut Phase) -> bool {
    let bytes = call.buffer();
    let fold = Fold::even_and_root_stay(call.size, call.root.0);
    let blocks = Blocks::Split { total: bytes, parts: fold.members };
    let rounds = fold.rounds();
    fold.phase((call.me(), k), phase, (bytes, 0), 2 * rounds, |index, step, phase| {
        if step < rounds {
            let swap = fold.swap(index, step, &blocks);
            phase.combine(swap.partner, swap.mine);
            phase.send(swap.partner, swap.theirs);
        } else {
            gather(&fold, (index, fold.index(call.root.0)), 2 * rounds - 1 - step, &blocks, phase);
        }
    })
}

/// The gather's message at distance 2^`step`, of those who have not sent their pieces off before, at larger distances.
fn gather(fold: &Fold, (index, root): (u32, u32), step: u32, blocks: &Blocks<'_>, phase: &mut Phase) {
    let differs = (index ^ root) >> step;
    let swap = fold.swap(index, step, blocks);
    match differs {
        0 => phase.receive(swap.partner, swap.theirs),
        1 => phase.send(swap.partner, swap.mine),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::super::trial::traffic;

    #[test]
    fn a_power_of_two_halves_and_gathers() {
        let bytes = 800;
        let block = bytes / 8;
        for root in 0..8_usize {
            let seen = traffic(&super::ENTRY, 8, root as u32, bytes);
            assert_eq!(seen.reduced, [7 * block; 8]);
            for rank in 0..8 {
                // Halving moves 4 + 2 + 1 blocks; who leaves the gather at distance 2^s has 8 / 2^(s+1) blocks by then.
                let gathered = if rank == root { 0 } else { 8 >> ((rank ^ root).ilog2() + 1) };
                assert_eq!(seen.sent[rank], (7 + gathered) * block, "rank {rank}, root {root}");
            }
        }
    }

    #[test]
    fn who_drops_out_sends_once_and_it_is_never_the_root() {
        let seen = traffic(&super::ENTRY, 6, 1, 400);
        assert_eq!((seen.messages[0], seen.messages[3]), (1, 1));
        assert_eq!((seen.sent[0], seen.sent[3]), (400, 400));
        assert_eq!(seen.reduced, [0, 700, 700, 0, 300, 300]);
    }
}
