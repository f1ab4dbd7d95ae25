//! Laws that hold at the opening of every window, checked against the network's whole state.

use std::cmp::Reverse;

use super::fabric::Fabric;
use super::in_flight::{Deferred, InFlight};
use super::index::{LaneIdx, PacketIdx, PortIdx};
use super::nic::flows::Event as FlowEvent;
use super::packet::{Message, Packet};
use super::port::{each_lane, pool_taken};
use super::shard::Shard;
use super::switch::input_queued::Event;
use super::{Network, Totals};
use crate::error::RunError;
use crate::ids::LinkId;

impl Network {
    /// Checks that credits balance, that bytes and messages are conserved, that the occupancy table of adaptive routings
    /// agrees with what is in the queues and buffers, and that the interference matrix accounts for all waiting. Walks through
    /// everything in flight: for tests, debug builds, and the end of a run.
    ///
    /// # Errors
    /// [`RunError::Law`] with both sides of the equation that does not hold.
    pub fn check_laws(&self) -> Result<(), RunError> {
        let law = |law: String| RunError::Law { at: self.now(), law };
        self.credits_balance().map_err(law)?;
        self.messages_balance().map_err(law)?;
        if self.config().fabric.adaptive {
            self.occupancy_balances().map_err(law)?;
        }
        self.shards.iter().try_for_each(Shard::output_buffers_balance).map_err(law)?;
        self.shards.iter().try_for_each(Shard::telemetry_balances).map_err(law)?;
        if self.config().fabric.observe.counters {
            self.waiting_balances().map_err(law)?;
        }
        Ok(())
    }

    /// Per lane: credits held + credits on their way + bytes in the buffer at the far end = buffer. With priority flow control: bytes
    /// that have been sent = bytes of which the sender knows that they have left + bytes in the buffer, at no time more than that is large.
    fn credits_balance(&self) -> Result<(), String> {
        let Fabric { lanes, pool, .. } = &self.config().fabric;
        let credits = || self.config().fabric.lane_credits().map(u64::from);
        let mut full: Vec<u64> = self.graph().links().iter().flat_map(|_| credits()).collect();
        let mut held = vec![0; full.len()];
        for (link, shard, port) in self.each_port() {
            let place = link.index() * lanes;
            for (sum, lane) in held[place..][..*lanes].iter_mut().zip(&shard.lanes[port.index() * lanes..]) {
                *sum += lane.credits.booked();
            }
            if let Some(pool) = pool {
                let taken = pool_taken(&shard.lanes[port.index() * lanes..], &shard.config.fabric);
                if taken > *pool {
                    return Err(format!("link {link}: {taken} bytes are taken from a pool of {pool}"));
                }
            }
            for (lane, pauses) in shard.in_flight.pauses_of(port, *lanes) {
                let (sent, freed, peak) = pauses.booked();
                full[place + lane.index()] += sent;
                held[place + lane.index()] += freed;
                let room = self.config().fabric.buffer_of(lane);
                if peak > room {
                    return Err(format!("link {link} lane {}: {peak} bytes were in a buffer of {room}", lane.0));
                }
            }
            for (lane, bytes) in shard.in_flight.returns[port].each() {
                held[place + lane.index()] += bytes;
            }
        }
        self.for_each_queued(|packet, PacketState { buffered, .. }| {
            let place = packet.came.link().index() * lanes + packet.held.index();
            held[place] += u64::from(packet.bytes) * u64::from(buffered);
        });
        let wrong = |(place, bytes): (usize, &u64)| *bytes != full[place];
        match held.iter().enumerate().position(wrong) {
            None => Ok(()),
            Some(place) => Err(format!(
                "link {} lane {}: credits, credits on their way and bytes in the buffer make {} of {} bytes",
                place / lanes,
                place % lanes,
                held[place],
                full[place]
            )),
        }
    }

    /// Every link, with its shard and its port there.
    pub(super) fn each_port(&self) -> impl Iterator<Item = (LinkId, &Shard, PortIdx)> {
        let links = (0..).take(self.graph().links().len()).map(LinkId);
        links.map(|link| {
            let (shard, port) = self.port(link);
            (link, shard, port)
        })
    }

    /// Per link, and per lane where that is kept: occupancy = bytes of packets that have been routed to it and have not started,
    /// bytes in the buffer at the far end, and credits on their way. Where packets that wait are counted, so many have been routed to
    /// the link and have not started.
    fn occupancy_balances(&self) -> Result<(), String> {
        let (links, lanes) = (self.graph().links().len(), self.config().fabric.lanes);
        let (mut booked, mut credits) = (Vec::new(), Vec::new());
        for (_, shard, port) in self.each_port() {
            booked.push(shard.in_flight.occupancy.view(LinkId(0), &[]).ports.all[port.index()]);
        }
        for shard in &self.shards {
            let link = |port| shard.config.naming.link_of(PortIdx(port)).index();
            shard.in_flight.occupancy.for_each_credit(|port, bytes| credits.push((link(port), bytes)));
        }
        let found = self.occupancy_found(links, &credits, |link, _| link.index());
        compare_occupancy(&booked, &found, |place| format!("link {place}"))?;
        self.counts_balance()?;
        let (mut booked, mut credits) = (Vec::new(), Vec::new());
        for (_, shard, port) in self.each_port() {
            let Some(by_lane) = shard.in_flight.occupancy.view(LinkId(0), &[]).by_lane else { return Ok(()) };
            booked.extend(&by_lane.all[port.index() * lanes..][..lanes]);
        }
        for shard in &self.shards {
            let cell = |place: usize| {
                let port = u32::try_from(place / lanes).expect("invariant: links have 27-bit numbers");
                shard.config.naming.link_of(PortIdx(port)).index() * lanes + place % lanes
            };
            let visit = |place, bytes| credits.push((cell(place as usize), bytes));
            shard.in_flight.occupancy.for_each_credit_of_lanes(visit);
        }
        let cell = |link: LinkId, lane: LaneIdx| link.index() * lanes + lane.index();
        let found = self.occupancy_found(links * lanes, &credits, cell);
        compare_occupancy(&booked, &found, |place| format!("link {} lane {}", place / lanes, place % lanes))
    }

    fn counts_balance(&self) -> Result<(), String> {
        let mut found = vec![0; self.graph().links().len()];
        self.for_each_queued(|_, PacketState { next, .. }| next.iter().for_each(|link| found[link.index()] += 1));
        for (link, shard, port) in self.each_port() {
            let counted = shard.in_flight.occupancy.view(LinkId(0), &[]).ports.waiting.get(port.index());
            if let Some(counted) = counted.filter(|counted| **counted != found[link.index()]) {
                return Err(format!("link {link}: {counted} packets are counted, {} wait", found[link.index()]));
            }
        }
        Ok(())
    }

    /// The occupancy of all places (links, or lanes of links).
    fn occupancy_found(
        &self,
        places: usize,
        credits: &[(usize, u32)],
        place: impl Fn(LinkId, LaneIdx) -> usize,
    ) -> Vec<u64> {
        let mut found = vec![0_u64; places];
        self.for_each_queued(|packet, PacketState { next, buffered }| {
            found[place(packet.came.link(), packet.held)] += u64::from(packet.bytes) * u64::from(buffered);
            if let Some(next) = next {
                found[place(next, packet.lane)] += u64::from(packet.bytes);
            }
        });
        credits.iter().for_each(|&(place, bytes)| found[place] += u64::from(bytes));
        found
    }

    /// Messages that hosts have handed over and whose last packet they have not taken.
    #[must_use]
    pub fn messages_in_flight(&self) -> u64 {
        let Totals { messages_injected, messages_delivered, .. } = self.totals();
        messages_injected - messages_delivered
    }

    /// Injected = delivered + in flight, in messages and in bytes; created = received + in flight, in control packets; created = delivered +
    /// in flight, in packets of multi-packet messages.
    fn messages_balance(&self) -> Result<(), String> {
        let Totals {
            messages_injected,
            messages_delivered,
            bytes_injected,
            bytes_delivered,
            control_packets,
            control_packets_received,
            control_bytes,
            control_bytes_received,
            ..
        } = self.totals();
        let in_flight = || self.shards.iter().map(|shard| &shard.in_flight);
        let mut found = InFlightTotals::default();
        in_flight().for_each(|shard| found.count(shard, self.config().fabric.header));
        let records = || in_flight().flat_map(|shard| shard.messages.used().map(|(_, message)| message));
        let announced = in_flight().flat_map(|shard| shard.announced.values());
        let parts: i64 = records().chain(announced).map(|message| self.packets_under_way(message)).sum();
        let (messages, bytes) = records()
            .fold((found.messages, found.bytes), |(messages, bytes), message| (messages + 1, bytes + message.bytes));
        let balances = [
            ("control packets", control_packets.wrapping_sub(control_packets_received), found.controls),
            ("bytes of control packets", control_bytes.wrapping_sub(control_bytes_received), found.control_bytes),
            ("messages", messages_injected.wrapping_sub(messages_delivered), messages),
            ("bytes", bytes_injected.wrapping_sub(bytes_delivered), bytes),
            ("packets of multi-packet messages", parts.cast_unsigned(), found.parts),
        ];
        for (what, expected, found) in balances {
            if expected != found {
                return Err(format!("{} {what} should be in flight, {found} are", expected.cast_signed()));
            }
        }
        let in_pairs: usize = in_flight().map(|shard| shard.queue_pairs.messages()).sum();
        if found.paired == in_pairs {
            return Ok(());
        }
        Err(format!("queue pairs count {in_pairs} messages that have not been sent, there are {}", found.paired))
    }

    /// Packets made, less those delivered, by the record of the message.
    fn packets_under_way(&self, message: &Message) -> i64 {
        let delivered = self.config().fabric.packets_of(message.bytes) - u64::from(message.undelivered);
        i64::from(message.made) - delivered.cast_signed()
    }

    /// Packets that have been made and not taken by their hosts.
    pub(super) fn packets_in_flight(&self) -> usize {
        self.shards.iter().map(|shard| shard.in_flight.packets.len()).sum()
    }

    /// With nothing in flight: the interference matrix sums to the packets' waiting time.
    fn waiting_balances(&self) -> Result<(), String> {
        let Totals { control_packets, control_packets_received, .. } = self.totals();
        let in_flight = self.messages_in_flight() + control_packets - control_packets_received;
        if in_flight > 0 || self.packets_in_flight() > 0 {
            return Ok(());
        }
        let lanes = self.shards.iter().flat_map(|shard| &shard.lanes);
        let waited: u64 = lanes.map(|lane| lane.waited.0).sum();
        let ports = self.shards.iter().flat_map(|shard| shard.ports.rows());
        let aside: u64 = ports.map(|port| port.waiters.aside()).sum();
        let charged: u64 = self.shards.iter().map(|shard| shard.observation.interference.charged()).sum();
        if waited == charged && aside == 0 {
            return Ok(());
        }
        Err(format!("packets waited {waited} ps, {charged} ps are charged to jobs and {aside} ps to none"))
    }

    /// Every packet at, or on its way to, a switch or the queue of a switch's port, with the port's link.
    fn for_each_queued(&self, mut visit: impl FnMut(&Packet, PacketState<LinkId>)) {
        for shard in &self.shards {
            shard.for_each_queued(|packet, PacketState { next, buffered }| {
                let next = next.map(|port| shard.config.naming.link_of(port));
                visit(packet, PacketState { next, buffered });
            });
        }
    }
}

impl Shard {
    /// Telemetry = that of packets, and of notices that arrive.
    fn telemetry_balances(&self) -> Result<(), String> {
        let InFlight { packets, tags, flows, telemetry, .. } = &self.in_flight;
        let of_packets = packets.used().filter_map(|(packet, _)| tags.get(packet)).map(|tag| tag.telemetry);
        let arriving =
            flows.rows().iter().flat_map(|nic| nic.expected.values()).filter_map(|expected| match expected.event {
                FlowEvent::Notice(_, telemetry) => Some(telemetry),
                _ => None,
            });
        let owned: usize = of_packets.chain(arriving).map(|last| telemetry.links(last)).sum();
        match telemetry.kept() {
            kept if kept == owned => Ok(()),
            kept => Err(format!("telemetry of {kept} links is kept, packets and notices have that of {owned}")),
        }
    }

    /// See [`Network::for_each_queued`]; with the port.
    fn for_each_queued(&self, mut visit: impl FnMut(&Packet, PacketState<PortIdx>)) {
        self.for_each_inside(&mut visit);
        let output_queued = self.config.fabric.input_queued.is_none();
        let packets = &self.in_flight.packets;
        let mut walk = |next: Option<PortIdx>, first: PacketIdx| {
            let state = PacketState { next, buffered: output_queued || next.is_none() };
            packets.list(first, |packet| packet.next).for_each(|packet| visit(packet, state));
        };
        for (port, state) in self.ports.each().filter(|(port, _)| *port >= self.config.naming.nics) {
            for lane in each_lane(state.waiting) {
                walk(Some(port), self.lanes[port.index() * self.config.fabric.lanes + lane.index()].head);
            }
        }
        for (port, first) in self.in_flight.inboxes.heads().filter(|(port, _)| *port >= self.config.naming.nics) {
            walk(Some(port), first);
        }
        for arrival in self.in_flight.at_switches.iter().flatten() {
            walk(None, arrival.packet);
        }
        for due in self.in_flight.calendar.deferred() {
            let (next, packet) = match due {
                Deferred::AtPort { port, packet } if port >= self.config.naming.nics => (Some(port), packet),
                Deferred::AtSwitch { packet, .. } => (None, packet),
                Deferred::AtPort { .. } => continue,
            };
            visit(&packets[packet], PacketState { next, buffered: true });
        }
    }

    /// Every packet inside an input-queued switch but not in the queue of an output port.
    fn for_each_inside(&self, visit: &mut impl FnMut(&Packet, PacketState<PortIdx>)) {
        let packets = &self.in_flight.packets;
        for crossbar in self.crossbars.each.rows() {
            let mut visit = |packet: &Packet, buffered| {
                visit(packet, PacketState { next: Some(crossbar.port_of(crossbar.output_of(packet))), buffered });
            };
            for queue in crossbar.queues.iter().flatten() {
                packets.list(queue.head, |packet| packet.next).for_each(|packet| visit(packet, true));
            }
            for Reverse((.., event)) in &crossbar.events {
                match *event {
                    Event::Arrive { packet } => visit(&packets[packet], true),
                    Event::Join { packet } => visit(&packets[packet], false),
                    _ => {}
                }
            }
        }
    }

    /// Per lane of an output of an input-queued switch: free bytes + bytes of packets that cross, wait or are transmitted =
    /// output buffer.
    fn output_buffers_balance(&self) -> Result<(), String> {
        let Some(params) = &self.config.fabric.input_queued else { return Ok(()) };
        let lanes = self.config.fabric.lanes;
        let mut taken = vec![0_u64; self.lanes.len()];
        self.for_each_queued(|packet, place| {
            if let PacketState { next: Some(port), buffered: false } = place {
                taken[port.index() * lanes + packet.lane.index()] += u64::from(packet.bytes);
            }
        });
        for crossbar in self.crossbars.each.rows() {
            let first = crossbar.port_of(0).index() * lanes;
            for Reverse((.., event)) in &crossbar.events {
                if let Event::Left { output, lane, bytes, .. } = event {
                    taken[first + *output as usize * lanes + lane.index()] += u64::from(*bytes);
                }
            }
            for (place, room) in crossbar.rooms.iter().enumerate() {
                let (free, taken) = (u64::from(room.free), taken[first + place]);
                if free + taken != u64::from(params.output_buffer) {
                    let (output, lane) = (place / lanes, place % lanes);
                    return Err(format!(
                        "link {} lane {lane}: {free} bytes free and {taken} bytes taken in an output buffer of {}",
                        crossbar.link_of(0).index() + output,
                        params.output_buffer
                    ));
                }
            }
        }
        Ok(())
    }
}

/// What is in flight, by the packets: messages of one packet, packets of others, control packets.
#[derive(Default)]
struct InFlightTotals {
    messages: u64,
    bytes: u64,
    parts: u64,
    controls: u64,
    control_bytes: u64,
    /// Packets of a queue pair that have not started.
    paired: usize,
}

impl InFlightTotals {
    /// Adds the packets of a shard. A trimmed packet that has reached its host is counted by its notice.
    fn count(&mut self, shard: &InFlight, header: u32) {
        for (index, packet) in shard.packets.used() {
            self.paired += usize::from(shard.at_source(index).pair.is_some());
            let tag = shard.tags.get(index).copied().unwrap_or_default();
            let payload = |bytes: u32| u64::from(bytes - header);
            if tag.control {
                self.controls += 1;
                self.control_bytes += payload(packet.bytes);
            }
            let data = if tag.control { tag.trimmed.map(|remains| remains.flags) } else { Some(packet.flags) };
            let Some(flags) = data else { continue };
            if flags.whole() {
                self.messages += 1;
                self.bytes += payload(if tag.whole > 0 { tag.whole } else { packet.bytes });
            } else {
                self.parts += 1;
            }
        }
    }
}

/// Where a packet is.
#[derive(Clone, Copy)]
struct PacketState<N> {
    /// The port that it has been routed to, or its link.
    next: Option<N>,
    /// It occupies the buffer of the link that it came over.
    buffered: bool,
}

/// Compares the occupancy table with what has been found.
fn compare_occupancy(table: &[u32], found: &[u64], name: impl Fn(usize) -> String) -> Result<(), String> {
    match table.iter().zip(found).position(|(&booked, &found)| u64::from(booked) != found) {
        None => Ok(()),
        Some(place) => Err(format!(
            "{}: the occupancy table has {} bytes, {} are queued or lack credits",
            name(place),
            table[place],
            found[place]
        )),
    }
}
