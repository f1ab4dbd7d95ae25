//! Mailboxes: what arrives where in each of the next windows, as lists of records that the caller links.

use super::{NONE, prefetch_at};

/// What arrives where (at ports, say) in each of the next windows: heads of lists, by window modulo the number of slots, then
/// place.
#[derive(Clone, Debug)]
pub struct Mailboxes {
    heads: Vec<u32>,
    /// A power of two.
    slots: u64,
    places: usize,
}

impl Mailboxes {
    /// Empty lists for so many windows, a power of two.
    #[must_use]
    pub fn new(slots: u64, places: usize) -> Self {
        let heads = vec![NONE; usize::try_from(slots).expect("invariant: few slots") * places];
        Self { heads, slots, places }
    }

    /// Windows that have lists, from the open one on.
    #[inline]
    #[must_use]
    pub fn slots(&self) -> u64 {
        self.slots
    }

    /// The slot of a window: less than [`Mailboxes::slots`].
    #[inline]
    #[must_use]
    #[allow(clippy::cast_possible_truncation, reason = "below the number of slots")]
    pub fn slot(&self, window: u64) -> usize {
        (window & (self.slots - 1)) as usize
    }

    #[inline]
    fn index(&self, window: u64, place: u32) -> usize {
        self.slot(window) * self.places + place as usize
    }

    /// The heads of all lists of a window.
    #[inline]
    #[must_use]
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
    #[must_use]
    pub fn head(&self, window: u64, place: u32) -> u32 {
        self.heads[self.index(window, place)]
    }

    /// Every list that is not empty: place and head.
    pub fn heads(&self) -> impl Iterator<Item = (u32, u32)> {
        let lists = self.heads.chunks(self.places.max(1)).flat_map(|slot| (0..).zip(slot));
        lists.filter(|(_, head)| **head != NONE).map(|(place, head)| (place, *head))
    }

    /// Bytes that they take for every place.
    #[must_use]
    pub fn bytes_per_place(&self) -> usize {
        self.heads.len() / self.places.max(1) * size_of::<u32>()
    }
}
