//! Grants: the control packets by which a NIC gives credit to the flows that come to it. Whom the next one is for is decided
//! when it is made; see [`pulls`](super::pulls).

use super::flows::Tag;
use super::pulls::{Asked, Grant, Pacer, Source};
use super::transport::{Pulls, bandwidth_delay};
use crate::ids::{JobId, TrafficId};
use crate::network::config::Config;
use crate::network::features::Instance;
use crate::network::index::PacketIdx;
use crate::network::packet::Resend;
use crate::network::port::ActivePort;
use crate::units::{Bytes, Instant, Picoseconds};

fn base_rtt(config: &Config, job: JobId, pulls: Pulls) -> Picoseconds {
    let round_trip = config.fabric.round_trips[config.fabric.transport_place(job)];
    pulls.base_rtt.unwrap_or(round_trip).max(Picoseconds(1_000))
}

impl<I: Instance, const KIND: u8> ActivePort<'_, I, KIND> {
    fn pacer(&mut self) -> &mut Pacer {
        &mut self.in_flight.flows[self.number].pacer
    }

    /// A packet that asks for credit comes at `now`.
    pub(super) fn take_asked(&mut self, asked: &Asked, now: Instant) {
        let (full, job) = (u64::from(self.config.fabric.full), asked.source.1);
        if let Some(pulls) = self.config.fabric.pulls_of(job)
            && pulls.oversubscription > 1
        {
            let (base, seed) = (base_rtt(self.config, job, pulls), self.config.naming.link_of(self.number).0);
            let rate = &mut self.pacer().rate;
            rate.catch_up(now, base, pulls.oversubscription, seed);
            rate.count(asked.congestion);
        }
        let pacer = self.pacer();
        pacer.ask(asked, full);
        if pacer.has_demand() && !pacer.scheduled {
            let at = pacer.next.max(now);
            self.schedule_grant(asked.source, asked.traffic, at);
        }
    }

    /// The next grant will be made at instant `at`: it joins the NIC's queue then. Whom it is for is decided then.
    fn schedule_grant(&mut self, (to, _, vl): Source, traffic: TrafficId, at: Instant) {
        self.pacer().scheduled = true;
        let notice = Tag { control: true, credit: Some(0), ..Tag::default() };
        // After all others of the same instant.
        let order = 1 << 62;
        let nic = self.number;
        let packet = self.in_flight.make_notice(self.config, nic, (notice, 0), (to, traffic, vl), (at, order));
        self.in_flight.flows[nic].due.insert((at, order, packet));
    }

    /// A notice is about to join its queue. If it is a grant, its flow is chosen.
    pub(super) fn fill_grant(&mut self, packet: PacketIdx) {
        if self.in_flight.at_source(packet).again != Resend::None || self.in_flight.tags[packet].credit.is_none() {
            return;
        }
        let now = self.in_flight.packets[packet].time;
        let config = self.config;
        let bandwidth = config.conditions.wire(self.port.wire).bandwidth;
        let full = Bytes(u64::from(config.fabric.full));
        let window = |job| {
            let pulls = config.fabric.pulls_of(job);
            pulls.map_or(0, |pulls| bandwidth_delay(bandwidth, base_rtt(config, job, pulls), full) * 3 / 2)
        };
        let pacer = self.pacer();
        let Grant { source, demand, bytes } = pacer.grant(window).expect("invariant: a grant is for some flow");
        let (to, job, vl) = source;
        let time = bandwidth.serialization(Bytes(bytes));
        pacer.next = now + pacer.rate.stretch(time);
        pacer.scheduled = false;
        let (next, more) = (pacer.next, pacer.has_demand());
        let tag = Tag {
            to: demand.to,
            vl,
            pull: demand.granted,
            credit: Some(demand.trimmed),
            control: true,
            ..Tag::default()
        };
        self.in_flight.set_tag(packet, tag);
        let packet = &mut self.in_flight.packets[packet];
        (packet.to, packet.traffic) = (to, demand.traffic);
        packet.vl = config.fabric.feedback_of(job).and_then(|feedback| feedback.vl).unwrap_or(vl);
        packet.lane = config.fabric.lane(packet.vl, 0);
        if more {
            self.schedule_grant(source, demand.traffic, next);
        }
    }
}
