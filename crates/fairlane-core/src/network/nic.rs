//! A host's end of the network: messages become packets, packets deliveries.

use super::packet::{Delivery, Injection, Message, Packet};
use super::{Endpoint, Network};
use crate::error::RunError;
use crate::ids::HostId;
use crate::kernel::NONE;
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
            self.flight.calendar.wake_host(host.0, at);
        }
        Ok(())
    }

    /// Takes what comes to `host` before `until`: in order of time, then NIC port.
    fn deliveries(&mut self, host: HostId, until: u64, deliveries: &mut Vec<Delivery>) {
        deliveries.clear();
        let nics = self.fixed.nics_of(host);
        let several = nics.len() > 1;
        for nic in nics {
            let mut record = self.flight.incoming[nic as usize].0;
            if record == NONE {
                continue;
            }
            while record != NONE && self.flight.packets[record].time < until {
                let Packet { time, next, message, number, .. } = self.flight.packets[record];
                debug_assert!(
                    self.fixed.adaptive || number == self.delivered_of(message),
                    "packets of a message on one way overtake"
                );
                self.flight.packets.remove(record);
                self.deliver(message, time, deliveries);
                record = next;
            }
            let queue = &mut self.flight.incoming[nic as usize];
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
        let message = &self.flight.messages[record];
        u32::try_from(self.fixed.packets_of(message.bytes)).unwrap_or(u32::MAX) - message.undelivered
    }

    #[inline]
    fn deliver(&mut self, record: u32, time: u64, deliveries: &mut Vec<Delivery>) {
        let message = &mut self.flight.messages[record];
        let first = !std::mem::replace(&mut message.any_delivered, true);
        message.undelivered -= 1;
        let last = message.undelivered == 0;
        if first || last {
            let (token, stage) = (message.token, message.stage);
            deliveries.push(Delivery { at: Instant(time), token, stage, first, last });
        }
        if last {
            self.flight.totals.messages_delivered += 1;
            self.flight.totals.bytes_delivered += message.bytes;
            self.flight.messages.remove(record);
        }
    }

    /// Hands a message to a NIC: to its port's inbox, once the adapter takes another message.
    fn inject(&mut self, injection: Injection) {
        let Injection { at, from, to, bytes, rail, vl, job, token, stage } = injection;
        let nic = self.fixed.first_nic[from.index()] + u32::from(rail);
        debug_assert!(nic < self.fixed.first_nic[from.index() + 1], "host {from} has no rail {rail}");
        let packets = self.fixed.packets_of(bytes.0);
        let offered = self.offer(nic, at.0);
        let record = self.flight.messages.insert(Message {
            offered,
            sequence: self.flight.sequence,
            bytes: bytes.0,
            left: bytes.0,
            undelivered: u32::try_from(packets).expect("invariant: a message has fewer than 2^32 packets"),
            sent: 0,
            next: NONE,
            to: self.fixed.endpoint(to, rail),
            token,
            job: job.0,
            vl: vl.0,
            stage,
            any_delivered: false,
        });
        self.flight.sequence += 1;
        self.flight.totals.messages_injected += 1;
        self.flight.totals.bytes_injected += bytes.0;
        self.flight.send_message(nic, record);
    }

    /// When a message handed over at `at` is offered: no sooner after the one before than the adapter's gap.
    #[inline]
    fn offer(&mut self, nic: u32, at: u64) -> u64 {
        let gap = self.fixed.gaps.get(nic as usize).copied().unwrap_or(0);
        if gap == 0 {
            return at;
        }
        let next = &mut self.flight.next_offer[nic as usize];
        let offered = at.max(*next);
        *next = offered + gap;
        offered
    }
}
