//! Numbers messages of one rank to another where they can overtake each other.

use super::transfer::{Progress, Transfer};
use crate::mpi::messaging::Messaging;

impl Messaging {
    /// From now on messages of this shard's ranks can overtake each other in the network, and are numbered from 0. Those in flight
    /// are numbered by the shards of their receivers when the window ends, before any numbered message can arrive.
    pub fn start_numbering(&mut self) {
        self.numbering_started |= !std::mem::replace(&mut self.numbering, true);
    }

    /// The ranks of a shard number their messages from 0 now: those that come here and are not numbered have the numbers before
    /// 0, in the order of sending.
    pub fn number_under_way(&mut self, shard: usize) {
        let transfers = &mut self.transfers;
        let mut coming: Vec<_> = transfers.coming_from(shard);
        let group = |transfer: &Transfer| (transfer.to, transfer.envelope.context, transfer.envelope.source);
        coming.sort_unstable_by_key(|record| group(&transfers[*record]));
        let mut rest = &mut coming[..];
        while let [one, ..] = *rest {
            let Transfer { to, envelope, number, .. } = transfers[one];
            let of = group(&transfers[one]);
            let count = rest.partition_point(|record| group(&transfers[*record]) == of);
            let (same, others) = rest.split_at_mut(count);
            // Numbers wrap: those under way are less than 2^31 apart.
            same.sort_unstable_by_key(|record| transfers[*record].number.wrapping_sub(number).cast_signed());
            let first = 0_u32.wrapping_sub(u32::try_from(count).expect("invariant: transfers have 32-bit names"));
            self.ranks[to as usize].matching.expect_from(&envelope, first);
            for (place, record) in (0..).zip(&*same) {
                let transfer = &mut transfers[*record];
                (transfer.number, transfer.progress) = (first.wrapping_add(place), Progress::Numbered);
            }
            rest = others;
        }
    }
}
