//! What the record of a job keeps of transfers that begin.

use super::messaging::Messaging;
use super::transfer::Transfer;
use crate::ids::Rank;
use crate::observe::MessageRecord;
use crate::units::{Bytes, Instant};

impl Messaging {
    #[cold]
    pub(super) fn record_sent(&mut self, token: u32) {
        let Transfer { from, receiver, bytes, envelope, collective, eager, sent_at, .. } = self.transfers[token];
        let Some(of) = self.record_of(from) else { return };
        of.sent(MessageRecord {
            number: 0,
            token,
            from: Rank(envelope.source),
            to: receiver,
            bytes: Bytes(bytes),
            tag: envelope.tag,
            collective,
            eager,
            sent_at: Instant(sent_at),
            posted_at: None,
            received_at: None,
            acknowledged_at: None,
        });
    }

    /// A one-sided operation that moves payload from its origin, or to it if `back`.
    #[cold]
    pub(super) fn record_one_sided(&mut self, token: u32, back: bool, now: Instant) {
        let Transfer { from, receiver: target, envelope, bytes, .. } = self.transfers[token];
        let origin = Rank(envelope.source);
        let Some(of) = self.record_of(from) else { return };
        of.sent(MessageRecord {
            number: 0,
            token,
            from: if back { target } else { origin },
            to: if back { origin } else { target },
            bytes: Bytes(bytes),
            tag: 0,
            collective: false,
            eager: back,
            sent_at: now,
            posted_at: Some(now),
            received_at: None,
            acknowledged_at: None,
        });
    }
}
