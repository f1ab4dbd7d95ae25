//! Laws that hold at the opening of every window, checked against the network's whole state.

use super::Network;
use super::in_flight::Deferred;
use super::packet::{Message, Packet};
use crate::error::RunError;
use crate::kernel::NONE;

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
        if self.config.adaptive {
            self.occupancy_balances().map_err(law)?;
        }
        if self.config.observe.counters {
            self.waiting_balances().map_err(law)?;
        }
        Ok(())
    }

    /// Per lane: credits held + credits on their way + bytes in the buffer at the far end = buffer.
    fn credits_balance(&self) -> Result<(), String> {
        let mut held: Vec<u64> = self.lanes.iter().map(|lane| lane.credits.booked()).collect();
        for (port, returns) in self.in_flight.returns.iter().enumerate() {
            for (lane, bytes) in returns.each() {
                held[port * self.config.lanes + usize::from(lane)] += bytes;
            }
        }
        self.for_each_queued(|_, packet| {
            held[packet.came.link() as usize * self.config.lanes + usize::from(packet.held)] += u64::from(packet.bytes);
        });
        match held.iter().position(|&bytes| bytes != self.config.parameters.buffer.0) {
            None => Ok(()),
            Some(place) => Err(format!(
                "link {} lane {}: credits, credits on their way and bytes in the buffer make {} of {} bytes",
                place / self.config.lanes,
                place % self.config.lanes,
                held[place],
                self.config.parameters.buffer.0
            )),
        }
    }

    /// Per link, and per lane where that is kept: occupancy = bytes of packets that have been routed to it and have not started; and
    /// bytes transmitted for which credits have not been returned = bytes in the buffer at the far end + credits on their way.
    fn occupancy_balances(&self) -> Result<(), String> {
        let (occupancy, lanes) = (&self.in_flight.occupancy, self.config.lanes);
        let view = occupancy.view(&self.config.first_lane);
        let mut credits = Vec::new();
        occupancy.for_each_credit(|link, bytes| credits.push((link as usize, bytes)));
        let found = self.occupancy_found(self.ports.len(), &credits, |link, _| link as usize);
        compare_occupancy((view.queued, view.used), found, |place| format!("link {place}"))?;
        let Some(by_lane) = view.by_lane else { return Ok(()) };
        credits.clear();
        occupancy.for_each_credit_of_lanes(|cell, bytes| credits.push((cell as usize, bytes)));
        let cell = |link, lane| link as usize * lanes + usize::from(lane);
        let found = self.occupancy_found(self.ports.len() * lanes, &credits, cell);
        compare_occupancy((by_lane.queued, by_lane.used), found, |place| {
            format!("link {} lane {}", place / lanes, place % lanes)
        })
    }

    /// Bytes queued, and bytes without credits returned, of all places (links, or lanes of links).
    fn occupancy_found(
        &self,
        places: usize,
        credits: &[(usize, u32)],
        place: impl Fn(u32, u8) -> usize,
    ) -> (Vec<u64>, Vec<u64>) {
        let (mut queued, mut used) = (vec![0_u64; places], vec![0_u64; places]);
        self.for_each_queued(|port, packet| {
            used[place(packet.came.link(), packet.held)] += u64::from(packet.bytes);
            if let Some(port) = port {
                queued[place(port, packet.lane)] += u64::from(packet.bytes);
            }
        });
        credits.iter().for_each(|&(place, bytes)| used[place] += u64::from(bytes));
        (queued, used)
    }

    /// Messages that hosts have handed over and whose last packet they have not taken.
    #[must_use]
    pub fn messages_in_flight(&self) -> u64 {
        self.in_flight.totals.messages_injected - self.in_flight.totals.messages_delivered
    }

    /// Injected = delivered + in flight, in messages and in bytes; cut = delivered + in flight, in packets.
    fn messages_balance(&self) -> Result<(), String> {
        // A record that is not in use has nothing undelivered.
        let alive =
            || self.in_flight.messages.slots().map(|(_, message)| message).filter(|message| message.undelivered > 0);
        let balances = [
            (
                "messages",
                self.in_flight.totals.messages_injected - self.in_flight.totals.messages_delivered,
                alive().count() as u64 + self.in_flight.single_packet.messages,
            ),
            (
                "bytes",
                self.in_flight.totals.bytes_injected - self.in_flight.totals.bytes_delivered,
                alive().map(|message| message.bytes).sum::<u64>() + self.in_flight.single_packet.bytes,
            ),
            (
                "packets",
                self.in_flight.packets.len() as u64,
                alive().map(|message| self.packets_under_way(message)).sum::<u64>()
                    + self.in_flight.single_packet.messages,
            ),
        ];
        for (what, expected, found) in balances {
            if expected != found {
                return Err(format!("{expected} {what} should be in flight, {found} are"));
            }
        }
        Ok(())
    }

    fn packets_under_way(&self, message: &Message) -> u64 {
        let delivered = self.config.packets_of(message.bytes) - u64::from(message.undelivered);
        u64::from(message.sent) - delivered
    }

    /// With nothing in flight: the interference matrix sums to the packets' waiting time.
    fn waiting_balances(&self) -> Result<(), String> {
        if !self.in_flight.messages.is_empty() || !self.in_flight.packets.is_empty() {
            return Ok(());
        }
        let waited: u64 = self.lanes.iter().map(|lane| lane.waited).sum();
        let aside: u64 = self.ports.iter().map(|port| port.waiters.aside()).sum();
        let charged = self.observation.interference.charged();
        if waited == charged && aside == 0 {
            return Ok(());
        }
        Err(format!("packets waited {waited} ps, {charged} ps are charged to jobs and {aside} ps to none"))
    }

    /// Every packet at, or on its way to, the queue of a switch's port, with the port if the packet has been routed.
    fn for_each_queued(&self, mut visit: impl FnMut(Option<u32>, &Packet)) {
        let mut walk = |port: Option<u32>, mut record: u32| {
            while record != NONE {
                visit(port, &self.in_flight.packets[record]);
                record = self.in_flight.packets[record].next;
            }
        };
        for (port, state) in (0_u32..).zip(&self.ports).skip(self.config.nics as usize) {
            let mut waiting = state.waiting;
            while waiting != 0 {
                let place = port as usize * self.config.lanes + waiting.trailing_zeros() as usize;
                walk(Some(port), self.lanes[place].head);
                waiting &= waiting - 1;
            }
        }
        for (port, record) in self.in_flight.inboxes.heads() {
            if port >= self.config.nics {
                walk(Some(port), record);
            }
        }
        for (_, record) in self.in_flight.switch_inboxes.heads() {
            walk(None, record);
        }
        for due in self.in_flight.calendar.deferred() {
            match due {
                Deferred::AtPort { port, record } if port >= self.config.nics => {
                    visit(Some(port), &self.in_flight.packets[record])
                }
                Deferred::AtSwitch { record, .. } => visit(None, &self.in_flight.packets[record]),
                Deferred::AtPort { .. } => {}
            }
        }
    }
}

/// Compares the occupancy table, queued and unreturned, with what has been found.
fn compare_occupancy(
    (table_queued, table_used): (&[u32], &[u32]),
    (queued, used): (Vec<u64>, Vec<u64>),
    name: impl Fn(usize) -> String,
) -> Result<(), String> {
    let entries = table_queued.iter().zip(table_used).zip(queued.iter().zip(&used));
    for (place, ((&queue, &unreturned), (&queued, &used))) in entries.enumerate() {
        if (u64::from(queue), u64::from(unreturned)) != (queued, used) {
            return Err(format!(
                "{}: the occupancy table has {queue} bytes queued and {unreturned} bytes without credits returned, there \
                 are {queued} and {used}",
                name(place)
            ));
        }
    }
    Ok(())
}
