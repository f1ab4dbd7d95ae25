//! Allreduce round a ring: `n` nearly equal blocks go round once to be combined and once more to be handed out.

use super::blocks::Blocks;
use super::pattern::ring_step;
use super::{Algorithm, Call, Phase, Schedule};
use crate::program::CollectiveKind;

pub(super) const ENTRY: Algorithm = Schedule { kind: CollectiveKind::Allreduce, fits: |_| true, schedule }
    .named("ring", "reduce-scatter and allgather round a ring, 2(n - 1) steps of a block (Patarasuk and Yuan 2009)");

fn schedule(call: &Call, k: u32, phase: &mut Phase) -> bool {
    let blocks = Blocks::Split { total: call.buffer(), parts: call.size };
    let steps = call.size - 1;
    if k >= 2 * steps || call.buffer() == 0 {
        return false;
    }
    if k < steps {
        phase.reduced.0 = ring_step(call, &blocks, call.me(), k, phase);
    } else {
        ring_step(call, &blocks, call.after(1), k - steps, phase);
    }
    true
}

#[cfg(test)]
mod tests {
    use super::super::trial::traffic;

    #[test]
    fn every_rank_moves_twice_the_buffer_but_one_block() {
        for size in [2_u32, 3, 7, 12] {
            let block = 100;
            let bytes = block * u64::from(size);
            let seen = traffic(&super::ENTRY, size, 0, bytes);
            assert_eq!(seen.sent, vec![2 * (bytes - block); size as usize]);
            assert_eq!(seen.reduced, vec![bytes - block; size as usize]);
            assert_eq!(seen.phases, vec![2 * (size - 1); size as usize]);
        }
    }
}
