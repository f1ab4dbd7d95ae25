//! A host's end of the network: messages become packets, packets deliveries.

use super::fixed::Fixed;
use super::flight::Flight;
use super::packet::{Delivery, Injection, Load, Message, Packet};
use super::turn::{Arrival, kind};
use super::watch::Watch;
use super::{Endpoint, Network, Pause};
use crate::error::RunError;
use crate::ids::{HostId, JobId};
use crate::kernel::NONE;
use crate::routing::Step;
use crate::units::Instant;

impl Network {
    /// Runs one host through the open window, and notes the ports that it hands messages to. `fetch`: fetches what those
    /// will read.
    #[inline(always)]
    pub(super) fn run_host<E: Endpoint>(
        &mut self,
        host: HostId,
        until: Instant,
        endpoint: &mut E,
        fetch: bool,
    ) -> Result<(), RunError> {
        let Self { fixed, flight, scratch, watch, .. } = self;
        let nics = fixed.nics_of(host);
        flight.deliver(fixed, watch, nics.clone(), until.0, &mut scratch.deliveries);
        let pause = endpoint.run(host, until, &scratch.deliveries, &mut scratch.injections)?;
        let mut now = false;
        for injection in &scratch.injections {
            now |= flight.inject(fixed, injection, until.0);
        }
        scratch.injections.clear();
        flight.pause(fixed, host, pause);
        if now {
            let window = self.flight.calendar.window();
            for nic in nics {
                let head = self.flight.inboxes.head(window, nic);
                if head != NONE {
                    self.scratch.handed.push_back(nic);
                    if fetch {
                        self.prefetch_handed(nic, head);
                    }
                }
            }
        }
        Ok(())
    }

    /// Has every host look at what is on its way to it when it comes.
    pub fn rouse(&mut self) {
        let now = self.now();
        for host in (0..).take(self.fixed.graph.hosts()).map(HostId) {
            self.flight.rouse(&self.fixed, host, now);
        }
    }

    /// Runs the NICs' ports to which their hosts have handed something, all but the last `but`.
    #[inline(always)]
    pub(super) fn run_handed<const OBSERVE: bool>(&mut self, but: usize, until: u64, arrivals: &mut Vec<Arrival>) {
        while self.scratch.handed.len() > but
            && let Some(nic) = self.scratch.handed.pop_front()
        {
            self.flight.calendar.forget_port(nic);
            self.run_port::<OBSERVE, { kind::NIC }>(nic, until, arrivals);
        }
    }
}

impl Flight {
    /// Takes what comes to a host before `until`: in order of time, then NIC port.
    #[inline(always)]
    fn deliver(
        &mut self,
        fixed: &Fixed,
        watch: &mut Watch,
        nics: std::ops::Range<u32>,
        until: u64,
        deliveries: &mut Vec<Delivery>,
    ) {
        deliveries.clear();
        let several = nics.len() > 1;
        for nic in nics {
            let mut record = self.incoming[nic as usize].0;
            if record == NONE {
                continue;
            }
            while record != NONE {
                let packet = &self.packets[record];
                if packet.time >= until {
                    break;
                }
                let next = packet.next;
                watch.latencies.record(JobId(packet.job), packet.kind, packet.latency());
                self.take(fixed, record, deliveries);
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

    /// Takes a packet that has come to its host.
    #[inline(always)]
    fn take(&mut self, fixed: &Fixed, record: u32, deliveries: &mut Vec<Delivery>) {
        let Packet { time, message, bytes, load, .. } = self.packets[record];
        self.packets.remove(record);
        if load.whole() {
            let payload = u64::from(bytes - fixed.header);
            self.totals.messages_delivered += 1;
            self.totals.bytes_delivered += payload;
            self.whole.messages -= 1;
            self.whole.bytes -= payload;
            let stage = load.stage();
            deliveries.push(Delivery { at: Instant(time), token: message, stage, first: true, last: true });
        } else {
            self.take_part(fixed, record, deliveries);
        }
    }

    /// Takes one of several packets of a message.
    fn take_part(&mut self, fixed: &Fixed, record: u32, deliveries: &mut Vec<Delivery>) {
        let Packet { time, message: record, number, .. } = self.packets[record];
        let message = &mut self.messages[record];
        debug_assert!(
            fixed.adaptive || u64::from(number) + u64::from(message.undelivered) == fixed.packets_of(message.bytes),
            "packets of a message on one way overtake"
        );
        let first = !std::mem::replace(&mut message.any_delivered, true);
        message.undelivered -= 1;
        let last = message.undelivered == 0;
        if first || last {
            let (token, stage) = (message.token, message.load.stage());
            deliveries.push(Delivery { at: Instant(time), token, stage, first, last });
        }
        if last {
            self.totals.messages_delivered += 1;
            self.totals.bytes_delivered += message.bytes;
            self.messages.remove(record);
        }
    }

    /// Hands a message to a NIC: to its port's inbox, once the adapter takes another message. Returns whether that is before
    /// `until`, the end of the open window; then the port must be run.
    #[inline(always)]
    fn inject(&mut self, fixed: &Fixed, injection: &Injection, until: u64) -> bool {
        let Injection { at, from, to, bytes, rail, vl, job, kind, token, stage, prompt } = *injection;
        let nic = fixed.first_nic[from.index()] + u32::from(rail);
        debug_assert!(nic < fixed.first_nic[from.index() + 1], "host {from} has no rail {rail}");
        debug_assert!(at >= self.calendar.opening(self.calendar.window()), "host {from} sends in the past");
        let packets = fixed.packets_of(bytes.0);
        let offered = self.offer(fixed, nic, at.0);
        let record = self.messages.insert(Message {
            offered,
            sequence: self.sequence,
            bytes: bytes.0,
            left: bytes.0,
            undelivered: u32::try_from(packets).expect("invariant: a message has fewer than 2^32 packets"),
            sent: 0,
            next: NONE,
            to: fixed.endpoint(to, rail),
            token,
            job: job.0,
            kind,
            vl: vl.0,
            load: Load::new(stage, packets == 1, prompt),
            any_delivered: false,
            ahead: Step::NONE,
        });
        self.sequence += 1;
        self.totals.messages_injected += 1;
        self.totals.bytes_injected += bytes.0;
        if offered >= until {
            self.send_message(nic, record);
            return false;
        }
        self.messages[record].next = self.inboxes.push(self.calendar.window(), nic, record);
        true
    }

    /// When a message handed over at `at` is offered: no sooner after the one before than the adapter's gap.
    #[inline]
    fn offer(&mut self, fixed: &Fixed, nic: u32, at: u64) -> u64 {
        let gap = fixed.gaps.get(nic as usize).copied().unwrap_or(0);
        if gap == 0 {
            return at;
        }
        let next = &mut self.next_offer[nic as usize];
        let offered = at.max(*next);
        *next = offered + gap;
        offered
    }

    /// A host has run: has it run again at its own time, and for what comes to it unless it can wait.
    #[inline(always)]
    fn pause(&mut self, fixed: &Fixed, host: HostId, Pause { at, patient }: Pause) {
        if let Some(at) = at {
            self.calendar.wake_host(host.0, at);
        }
        if patient {
            self.patient[host.index()] = true;
        } else {
            self.rouse(fixed, host, Instant::ZERO);
        }
    }

    /// A host is no longer patient: has it run for all that is on its way to it, at `now` for what has come.
    #[inline(always)]
    fn rouse(&mut self, fixed: &Fixed, host: HostId, now: Instant) {
        if !std::mem::replace(&mut self.patient[host.index()], false) {
            return;
        }
        for nic in fixed.nics_of(host) {
            let mut record = self.incoming[nic as usize].0;
            while record != NONE {
                let packet = &self.packets[record];
                self.calendar.wake_host(host.0, Instant(packet.time).max(now));
                record = packet.next;
            }
        }
    }
}
