//! In-band telemetry: what switches write into the packets of transports that ask for it
//! ([`Feedback::telemetry`](super::transport::Feedback::telemetry)), and what their notices bring back. The bytes that it takes on the
//! wire are not modelled: a larger `header` has them.

use super::features::Instance;
use super::in_flight::InFlight;
use super::index::{PacketIdx, PortIdx, TelemetryIdx};
use super::nic::flows::Event;
use super::port::ActivePort;
use super::shard::Shard;
use super::transport::LinkTelemetry;
use crate::kernel::{Indexed, Pool};
use crate::units::{Bytes, Instant};

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
    /// None, of so many ports.
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

    /// How many links have been recorded up to this.
    fn links(&self, last: TelemetryIdx) -> usize {
        self.records.list(last, |record| record.before).count()
    }
}

impl InFlight {
    /// Nobody will look at the telemetry of a packet, if it has any.
    pub fn forget_telemetry(&mut self, packet: PacketIdx) {
        if let Some(tag) = self.tags.get_mut(packet) {
            self.telemetry.take(std::mem::take(&mut tag.telemetry));
        }
    }
}

impl<I: Instance, const KIND: u8> ActivePort<'_, I, KIND> {
    /// A packet that has left its queue starts at `now`: the switch counts it, and writes into it if its transport asks for that.
    #[cold]
    pub(super) fn write_telemetry(&mut self, packet: PacketIdx, now: Instant) {
        let InFlight { packets, tags, telemetry, marking, .. } = &mut *self.in_flight;
        let bytes = packets[packet].bytes;
        let job = self.config.fabric.job_of(packets[packet].traffic);
        let sent = telemetry.sent[self.number];
        telemetry.sent[self.number] = sent + u64::from(bytes);
        let asked = self.config.fabric.feedback_of(job).is_some_and(|feedback| feedback.telemetry);
        let tag = &mut tags[packet];
        if asked && !tag.control {
            let queued = marking[self.base..][..self.config.fabric.lanes].iter().map(|lane| lane.queued).sum();
            let link = LinkTelemetry {
                link: self.config.naming.link_id::<I>(self.number),
                queued: Bytes(queued),
                sent: Bytes(sent),
                at: now,
                bandwidth: self.config.conditions.wires[self.port.wire as usize].bandwidth,
            };
            tag.telemetry = telemetry.insert(link, tag.telemetry);
        }
    }
}

impl Shard {
    /// Telemetry = that of packets, of notices that wait at NICs, and of notices that arrive.
    pub fn telemetry_balances(&self) -> Result<(), String> {
        let InFlight { packets, tags, notices, flows, telemetry, .. } = &self.in_flight;
        let of_packets = packets.used().filter_map(|(packet, _)| tags.get(packet)).map(|tag| tag.telemetry);
        let waiting = notices.used().map(|(_, tag)| tag.telemetry);
        let arriving =
            flows.rows().iter().flat_map(|nic| nic.expected.values()).filter_map(|expected| match expected.event {
                Event::Notice(_, telemetry) => Some(telemetry),
                _ => None,
            });
        let owned: usize = of_packets.chain(waiting).chain(arriving).map(|last| telemetry.links(last)).sum();
        match telemetry.records.len() {
            kept if kept == owned => Ok(()),
            kept => Err(format!("telemetry of {kept} links is kept, packets and notices have that of {owned}")),
        }
    }
}
