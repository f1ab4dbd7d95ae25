//! A host's end of the network: messages become packets, packets become deliveries.

use super::packet::{Delivery, Injection, Message, Packet, ROUTE, Step};
use super::{Endpoint, Network};
use crate::error::RunError;
use crate::ids::{HostId, LinkId, VirtualLane};
use crate::kernel::NONE;
use crate::routing::Hop;
use crate::units::Instant;

impl Network {
    /// Runs one host through the open window.
    pub(super) fn run_host<E: Endpoint>(
        &mut self,
        host: HostId,
        until: Instant,
        endpoint: &mut E,
    ) -> Result<(), RunError> {
        let mut deliveries = std::mem::take(&mut self.scratch.deliveries);
        let mut injections = std::mem::take(&mut self.scratch.injections);
        self.deliveries(host, until.0, &mut deliveries);
        let wake = endpoint.run(host, until, &deliveries, &mut injections);
        for injection in injections.drain(..) {
            self.inject(injection);
        }
        self.scratch.deliveries = deliveries;
        self.scratch.injections = injections;
        if let Some(at) = wake? {
            self.calendar.wake_host(host.0, at);
        }
        Ok(())
    }

    /// A packet will be at NIC `nic` at instant `time`.
    #[inline]
    pub(super) fn arrive(&mut self, nic: u32, record: u32, time: u64) {
        self.packets[record].next = NONE;
        let queue = &mut self.incoming[nic as usize];
        let tail = std::mem::replace(&mut queue.1, record);
        if tail == NONE {
            queue.0 = record;
        } else {
            self.packets[tail].next = record;
        }
        self.calendar.wake_host(self.nic_host[nic as usize], Instant(time));
    }

    /// Takes what comes to `host` before `until`: in order of time, then NIC port.
    fn deliveries(&mut self, host: HostId, until: u64, deliveries: &mut Vec<Delivery>) {
        deliveries.clear();
        let nics = self.nics_of(host);
        let several = nics.len() > 1;
        for nic in nics {
            let mut record = self.incoming[nic as usize].0;
            if record == NONE {
                continue;
            }
            while record != NONE && self.packets[record].time < until {
                let Packet { time, next, message, number, .. } = self.packets[record];
                debug_assert_eq!(number, self.delivered_of(message), "packets of a message on one way overtake");
                self.packets.remove(record);
                self.deliver(message, time, deliveries);
                record = next;
            }
            let queue = &mut self.incoming[nic as usize];
            queue.0 = record;
            if record == NONE {
                queue.1 = NONE;
            }
        }
        if several {
            deliveries.sort_by_key(|delivery| delivery.at);
        }
    }

    /// How many packets of a message have come.
    fn delivered_of(&self, record: u32) -> u32 {
        let message = &self.messages[record];
        u32::try_from(self.packets_of(message.bytes)).unwrap_or(u32::MAX) - message.undelivered
    }

    #[inline]
    fn deliver(&mut self, record: u32, time: u64, deliveries: &mut Vec<Delivery>) {
        let message = &mut self.messages[record];
        let first = !std::mem::replace(&mut message.any_delivered, true);
        message.undelivered -= 1;
        let last = message.undelivered == 0;
        if first || last {
            let (token, stage) = (message.token, message.stage);
            deliveries.push(Delivery { at: Instant(time), token, stage, first, last });
        }
        if last {
            self.totals.messages_delivered += 1;
            self.totals.bytes_delivered += message.bytes;
            self.messages.remove(record);
        }
    }

    /// The NIC ports of `host`.
    #[inline]
    pub(super) fn nics_of(&self, host: HostId) -> std::ops::Range<u32> {
        self.first_nic[host.index()]..self.first_nic[host.index() + 1]
    }

    /// Hands a message to a NIC: to its port's inbox.
    fn inject(&mut self, injection: Injection) {
        let Injection { at, from, to, bytes, vl, job, token, stage } = injection;
        let packets = self.packets_of(bytes.0);
        let record = self.messages.insert(Message {
            offered: at.0,
            sequence: self.sequence,
            bytes: bytes.0,
            left: bytes.0,
            undelivered: u32::try_from(packets).expect("invariant: a message has fewer than 2^32 packets"),
            sent: 0,
            next: NONE,
            to: to.0,
            token,
            job: job.0,
            vl: vl.0,
            stage,
            any_delivered: false,
        });
        self.sequence += 1;
        self.totals.messages_injected += 1;
        self.totals.bytes_injected += bytes.0;
        self.send_to(self.first_nic[from.index()], record, at.0);
    }

    /// How many packets a message of this payload makes. Most make one: no division for them.
    #[inline]
    pub(super) fn packets_of(&self, bytes: u64) -> u64 {
        if bytes <= self.parameters.mtu.0 { 1 } else { bytes.div_ceil(self.parameters.mtu.0) }
    }

    /// Payload of a message's next packet.
    #[inline]
    #[allow(clippy::cast_possible_truncation, reason = "at most one MTU")]
    pub(super) fn next_payload(&self, message: u32) -> u32 {
        self.messages[message].left.min(self.parameters.mtu.0) as u32
    }

    /// Cuts the next packet from a message that is in no queue. Returns the packet, and whether the message has more.
    #[inline]
    pub(super) fn cut(&mut self, port: u32, lane: VirtualLane, record: u32) -> (u32, bool) {
        let payload = self.next_payload(record);
        let message = &mut self.messages[record];
        message.left -= u64::from(payload);
        let number = message.sent;
        message.sent += 1;
        let mut route = [Step::NONE; ROUTE];
        route[0] = Step::new(Hop { link: LinkId(port), channel: 0 });
        let rest = message.left > 0;
        let packet = self.packets.insert(Packet {
            time: message.offered,
            next: NONE,
            message: record,
            bytes: payload + self.header,
            to: message.to,
            number,
            job: message.job,
            vl: message.vl,
            lane: lane.0,
            hop: 0,
            hops: 1,
            route,
        });
        self.extend_route(packet);
        (packet, rest)
    }

    /// A message of which a packet has just started goes to the end of its lane's queue, and offers its next packet once
    /// the link is done.
    pub(super) fn offer_again<const OBSERVE: bool>(&mut self, port: u32, lane: VirtualLane, message: u32) {
        self.messages[message].offered = self.ports[port as usize].busy_until;
        self.append(port, lane.0, message);
        if OBSERVE {
            self.interference.join(port, self.messages[message].job);
        }
    }
}
