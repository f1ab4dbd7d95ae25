//! Allgather after Bruck: in round `k` a rank sends all the blocks that it has, up to 2^k, to the rank 2^k before it.
//! Any number of ranks, ceil(log2 n) rounds.

use super::pattern::ceil_log2;
use super::{Algorithm, Call, Phase, Schedule};
use crate::program::CollectiveKind;

pub(super) const ENTRY: Algorithm = Schedule { kind: CollectiveKind::Allgather, fits: |_| true, schedule }.named(
    "bruck",
    "all blocks so far to the rank 2^k before, in ceil(log2 n) rounds (Bruck et al. 1997; MPICH, short)",
);

fn schedule(call: &Call, k: u32, phase: &mut Phase) -> bool {
    if k >= ceil_log2(call.size) {
        return false;
    }
    let blocks = call.blocks();
    let distance = 1 << k;
    let count = distance.min(call.size - distance);
    phase.receive(call.after(distance), blocks.sum_around(call.after(distance), count));
    phase.send(call.before(distance), blocks.sum_around(call.me(), count));
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
        }
        let seen = run(&super::ENTRY, &listed(super::ENTRY.build.kind, 0, &[1, 2, 4]));
        assert_eq!(seen.received, [6, 5, 3]);
    }
}
