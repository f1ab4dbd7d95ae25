//! Numbers messages of one rank to another where they can overtake each other.

use super::messaging::Messaging;
use super::transfer::Transfer;

impl Messaging {
    /// From now on messages of this shard's ranks can overtake each other in the network, and are numbered from 0. Those in flight
    /// are numbered by the shards of their receivers when the window ends, before any numbered message can arrive.
    pub(super) fn start_numbering(&mut self) {
        self.numbering_started |= !std::mem::replace(&mut self.numbering, true);
    }

    /// The ranks of a shard number their messages from 0 now: those that come here and are not numbered have the numbers before
    /// 0, in the order of sending.
    pub(super) fn number_under_way(&mut self, shard: usize) {
        let transfers = &mut self.transfers;
        let mut coming: Vec<_> = transfers.coming_from(shard);
        let group = |transfer: &Transfer| (transfer.to, transfer.envelope.context, transfer.envelope.source);
        coming.sort_unstable_by_key(|record| (group(&transfers[*record]), transfers[*record].number));
        for same in coming
            .chunk_by(|one, next| group(&transfers[*one]) == group(&transfers[*next]))
            .map(<[u32]>::to_vec)
            .collect::<Vec<_>>()
        {
            let first = 0_u64.wrapping_sub(same.len() as u64);
            let Transfer { to, envelope, .. } = transfers[same[0]];
            self.ranks[to as usize].matching.expect_from(&envelope, first);
            for (place, record) in (0..).zip(same) {
                let transfer = &mut transfers[record];
                (transfer.number, transfer.numbered) = (first.wrapping_add(place), true);
            }
        }
    }
}
