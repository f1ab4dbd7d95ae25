//! All-to-all in `n - 1` steps of one message each way: with partner `rank xor k` over a power of two ranks, else to the
//! rank `k` after and from the rank `k` before.

use super::{Algorithm, Call, Phase, Schedule};
use crate::program::CollectiveKind;

pub(super) const ENTRY: Algorithm = Schedule { kind: CollectiveKind::Alltoall, fits: |_| true, schedule }.named(
    "pairwise",
    "n - 1 exchanges, one partner at a time (MPICH for long blocks; Thakur, Rabenseifner and Gropp 2005)",
);

fn schedule(call: &Call, k: u32, phase: &mut Phase) -> bool {
    if k >= call.size - 1 || call.is_uniform() && call.own_block() == 0 {
        return false;
    }
    let distance = k + 1;
    let (from, to) = if call.size.is_power_of_two() {
        (call.me() ^ distance, call.me() ^ distance)
    } else {
        (call.before(distance), call.after(distance))
    };
    phase.receive_even_empty(from);
    phase.send_even_empty(to, call.blocks().of(to));
    true
}

#[cfg(test)]
mod tests {
    use super::super::trial::{listed, run, traffic};

    #[test]
    fn every_pair_gets_its_block_once() {
        for size in [2_u32, 7, 8, 33] {
            let seen = traffic(&super::ENTRY, size, 0, 10);
            assert_eq!(seen.pairs.len() as u32, size * (size - 1));
            assert!(seen.pairs.values().all(|bytes| *bytes == 10));
            assert_eq!(seen.phases, vec![size - 1; size as usize]);
        }
        let seen = run(&super::ENTRY, &listed(super::ENTRY.build.kind, 0, &[5, 0, 7, 1]));
        assert_eq!(seen.received, [15, 0, 21, 3]);
    }
}
