//! What is between ports: packets and messages on their way, credits on their way back, and who is to run when.

use super::Totals;
use super::crossing::Crossings;
use super::fixed::Fixed;
use super::loads::LoadBook;
use super::packet::{Message, Packet, Whole};
use super::port::Returning;
use crate::kernel::{Calendar, Due, NONE, Pool, prefetch_at};
use crate::units::Instant;

#[derive(Clone)]
pub(super) struct Flight {
    pub calendar: Calendar,
    /// What arrives at ports.
    pub inboxes: Inboxes,
    /// What comes to switches that route it then.
    pub crossings: Crossings,
    pub loads: LoadBook,
    /// Packets on their way to each NIC: head and tail of a queue.
    pub incoming: Vec<(u32, u32)>,
    pub packets: Pool<Packet>,
    pub messages: Pool<Message>,
    /// By port.
    pub returning: Vec<Returning>,
    /// From when on each NIC takes another message; empty where none has a gap between messages.
    pub next_offer: Vec<u64>,
    /// Hosts that look at what comes to them only when they run by themselves, unless it is prompt.
    pub patient: Vec<bool>,
    pub whole: Whole,
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

    /// Sends a packet to `switch`, which routes it at instant `time`.
    #[inline]
    pub fn send_crossing(&mut self, switch: u32, record: u32, time: u64) {
        let window = self.calendar.window_of(Instant(time));
        let packet = &mut self.packets[record];
        packet.time = time;
        if self.calendar.occupy(window) {
            self.crossings.push(window, switch, (time, packet.came.link()), record);
        } else {
            self.calendar.defer(Due::Crossing { switch, record }, window);
        }
    }

    /// Returns what follows the record in its list.
    #[inline(always)]
    fn send(&mut self, port: u32, record: u32, time: u64) -> u32 {
        let window = self.calendar.window_of(Instant(time));
        if window - self.calendar.window() < self.inboxes.slots {
            self.calendar.wake_port_in(port, window);
            self.inboxes.push(window, port, record)
        } else {
            self.calendar.defer(Due::Arrival { port, record }, window);
            NONE
        }
    }

    /// Takes what the calendar kept for the window that has just opened. It was sent before all that was put into the
    /// window's lists directly: of packets that come over one link at one time, it stays ahead.
    pub fn take_due(&mut self, fixed: &Fixed) {
        let due: Vec<Due> = std::iter::from_fn(|| self.calendar.next_due()).collect();
        let window = self.calendar.window();
        for (place, due) in due.into_iter().enumerate().rev() {
            match due {
                Due::Arrival { port, record } if port < fixed.nics => {
                    self.messages[record].next = self.inboxes.push(window, port, record);
                }
                Due::Arrival { port, record } => {
                    // Lists have the newest first.
                    self.packets[record].next = NONE;
                    let mut oldest = self.inboxes.head(window, port);
                    if oldest == NONE {
                        self.inboxes.push(window, port, record);
                        continue;
                    }
                    while self.packets[oldest].next != NONE {
                        oldest = self.packets[oldest].next;
                    }
                    self.packets[oldest].next = record;
                }
                Due::Crossing { switch, record } => {
                    let packet = &self.packets[record];
                    self.crossings.push_deferred(window, switch, (packet.time, packet.came.link()), record, place);
                }
                Due::Host(_) | Due::Port(_) => {}
            }
        }
    }

    /// A packet will be at NIC `nic` at instant `time`.
    #[inline(always)]
    pub fn arrive(&mut self, fixed: &Fixed, nic: u32, record: u32, time: u64) {
        let packet = &mut self.packets[record];
        packet.time = time;
        packet.next = NONE;
        let prompt = packet.load.prompt();
        let queue = &mut self.incoming[nic as usize];
        let tail = std::mem::replace(&mut queue.1, record);
        if tail == NONE {
            queue.0 = record;
        } else {
            self.packets[tail].next = record;
        }
        let host = fixed.nic_host[nic as usize];
        if prompt || !self.patient[host as usize] {
            self.calendar.wake_host(host, Instant(time));
        }
    }
}

/// What arrives where (at ports, say) in each of the next windows: heads of lists, by window modulo the number of slots, then
/// place.
#[derive(Clone)]
pub(super) struct Inboxes {
    heads: Vec<u32>,
    /// A power of two.
    slots: u64,
    places: usize,
}

impl Inboxes {
    pub fn new(slots: u64, places: usize) -> Self {
        let heads = vec![NONE; usize::try_from(slots).expect("invariant: few slots") * places];
        Self { heads, slots, places }
    }

    #[inline]
    fn index(&self, window: u64, place: u32) -> usize {
        #[allow(clippy::cast_possible_truncation, reason = "below the number of slots")]
        let slot = (window & (self.slots - 1)) as usize;
        slot * self.places + place as usize
    }

    /// The heads of all lists of a window.
    #[inline]
    pub fn heads_in(&self, window: u64) -> &[u32] {
        &self.heads[self.index(window, 0)..][..self.places]
    }

    /// A list will be added to, or taken, soon.
    #[inline(always)]
    pub fn prefetch(&self, window: u64, place: u32) {
        prefetch_at(&self.heads, self.index(window, place));
    }

    /// Puts a record at the front of a list and returns what was there.
    #[inline]
    pub fn push(&mut self, window: u64, place: u32, record: u32) -> u32 {
        let index = self.index(window, place);
        std::mem::replace(&mut self.heads[index], record)
    }

    /// Takes a list by its head.
    #[inline]
    pub fn take(&mut self, window: u64, place: u32) -> u32 {
        self.push(window, place, NONE)
    }

    /// The head of a list.
    #[inline]
    pub fn head(&self, window: u64, place: u32) -> u32 {
        self.heads[self.index(window, place)]
    }

    /// Every list that is not empty: place and head.
    pub fn heads(&self) -> impl Iterator<Item = (u32, u32)> {
        let lists = self.heads.chunks(self.places.max(1)).flat_map(|slot| (0..).zip(slot));
        lists.filter(|(_, head)| **head != NONE).map(|(place, head)| (place, *head))
    }

    /// Bytes that they take for every place.
    pub fn bytes_per_place(&self) -> usize {
        self.heads.len() / self.places * size_of::<u32>()
    }
}
