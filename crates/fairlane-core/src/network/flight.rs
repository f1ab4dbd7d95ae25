//! What is between ports: packets and messages on their way, credits on their way back, and who is to run when.

use super::Totals;
use super::fixed::Fixed;
use super::packet::{Message, Packet};
use super::port::Returning;
use crate::kernel::{Calendar, NONE, Pool};
use crate::units::Instant;

#[derive(Clone)]
pub(super) struct Flight {
    pub calendar: Calendar,
    pub inboxes: Inboxes,
    /// Packets on their way to each NIC: head and tail of a queue.
    pub incoming: Vec<(u32, u32)>,
    pub packets: Pool<Packet>,
    pub messages: Pool<Message>,
    /// By port.
    pub returning: Vec<Returning>,
    /// How many messages have been handed in.
    pub sequence: u64,
    pub totals: Totals,
}

impl Flight {
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

    /// Returns what follows the record in its list.
    #[inline(always)]
    fn send(&mut self, port: u32, record: u32, time: u64) -> u32 {
        let window = self.calendar.window_of(Instant(time));
        if window - self.calendar.window() < self.inboxes.slots {
            self.calendar.wake_port_in(port, window);
            self.inboxes.push(window, port, record)
        } else {
            self.calendar.defer(port, record, window);
            NONE
        }
    }

    /// Takes what the calendar kept for the window that has just opened.
    pub fn take_due(&mut self, fixed: &Fixed) {
        while let Some((port, record)) = self.calendar.next_due() {
            let next = self.inboxes.push(self.calendar.window(), port, record);
            if port < fixed.nics {
                self.messages[record].next = next;
            } else {
                self.packets[record].next = next;
            }
        }
    }

    /// A packet will be at NIC `nic` at instant `time`.
    #[inline(always)]
    pub fn arrive(&mut self, fixed: &Fixed, nic: u32, record: u32, time: u64) {
        let packet = &mut self.packets[record];
        packet.time = time;
        packet.next = NONE;
        let queue = &mut self.incoming[nic as usize];
        let tail = std::mem::replace(&mut queue.1, record);
        if tail == NONE {
            queue.0 = record;
        } else {
            self.packets[tail].next = record;
        }
        self.calendar.wake_host(fixed.nic_host[nic as usize], Instant(time));
    }
}

/// What arrives at each port in each of the next windows: heads of lists, by window modulo the number of slots, then port.
#[derive(Clone)]
pub(super) struct Inboxes {
    heads: Vec<u32>,
    /// A power of two.
    slots: u64,
    ports: usize,
}

impl Inboxes {
    pub fn new(slots: u64, ports: usize) -> Self {
        let heads = vec![NONE; usize::try_from(slots).expect("invariant: few slots") * ports];
        Self { heads, slots, ports }
    }

    #[inline]
    fn place(&self, window: u64, port: u32) -> usize {
        #[allow(clippy::cast_possible_truncation, reason = "below the number of slots")]
        let slot = (window & (self.slots - 1)) as usize;
        slot * self.ports + port as usize
    }

    /// Puts a record at the front of a list and returns what was there.
    #[inline]
    fn push(&mut self, window: u64, port: u32, record: u32) -> u32 {
        let place = self.place(window, port);
        std::mem::replace(&mut self.heads[place], record)
    }

    /// Takes a list by its head.
    #[inline]
    pub fn take(&mut self, window: u64, port: u32) -> u32 {
        self.push(window, port, NONE)
    }

    /// The head of a list.
    #[inline]
    pub fn head(&self, window: u64, port: u32) -> u32 {
        self.heads[self.place(window, port)]
    }

    /// Every list that is not empty: port and head.
    pub fn heads(&self) -> impl Iterator<Item = (u32, u32)> {
        let lists = self.heads.chunks(self.ports).flat_map(|slot| (0..).zip(slot));
        lists.filter(|(_, head)| **head != NONE).map(|(port, head)| (port, *head))
    }

    /// Bytes that they take for every port.
    pub fn bytes_per_port(&self) -> usize {
        self.heads.len() / self.ports * size_of::<u32>()
    }
}
