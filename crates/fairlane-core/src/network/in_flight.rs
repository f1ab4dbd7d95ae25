//! Packets and credits in flight between devices, messages of which they are parts, and the calendar of who runs when.

use rustc_hash::FxHashMap;

use super::config::Config;
use super::credits::CreditReturns;
use super::features::Instance;
use super::index::{HostIdx, LaneIdx, MessageIdx, PacketIdx, PortIdx};
use super::mail::Mail;
use super::nic::flows::{Flows, Tag};
use super::nic::queue_pairs::QueuePairs;
use super::occupancy::Occupancy;
use super::packet::{AtSource, Message, Packet};
use super::pauses::Pauses;
use super::plan::Plan;
use super::port::LaneMarking;
use super::telemetry::Telemetry;
use super::totals::Totals;
use crate::fault::GivenUp;
use crate::ids::{LinkId, SwitchId};
use crate::kernel::{Calendar, Index, Indexed, Mailboxes, NONE, Pool};
use crate::units::{Instant, Picoseconds};

/// Windows ahead for which arrivals at ports are listed, at most; those that come later wait in the calendar.
pub(super) const MOST_INBOX_SLOTS: usize = 32;

/// The calendar's set of hosts.
pub(super) const HOSTS: usize = 0;
/// The calendar's set of ports.
pub(super) const PORTS: usize = 1;
/// The calendar's set of switches; empty unless they are input-queued.
pub(super) const SWITCHES: usize = 2;

/// The calendar of a network.
pub(super) type NetworkCalendar = Calendar<3, Deferred>;

/// An arrival that is too far ahead for the inboxes: the calendar keeps it.
#[derive(Clone, Copy, Debug)]
pub(super) enum Deferred {
    /// A packet arrives at this port.
    AtPort { port: PortIdx, packet: PacketIdx },
    /// A packet arrives at this switch, which routes it.
    AtSwitch { switch: SwitchId, packet: PacketIdx },
}

/// A packet that arrives at a switch, which routes it.
#[derive(Clone, Copy, Debug)]
pub(super) struct AtSwitch {
    pub time: Instant,
    pub switch: SwitchId,
    /// The link that it comes over.
    pub link: LinkId,
    pub packet: PacketIdx,
    /// The port that it is routed to; none before.
    pub port: PortIdx,
}

/// Traffic in flight in a shard, and the state of its devices that goes with it.
#[derive(Clone)]
pub(super) struct InFlight {
    pub calendar: NetworkCalendar,
    /// Arrivals at ports.
    pub inboxes: Mailboxes<PortIdx, PacketIdx>,
    /// Arrivals at switches, by slot of the window.
    pub at_switches: Vec<Vec<AtSwitch>>,
    pub occupancy: Occupancy,
    /// Packets on their way to each NIC: head and tail of a queue.
    pub receive_queues: Indexed<PortIdx, (PacketIdx, PacketIdx)>,
    /// Among them, of each message that has not been sent completely, the packet that its NIC sends next.
    pub packets: Pool<Packet, PacketIdx>,
    /// Messages of several packets.
    pub messages: Pool<Message, MessageIdx>,
    /// Messages of several packets that another shard sends to this one: by that shard and their index there.
    pub announced: FxHashMap<(u8, MessageIdx), Message>,
    /// Credits on their way, by port.
    pub returns: Indexed<PortIdx, CreditReturns>,
    /// By port, then lane; empty without priority flow control.
    pub pauses: Vec<Pauses>,
    /// The earliest instant at which each NIC takes another message, ps; empty if no NIC has a gap between messages.
    pub next_offer: Indexed<PortIdx, Instant>,
    /// Hosts that defer deliveries, unless they are urgent, until they run by themselves (see [`Pause`](super::Pause)).
    pub deferring: Indexed<HostIdx, bool>,
    /// Records of packets at their NICs; empty unless a feature needs them.
    pub at_source: Indexed<PacketIdx, AtSource>,
    /// The last [`AtSource::order`] that was given.
    pub order: u64,
    /// Messages that wait for others of their queue pair, if those are sent one after another.
    pub queue_pairs: QueuePairs,
    /// Flows of each NIC; empty unless the transport paces them.
    pub flows: Indexed<PortIdx, Flows>,
    /// Empty if there is no congestion control.
    pub tags: Indexed<PacketIdx, Tag>,
    /// What switches have written into packets that are tagged.
    pub telemetry: Telemetry,
    /// The marking state of lanes, by port, then lane; empty if switches do not mark.
    pub marking: Vec<LaneMarking>,
    /// Packets that have been given up and that [`Network::take_given_up`](super::Network::take_given_up) has not returned.
    pub given_up: Vec<GivenUp>,
    pub totals: Totals,
    /// The mail of the open window, by shard; empty with one shard.
    pub mail: Vec<Mail>,
    /// The earliest instant at which any of it takes effect, ps.
    pub earliest_mail: Instant,
}

impl InFlight {
    /// Nothing, in a shard of a network at instant zero.
    pub fn new(plan: &Plan, config: &Config, lookahead: Picoseconds) -> Self {
        let Config { fabric, conditions, naming } = config;
        let Plan { routing, graph, .. } = plan;
        let (ports, nics, features) = (naming.ports(), naming.nic_host.len(), conditions.features);
        let switches = if features.input_queued { graph.switches() } else { 0 };
        let calendar = NetworkCalendar::new(lookahead, [naming.hosts(), ports, switches]);
        let slots = calendar.window_of(Instant::ZERO + config.furthest()) + 2;
        let slots = slots.next_power_of_two().min(MOST_INBOX_SLOTS as u64);
        Self {
            calendar,
            inboxes: Mailboxes::new(slots, ports),
            at_switches: (0..slots).map(|_| Vec::new()).collect(),
            occupancy: Occupancy::new(
                if fabric.adaptive { ports } else { 0 },
                if routing.sees_lanes() { fabric.lanes } else { 0 },
                fabric.adaptive && !routing.sees_own_ports_only(),
                routing.sees_waiting().then_some(fabric.full),
            ),
            receive_queues: Indexed::of((PacketIdx::NONE, PacketIdx::NONE), nics),
            packets: Pool::default(),
            messages: Pool::default(),
            announced: FxHashMap::default(),
            queue_pairs: QueuePairs::default(),
            returns: Indexed::of(CreditReturns::default(), ports),
            pauses: naming.links().flat_map(|link| fabric.pauses(link)).collect(),
            next_offer: Indexed::of(Instant::ZERO, naming.gaps.len()),
            deferring: Indexed::of(false, naming.hosts()),
            flows: Indexed::of(Flows::default(), if features.paces { nics } else { 0 }),
            tags: Vec::new().into(),
            at_source: Vec::new().into(),
            order: 0,
            telemetry: Telemetry::new(if features.telemetry { ports } else { 0 }),
            marking: vec![LaneMarking::default(); if features.measures_queues { ports * fabric.lanes } else { 0 }],
            given_up: Vec::new(),
            totals: Totals::default(),
            mail: vec![Mail::default(); if fabric.partition.shards() == 1 { 0 } else { fabric.partition.shards() }],
            earliest_mail: Instant::MAX,
        }
    }

    /// The pauses of a port, by lane; none without priority flow control.
    pub fn pauses_of(&self, port: PortIdx, lanes: usize) -> impl Iterator<Item = (LaneIdx, &Pauses)> {
        let lanes = self.pauses.get(port.index() * lanes..(port.index() + 1) * lanes);
        (0..).map(LaneIdx).zip(lanes.into_iter().flatten())
    }

    /// Schedules `host` to run at `at`.
    #[inline(always)]
    pub fn wake_host(&mut self, host: HostIdx, at: Instant) {
        self.calendar.wake(HOSTS, host, at);
    }

    /// Schedules `port` to run at `at`.
    #[inline(always)]
    pub fn wake_port(&mut self, port: PortIdx, at: Instant) {
        self.calendar.wake(PORTS, port, at);
    }

    /// Sends a packet to arrive at `port` at instant `time`.
    #[inline(always)]
    pub fn send_packet(&mut self, port: PortIdx, packet: PacketIdx, time: Instant) {
        let window = self.calendar.window_of(time);
        let next = if window - self.calendar.window() < self.inboxes.slots() {
            self.calendar.wake_near(PORTS, port, window);
            self.inboxes.push(window, port, packet)
        } else {
            self.calendar.defer(Deferred::AtPort { port, packet }, window);
            PacketIdx::NONE
        };
        let packet = &mut self.packets[packet];
        packet.time = time;
        packet.next = next;
    }

    /// Sends a packet to arrive at `switch`, which routes it, at instant `time`.
    #[inline]
    pub fn send_to_switch(&mut self, switch: SwitchId, packet: PacketIdx, time: Instant) {
        let window = self.calendar.window_of(time);
        let record = &mut self.packets[packet];
        record.time = time;
        record.next = PacketIdx::NONE;
        if window - self.calendar.window() < self.inboxes.slots() {
            self.calendar.need(window);
            let arrival = AtSwitch { time, switch, link: record.came.link(), packet, port: PortIdx::NONE };
            self.at_switches[self.inboxes.slot(window)].push(arrival);
        } else {
            self.calendar.defer(Deferred::AtSwitch { switch, packet }, window);
        }
    }

    /// Takes what the calendar kept for the window that has just opened. It was sent before everything that was put into the
    /// window's lists directly, so it stays first among packets that arrive over one link at one time.
    pub fn take_due(&mut self, config: &Config) {
        let due: Vec<Deferred> = std::iter::from_fn(|| self.calendar.next_due()).collect();
        let window = self.calendar.window();
        for due in due.into_iter().rev() {
            match due {
                Deferred::AtPort { port, packet } => {
                    self.calendar.wake_in(PORTS, port, window);
                    if port < config.naming.nics && config.conditions.features.keeps_at_source() {
                        // They have an order of their own, and there may be very many, all lost at one instant.
                        self.packets[packet].next = self.inboxes.push(window, port, packet);
                        continue;
                    }
                    self.packets[packet].next = PacketIdx::NONE;
                    match last(self.inboxes.head(window, port), |packet| self.packets[packet].next) {
                        Some(oldest) => self.packets[oldest].next = packet,
                        None => _ = self.inboxes.push(window, port, packet),
                    }
                }
                Deferred::AtSwitch { switch, packet } => {
                    let Packet { time, came, .. } = self.packets[packet];
                    let arrival = AtSwitch { time, switch, link: came.link(), packet, port: PortIdx::NONE };
                    self.at_switches[self.inboxes.slot(window)].insert(0, arrival);
                }
            }
        }
    }

    /// Sends a packet to arrive, with its tail, at NIC `nic` at instant `time`.
    #[inline(always)]
    pub fn arrive<I: Instance>(&mut self, config: &Config, nic: PortIdx, packet: PacketIdx, time: Instant) {
        if config.has::<I>().controls && self.answer(config, nic, packet, time) {
            return;
        }
        let arrived = &mut self.packets[packet];
        arrived.time = time;
        arrived.next = PacketIdx::NONE;
        let urgent = arrived.flags.urgent();
        let queue = &mut self.receive_queues[nic];
        let tail = std::mem::replace(&mut queue.1, packet);
        if tail.is_none() {
            queue.0 = packet;
        } else {
            self.packets[tail].next = packet;
        }
        let host = config.naming.nic_host[nic];
        if urgent || !self.deferring[host] {
            self.wake_host(host, time);
        }
    }
}

/// The last of a list, if it has any.
fn last<I: Index>(first: I, next: impl Fn(I) -> I) -> Option<I> {
    let some = |index: I| (index.number() != NONE).then_some(index);
    std::iter::successors(some(first), |index| some(next(*index))).last()
}
