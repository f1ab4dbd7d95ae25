//! Allreduce of a long buffer: a reduce-scatter by halving the buffer at doubling distance, then an allgather of the
//! pieces the same way back. Among the largest power of two of the ranks; the others hand their buffer to a neighbour
//! before and get the result after.

use super::blocks::Blocks;
use super::fold::Fold;
use super::{Algorithm, Call, Phase, Schedule};
use crate::program::CollectiveKind;

pub(super) const ENTRY: Algorithm = Schedule { kind: CollectiveKind::Allreduce, fits: |_| true, schedule }.named(
    "rabenseifner",
    "reduce-scatter by recursive halving, then recursive doubling (Rabenseifner 2004; MPICH for long buffers)",
);

fn schedule(call: &Call, k: u32, phase: &mut Phase) -> bool {
    let bytes = call.buffer();
    let fold = Fold::odd_stays(call.size);
    let blocks = Blocks::Split { total: bytes, parts: fold.members };
    let rounds = fold.rounds();
    fold.phase((call.me(), k), phase, (bytes, bytes), 2 * rounds, |index, step, phase| {
        if step < rounds {
            let swap = fold.swap(index, step, &blocks);
            phase.combine(swap.partner, swap.mine);
            phase.send(swap.partner, swap.theirs);
        } else {
            let swap = fold.swap(index, 2 * rounds - 1 - step, &blocks);
            phase.receive(swap.partner, swap.theirs);
            phase.send(swap.partner, swap.mine);
        }
    })
}

#[cfg(test)]
mod tests {
    use super::super::trial::traffic;

    #[test]
    fn a_power_of_two_moves_twice_the_buffer_but_one_block() {
        for size in [2_u32, 4, 8, 32] {
            let block = 100;
            let bytes = block * u64::from(size);
            let seen = traffic(&super::ENTRY, size, 0, bytes);
            assert_eq!(seen.sent, vec![2 * (bytes - block); size as usize]);
            assert_eq!(seen.reduced, vec![bytes - block; size as usize]);
        }
    }

    #[test]
    fn others_add_the_whole_buffer_before_and_after() {
        // Six ranks: 0 and 2 drop out; the four members move 2 x 3/4 of the buffer.
        let seen = traffic(&super::ENTRY, 6, 0, 400);
        assert_eq!(seen.sent, [400, 1000, 400, 1000, 600, 600]);
        assert_eq!(seen.reduced, [0, 700, 0, 700, 300, 300]);
    }

    #[test]
    fn a_buffer_that_does_not_divide_goes_round_whole() {
        let seen = traffic(&super::ENTRY, 4, 0, 5);
        // Each of the 5 bytes is combined three times and handed on three times.
        assert_eq!(seen.reduced.iter().sum::<u64>(), 3 * 5);
        assert_eq!(seen.sent.iter().sum::<u64>(), 2 * 3 * 5);
    }
}
