//! Allreduce by exchanges of the whole buffer at doubling distance, among the largest power of two of the ranks; the
//! others hand their buffer to a neighbour before and get the result after.

use super::fold::Fold;
use super::{Algorithm, Call, Phase, Schedule};
use crate::program::CollectiveKind;

pub(super) const ENTRY: Algorithm = Schedule { kind: CollectiveKind::Allreduce, fits: |_| true, schedule }.named(
    "recursive_doubling",
    "exchanges of the whole buffer at doubling distance (MPICH for short buffers; Thakur et al. 2005)",
);

fn schedule(call: &Call, k: u32, phase: &mut Phase) -> bool {
    let bytes = call.buffer();
    let fold = Fold::odd_stays(call.size);
    fold.phase((call.me(), k), phase, (bytes, bytes), fold.rounds(), |index, step, phase| {
        let partner = fold.rank(index ^ (1 << step));
        phase.combine(partner, bytes);
        phase.send(partner, bytes);
    })
}

#[cfg(test)]
mod tests {
    use super::super::trial::traffic;

    #[test]
    fn members_send_the_buffer_once_a_round() {
        let seen = traffic(&super::ENTRY, 8, 0, 10);
        assert_eq!(seen.sent, [30; 8]);
        assert_eq!(seen.reduced, [30; 8]);
        // Six ranks: 0 and 2 drop out and send once; 1 and 3 take them in, exchange twice and send the result back.
        let seen = traffic(&super::ENTRY, 6, 0, 10);
        assert_eq!(seen.sent, [10, 30, 10, 30, 20, 20]);
        assert_eq!(seen.reduced, [0, 30, 0, 30, 20, 20]);
    }
}
