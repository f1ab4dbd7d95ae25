//! What is in flight between devices: packets and messages, credits that return; and the calendar of who runs when.

use super::config::Config;
use super::credits::CreditReturns;
use super::features::Instance;
use super::mail::Outboxes;
use super::nic::flows::{Flows, Tag};
use super::nic::queue_pairs::QueuePairs;
use super::occupancy::Occupancy;
use super::packet::{Message, Packet, SinglePacket};
use super::plan::Plan;
use super::port::LaneMarking;
use super::totals::Totals;
use crate::fault::GivenUp;
use crate::kernel::{Calendar, Mailboxes, NONE, Pool};
use crate::units::{Instant, Picoseconds};

/// Windows ahead for which arrivals at ports are listed, at most; those that come later wait in the calendar.
pub(super) const MOST_INBOX_SLOTS: usize = 32;

/// The calendar's set of hosts.
pub(super) const HOSTS: usize = 0;
/// The calendar's set of ports.
pub(super) const PORTS: usize = 1;
/// The calendar's set of switches; empty unless packets go to switches: adaptive routing, or input-queued switches.
pub(super) const SWITCHES: usize = 2;

/// The calendar of a network.
pub(super) type NetworkCalendar = Calendar<3, Deferred>;

/// An arrival that is too far ahead for the inboxes: the calendar keeps it.
#[derive(Clone, Copy, Debug)]
pub(super) enum Deferred {
    /// A packet (a message, at a NIC) arrives at this port.
    AtPort { port: u32, record: u32 },
    /// A packet arrives at this switch, which routes it.
    AtSwitch { switch: u32, record: u32 },
}

/// A packet that arrives at a switch, which routes it.
#[derive(Clone, Copy, Debug)]
pub(super) struct AtSwitch {
    pub time: u64,
    /// The link that it comes over.
    pub link: u32,
    pub record: u32,
    /// The entry that was put into the same list before it, or [`NONE`].
    pub next: u32,
}

/// A packet that arrives at a switch: time, link that it comes over, record.
pub(super) type Arriving = (u64, u32, u32);

/// What is in flight in a shard, and what its devices keep of it.
#[derive(Clone)]
pub(super) struct InFlight {
    pub calendar: NetworkCalendar,
    /// What arrives at ports.
    pub inboxes: Mailboxes,
    /// What arrives at switches: by switch, a list in [`InFlight::at_switches`].
    pub switch_inboxes: Mailboxes,
    /// By slot of the window. The keys by which a switch sorts its arrivals are stored here, next to each other: the packets
    /// themselves are far apart in memory.
    pub at_switches: Vec<Vec<AtSwitch>>,
    pub occupancy: Occupancy,
    /// Packets on their way to each NIC: head and tail of a queue.
    pub receive_queues: Vec<(u32, u32)>,
    pub packets: Pool<Packet>,
    pub messages: Pool<Message>,
    /// Credits on their way, by port.
    pub returns: Vec<CreditReturns>,
    /// The earliest instant at which each NIC takes another message, ps; empty if no NIC has a gap between messages.
    pub next_offer: Vec<u64>,
    /// Hosts that defer deliveries, unless they are urgent, until they run by themselves (see [`Pause`](super::Pause)).
    pub deferring: Vec<bool>,
    /// Messages that wait for others of their queue pair, if those are sent one after another.
    pub queue_pairs: QueuePairs,
    /// Flows of each NIC; empty unless the transport paces them.
    pub flows: Vec<Flows>,
    /// What is known of packets for congestion control, by record; empty if there is none.
    pub tags: Vec<Tag>,
    /// Notices that queue at NICs.
    pub notices: Pool<Tag>,
    /// The marking state of lanes, by port, then lane; empty if switches do not mark.
    pub marking: Vec<LaneMarking>,
    /// Packets that have been given up and that [`Network::take_given_up`](super::Network::take_given_up) has not returned.
    pub given_up: Vec<GivenUp>,
    /// Packets that have been trimmed and have come to their hosts, of which a notice is under way: counted up in the shard of the
    /// receiver and down in that of the sender.
    pub trimmed: i64,
    pub single_packet: SinglePacket,
    /// The control packets under way.
    pub control_packets: SinglePacket,
    /// How many messages have been injected.
    pub sequence: u64,
    pub totals: Totals,
    /// What leaves the shard.
    pub out: Outboxes,
}

impl InFlight {
    /// Nothing, in a shard of a network at instant zero.
    pub fn new(plan: &Plan, config: &Config, lookahead: Picoseconds) -> Self {
        let Config { fabric, conditions, naming } = config;
        let Plan { routing, graph, .. } = plan;
        let (ports, nics) = (naming.ports(), naming.nic_host.len());
        let switches = if fabric.by_switch { fabric.partition.switches_of(naming.shard, graph) } else { 0 };
        let calendar = NetworkCalendar::new(lookahead, [naming.hosts(), ports, switches]);
        let slots = calendar.window_of(Instant(config.furthest())) + 2;
        let slots = slots.next_power_of_two().min(MOST_INBOX_SLOTS as u64);
        let features = conditions.features;
        Self {
            calendar,
            inboxes: Mailboxes::new(slots, ports),
            switch_inboxes: Mailboxes::new(slots, switches),
            at_switches: (0..slots).map(|_| Vec::new()).collect(),
            occupancy: Occupancy::new(
                if fabric.adaptive { ports } else { 0 },
                if routing.sees_lanes() { fabric.lanes } else { 0 },
                fabric.adaptive && !routing.sees_own_ports_only(),
                routing.sees_waiting().then_some(fabric.full),
            ),
            receive_queues: vec![(NONE, NONE); nics],
            packets: Pool::default(),
            messages: Pool::default(),
            queue_pairs: QueuePairs::default(),
            returns: vec![CreditReturns::default(); ports],
            next_offer: vec![0; naming.gaps.len()],
            deferring: vec![false; naming.hosts()],
            flows: vec![Flows::default(); if features.paces { nics } else { 0 }],
            tags: Vec::new(),
            notices: Pool::default(),
            marking: vec![LaneMarking::default(); if features.measures_queues { ports * fabric.lanes } else { 0 }],
            given_up: Vec::new(),
            trimmed: 0,
            single_packet: SinglePacket::default(),
            control_packets: SinglePacket::default(),
            sequence: 0,
            totals: Totals::default(),
            out: Outboxes::new(fabric.partition.shards()),
        }
    }

    /// Schedules `host` to run at `at`.
    #[inline(always)]
    pub fn wake_host(&mut self, host: u32, at: Instant) {
        self.calendar.wake(HOSTS, host, at);
    }

    /// Schedules `port` to run at `at`.
    #[inline(always)]
    pub fn wake_port(&mut self, port: u32, at: Instant) {
        self.calendar.wake(PORTS, port, at);
    }

    /// Sends a packet to arrive at `port` at instant `time`.
    #[inline(always)]
    pub fn send_packet(&mut self, port: u32, record: u32, time: u64) {
        let next = self.send(port, record, time);
        let packet = &mut self.packets[record];
        packet.time = time;
        packet.next = next;
    }

    /// Hands a message to a NIC's port at the instant at which it is offered.
    #[inline]
    pub fn send_message(&mut self, port: u32, record: u32) {
        let next = self.send(port, record, self.messages[record].offered);
        self.messages[record].next = next;
    }

    /// Sends a packet to arrive at `switch`, which routes it, at instant `time`.
    #[inline]
    pub fn send_to_switch(&mut self, switch: u32, record: u32, time: u64) {
        let window = self.calendar.window_of(Instant(time));
        let packet = &mut self.packets[record];
        packet.time = time;
        packet.next = NONE;
        if window - self.calendar.window() < self.switch_inboxes.slots() {
            self.calendar.wake_near(SWITCHES, switch, window);
            let list = &mut self.at_switches[self.switch_inboxes.slot(window)];
            let next = self.switch_inboxes.push(window, switch, place(list));
            list.push(AtSwitch { time, link: packet.came.link(), record, next });
        } else {
            self.calendar.defer(Deferred::AtSwitch { switch, record }, window);
        }
    }

    /// Returns what follows the record in its list.
    #[inline(always)]
    fn send(&mut self, port: u32, record: u32, time: u64) -> u32 {
        let window = self.calendar.window_of(Instant(time));
        if window - self.calendar.window() < self.inboxes.slots() {
            self.calendar.wake_near(PORTS, port, window);
            self.inboxes.push(window, port, record)
        } else {
            self.calendar.defer(Deferred::AtPort { port, record }, window);
            NONE
        }
    }

    /// Takes what the calendar kept for the window that has just opened. It was sent before everything that was put into the
    /// window's lists directly, so it stays first among packets that arrive over one link at one time.
    pub fn take_due(&mut self, config: &Config) {
        let due: Vec<Deferred> = std::iter::from_fn(|| self.calendar.next_due()).collect();
        let window = self.calendar.window();
        for due in due.into_iter().rev() {
            match due {
                Deferred::AtPort { port, record } if port < config.naming.nics => {
                    self.calendar.wake_in(PORTS, port, window);
                    self.messages[record].next = self.inboxes.push(window, port, record);
                }
                Deferred::AtPort { port, record } => {
                    self.calendar.wake_in(PORTS, port, window);
                    self.packets[record].next = NONE;
                    put_last(&mut self.inboxes, (window, port), record, &mut self.packets, next_packet);
                }
                Deferred::AtSwitch { switch, record } => {
                    self.calendar.wake_in(SWITCHES, switch, window);
                    let list = &mut self.at_switches[self.switch_inboxes.slot(window)];
                    let (packet, entry) = (&self.packets[record], place(list));
                    list.push(AtSwitch { time: packet.time, link: packet.came.link(), record, next: NONE });
                    put_last(&mut self.switch_inboxes, (window, switch), entry, list.as_mut_slice(), next_at_switch);
                }
            }
        }
    }

    /// Sends a packet to arrive, with its tail, at NIC `nic` at instant `time`.
    #[inline(always)]
    pub fn arrive<I: Instance>(&mut self, config: &Config, nic: u32, record: u32, time: u64) {
        if config.has::<I>().controls && self.answer(config, nic, record, time) {
            return;
        }
        let packet = &mut self.packets[record];
        packet.time = time;
        packet.next = NONE;
        let urgent = packet.flags.urgent();
        let queue = &mut self.receive_queues[nic as usize];
        let tail = std::mem::replace(&mut queue.1, record);
        if tail == NONE {
            queue.0 = record;
        } else {
            self.packets[tail].next = record;
        }
        let host = config.naming.nic_host[nic as usize];
        if urgent || !self.deferring[host as usize] {
            self.wake_host(host, Instant(time));
        }
    }
}

/// The index of the next entry of a list.
#[inline(always)]
fn place(list: &[AtSwitch]) -> u32 {
    u32::try_from(list.len()).expect("invariant: fewer than 2^32 packets in flight")
}

/// What follows a packet in the list of its port.
fn next_packet(packets: &mut Pool<Packet>, record: u32) -> &mut u32 {
    &mut packets[record].next
}

/// What follows an entry in the list of its switch.
fn next_at_switch(list: &mut [AtSwitch], entry: u32) -> &mut u32 {
    &mut list[entry as usize].next
}

/// Puts an entry of a store, which nothing follows, at the end of an inbox, whose first is the newest.
fn put_last<S: ?Sized>(
    inboxes: &mut Mailboxes,
    (window, place): (u64, u32),
    entry: u32,
    store: &mut S,
    next: impl Fn(&mut S, u32) -> &mut u32,
) {
    let mut oldest = inboxes.head(window, place);
    if oldest == NONE {
        inboxes.push(window, place, entry);
        return;
    }
    while *next(store, oldest) != NONE {
        oldest = *next(store, oldest);
    }
    *next(store, oldest) = entry;
}
