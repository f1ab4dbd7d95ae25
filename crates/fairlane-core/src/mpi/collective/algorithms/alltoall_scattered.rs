//! All-to-all with many messages at once, in batches of 32 distances so that a receiver is not flooded: a rank receives
//! from those after it and sends to those before it. Serves alltoallv.

use super::{Algorithm, Call, Phase, Schedule};
use crate::program::CollectiveKind;

pub(super) const ENTRY: Algorithm = Schedule { kind: CollectiveKind::Alltoall, fits: |_| true, schedule }
    .named("scattered", "non-blocking messages to all, in batches of 32 (MPICH for medium blocks and for alltoallv)");

/// Distances in a batch, that of a rank to itself included: MPICH's `MPIR_CVAR_ALLTOALL_THROTTLE`.
const BATCH: u32 = 32;

fn schedule(call: &Call, k: u32, phase: &mut Phase) -> bool {
    batch(call, k, BATCH, phase)
}

/// Batch number `k` of all distances, so many at a time.
pub(super) fn batch(call: &Call, k: u32, size: u32, phase: &mut Phase) -> bool {
    if k >= call.size.div_ceil(size) || call.is_uniform() && call.own_block() == 0 {
        return false;
    }
    let blocks = call.blocks();
    let distances = (k * size).max(1)..call.size.min((k * size).saturating_add(size));
    for distance in distances {
        let to = call.before(distance);
        phase.receive_even_empty(call.after(distance));
        phase.send_even_empty(to, blocks.of(to));
    }
    true
}

#[cfg(test)]
mod tests {
    use super::super::trial::{listed, run, traffic};

    #[test]
    fn every_pair_gets_its_block_once() {
        for size in [2_u32, 31, 32, 33, 70] {
            let seen = traffic(&super::ENTRY, size, 0, 10);
            assert_eq!(seen.pairs.len() as u32, size * (size - 1));
            assert!(seen.pairs.values().all(|bytes| *bytes == 10));
            assert_eq!(seen.phases[0], size.div_ceil(32));
        }
    }

    #[test]
    fn alltoallv_sends_empty_blocks_too() {
        let seen = run(&super::ENTRY, &listed(super::ENTRY.build.kind, 0, &[5, 0, 7]));
        assert_eq!(seen.sent, [7, 12, 5]);
        assert_eq!(seen.received, [10, 0, 14]);
        assert_eq!(seen.messages, [2, 2, 2]);
    }
}
