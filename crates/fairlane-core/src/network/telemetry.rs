//! In-band telemetry: what switches write into the packets of transports that ask for it
//! ([`Feedback::telemetry`](super::transport::Feedback::telemetry)), and what their notices bring back. The bytes that it takes on the
//! wire are not modelled: a larger `header` has them.

use super::index::{PortIdx, TelemetryIdx};
use super::transport::LinkTelemetry;
use crate::kernel::{Indexed, Pool};
use crate::units::Bytes;

/// Telemetry of a link, and that of the link before it on the path of the same packet.
#[derive(Clone, Copy, Debug)]
struct Record {
    link: LinkTelemetry,
    before: TelemetryIdx,
}

/// The telemetry of packets and notices, and the bytes that ports have sent.
#[derive(Clone, Debug)]
pub(super) struct Telemetry {
    records: Pool<Record, TelemetryIdx>,
    /// Bytes on the wire of packets that each port has started; empty without telemetry.
    sent: Indexed<PortIdx, u64>,
}

impl Telemetry {
    /// No telemetry yet, for so many ports that have sent nothing.
    pub fn new(ports: usize) -> Self {
        Self { records: Pool::default(), sent: Indexed::of(0, ports) }
    }

    /// Adds that of a link to that of the links before it.
    pub fn insert(&mut self, link: LinkTelemetry, before: TelemetryIdx) -> TelemetryIdx {
        self.records.insert(Record { link, before })
    }

    /// Takes that of a path out, in the order of its links.
    pub fn take(&mut self, last: TelemetryIdx) -> Vec<LinkTelemetry> {
        let mut path = Vec::new();
        let mut next = last;
        while next.is_some() {
            let Record { link, before } = self.records.take(next);
            path.push(link);
            next = before;
        }
        path.reverse();
        path
    }

    /// Counts a packet that starts at a port; returns the bytes that it had sent before.
    pub fn count(&mut self, port: PortIdx, bytes: u32) -> Bytes {
        let sent = self.sent[port];
        self.sent[port] = sent + u64::from(bytes);
        Bytes(sent)
    }

    /// How many links are recorded.
    pub fn kept(&self) -> usize {
        self.records.len()
    }

    /// How many links have been recorded up to this.
    pub fn links(&self, last: TelemetryIdx) -> usize {
        self.records.list(last, |record| record.before).count()
    }
}
