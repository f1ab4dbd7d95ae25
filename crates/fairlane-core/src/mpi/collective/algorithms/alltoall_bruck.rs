//! All-to-all after Bruck: a block that must go a distance `d` takes one step for each bit of `d`, in a message together
//! with all the others that take this step. ceil(log2 n) rounds, at the price of moving a block several times.

use super::pattern::ceil_log2;
use super::{Algorithm, Call, Phase, Schedule};
use crate::program::CollectiveKind;

pub(super) const ENTRY: Algorithm = Schedule { kind: CollectiveKind::Alltoall, fits: Call::is_uniform, schedule }
    .named(
        "bruck",
        "blocks bundled by the bits of their distance, ceil(log2 n) rounds (Bruck et al. 1997; MPICH, short)",
    );

fn schedule(call: &Call, k: u32, phase: &mut Phase) -> bool {
    if k >= ceil_log2(call.size) {
        return false;
    }
    let bytes = call.own_block() * u64::from(distances_with_bit(k, call.size));
    phase.receive(call.before(1 << k), bytes);
    phase.send(call.after(1 << k), bytes);
    true
}

/// How many of the numbers below `n` have bit `k` set.
const fn distances_with_bit(k: u32, n: u32) -> u32 {
    let whole = n >> (k + 1) << k;
    let rest = n & ((2 << k) - 1);
    whole + rest.saturating_sub(1 << k)
}

#[cfg(test)]
mod tests {
    use super::super::trial::traffic;

    #[test]
    fn a_block_moves_once_for_each_bit_of_its_distance() {
        for size in 2..70_u32 {
            let moves: u32 = (1..size).map(u32::count_ones).sum();
            let seen = traffic(&super::ENTRY, size, 0, 10);
            assert_eq!(seen.sent, vec![10 * u64::from(moves); size as usize]);
            for k in 0..7 {
                let counted = (0..size).filter(|distance| distance >> k & 1 == 1).count();
                assert_eq!(super::distances_with_bit(k, size) as usize, counted);
            }
        }
    }
}
