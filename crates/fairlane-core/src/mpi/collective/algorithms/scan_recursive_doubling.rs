//! Scan by exchanges at doubling distance: partners swap what they know of their groups of 2^k ranks. Both need it for
//! the next round; the upper one also adds it to its result.

use super::pattern::ceil_log2;
use super::{Algorithm, Call, Phase, Schedule};
use crate::program::CollectiveKind;

pub(super) const ENTRY: Algorithm = Schedule { kind: CollectiveKind::Scan, fits: |_| true, schedule }
    .named("recursive_doubling", "exchanges of group results at doubling distance, ceil(log2 n) rounds (MPICH)");

fn schedule(call: &Call, k: u32, phase: &mut Phase) -> bool {
    if k >= ceil_log2(call.size) {
        return false;
    }
    let partner = call.me() ^ (1 << k);
    if partner < call.size {
        phase.combine(partner, call.buffer());
        phase.send(partner, call.buffer());
        if partner < call.me() {
            phase.reduced.0 *= 2;
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::super::trial::traffic;

    #[test]
    fn the_upper_partner_combines_twice() {
        let seen = traffic(&super::ENTRY, 4, 0, 10);
        assert_eq!(seen.sent, [20; 4]);
        assert_eq!(seen.reduced, [20, 30, 30, 40]);
        // Three ranks: 2 has no partner in the first round, 1 none in the second.
        let seen = traffic(&super::ENTRY, 3, 0, 10);
        assert_eq!(seen.sent, [20, 10, 10]);
        assert_eq!(seen.reduced, [20, 20, 20]);
    }
}
