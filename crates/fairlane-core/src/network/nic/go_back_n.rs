//! Go-back-N: what reliable connections of RoCE adapters do about losses. A flow is a connection, and its packets are numbered in the
//! order in which they start.
//!
//! **Receivers** accept a packet that is the next of its flow. One that comes after a gap is discarded, and the first such packet of a gap
//! answered with a NAK, which carries the number of the missing packet (`InfiniBand` Architecture Specification, volume 1, section
//! 9.7.5.2.8, "NAK codes": PSN sequence error). There is no further NAK before the missing packet has come.
//!
//! **Senders** go back on a NAK: they send the missing packet again and all that they have sent after it, in order, before new ones. They
//! also go back to a lost packet of which the timeout passes before it was sent again: if nothing followed it, or it was lost again.
//!
//! A packet is one record, and its copies are never in the network at the same time: it can be sent again when the record of its loss, or
//! of its arrival after the gap, has come back to the sender, two windows later. The packets before it, which take at least a round trip,
//! are sent in the meantime. A flow keeps its adapters when they fail. There are no acknowledgements but those of transports, and a sender
//! has no limit of its own on packets in flight.

use std::collections::{BTreeMap, BTreeSet};

use crate::network::index::PacketIdx;

/// The packets of a flow that have come to its receiver.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::network) struct Sequence {
    /// The number of the next one.
    pub next: u32,
    /// A NAK says that it is missing.
    pub nak: bool,
}

/// A packet that is to be sent again.
#[derive(Clone, Copy, Debug)]
pub(super) struct Returned {
    pub packet: PacketIdx,
    /// It has been released: it waits in the NIC's queue, or will join it.
    pub released: bool,
}

/// The numbers of a flow's packets at its sender, and what it sends again.
#[derive(Clone, Debug, Default)]
pub(in crate::network) struct GoBack {
    /// The number of the next new packet.
    next: u32,
    /// While packets are sent again: the number of the next of them.
    pub(super) cursor: Option<u32>,
    /// Packets that have been lost or discarded since they started last.
    pub(super) returned: BTreeMap<u32, Returned>,
    /// Packets that have been given up.
    pub(super) given_up: BTreeSet<u32>,
}

impl GoBack {
    /// Whether packets are sent again.
    pub const fn active(&self) -> bool {
        self.cursor.is_some()
    }

    /// Whether it is the turn of a packet: of one that is sent again, with its number, or of a new one.
    pub fn permits(&self, again: Option<u32>) -> bool {
        self.cursor == again
    }

    /// The number of a packet that starts: of one that is sent again, with its number, or of a new one.
    pub fn number(&mut self, again: Option<u32>) -> u32 {
        let psn = again.unwrap_or(self.next);
        if again.is_some() {
            self.returned.remove(&psn);
            self.proceed(psn + 1);
        } else {
            self.next += 1;
        }
        psn
    }

    /// The next packet to be sent again is this one, or a later one, if there is any.
    fn proceed(&mut self, mut psn: u32) {
        while self.given_up.remove(&psn) {
            psn += 1;
        }
        self.cursor = (psn < self.next).then_some(psn);
    }

    /// Waits for no packet that has not come back. It may come no more: its receiver accepts it if it knows that those before it are
    /// given up, or if it has come over another path.
    pub fn skip_absent(&mut self) {
        if let Some(cursor) = self.cursor {
            self.cursor = self.returned.range(cursor..).next().map(|(psn, _)| *psn);
        }
    }

    /// Takes the next packet to be sent again, unless it has been released, or has not come back yet.
    pub fn take_next(&mut self) -> Option<PacketIdx> {
        let returned = self.returned.get_mut(&self.cursor?)?;
        let released = std::mem::replace(&mut returned.released, true);
        (!released).then_some(returned.packet)
    }

    /// A packet that has been released leaves the NIC's queue.
    pub fn put_back(&mut self, psn: u32) {
        if let Some(returned) = self.returned.get_mut(&psn) {
            returned.released = false;
        }
    }

    /// Goes back to the first packet from `psn` on that has come back, unless it is sent again already. Returns the packets that are
    /// known from now on not to be in flight.
    pub fn begin(&mut self, psn: u32) -> Vec<PacketIdx> {
        let Some((&first, _)) = self.returned.range(psn..).next() else { return Vec::new() };
        let until = self.cursor.unwrap_or(self.next);
        if self.active() && until <= first {
            return Vec::new();
        }
        self.cursor = Some(first);
        self.returned.range(first..until).map(|(_, returned)| returned.packet).collect()
    }
}
