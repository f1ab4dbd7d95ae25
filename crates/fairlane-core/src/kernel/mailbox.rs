//! Mailboxes: what arrives where in each of the next windows, as lists of records that the caller links.

use std::marker::PhantomData;

use super::{Index, NONE, prefetch_at};

/// Arrivals at places (ports, say) in each of the next windows: heads of lists, by window modulo the number of slots, then
/// place.
#[derive(Clone, Debug)]
pub struct Mailboxes<P = u32, R = u32> {
    heads: Vec<R>,
    /// The number of slots, a power of two, less one.
    mask: u64,
    places: usize,
    place: PhantomData<P>,
}

impl<P: Index, R: Index> Mailboxes<P, R> {
    /// Empty lists for so many windows, a power of two.
    #[must_use]
    pub fn new(slots: u64, places: usize) -> Self {
        let heads = vec![R::from_number(NONE); usize::try_from(slots).expect("invariant: few slots") * places];
        Self { heads, mask: slots - 1, places, place: PhantomData }
    }

    /// Windows that have lists, from the open one on.
    #[inline]
    #[must_use]
    pub fn slots(&self) -> u64 {
        self.mask + 1
    }

    /// The slot of a window: less than [`Mailboxes::slots`].
    #[inline]
    #[must_use]
    #[allow(clippy::cast_possible_truncation, reason = "below the number of slots")]
    pub fn slot(&self, window: u64) -> usize {
        (window & self.mask) as usize
    }

    #[inline]
    fn index(&self, window: u64, place: P) -> usize {
        self.slot(window) * self.places + place.place()
    }

    /// The heads of all lists of a window.
    #[inline]
    #[must_use]
    pub fn heads_in(&self, window: u64) -> &[R] {
        &self.heads[self.slot(window) * self.places..][..self.places]
    }

    /// A list will be added to, or taken, soon.
    #[inline(always)]
    pub fn prefetch(&self, window: u64, place: P) {
        prefetch_at(&self.heads, self.index(window, place));
    }

    /// Puts a record at the front of a list and returns what was there.
    #[inline]
    pub fn push(&mut self, window: u64, place: P, record: R) -> R {
        let index = self.index(window, place);
        std::mem::replace(&mut self.heads[index], record)
    }

    /// Takes a list by its head.
    #[inline]
    pub fn take(&mut self, window: u64, place: P) -> R {
        self.push(window, place, R::from_number(NONE))
    }

    /// The head of a list.
    #[inline]
    #[must_use]
    pub fn head(&self, window: u64, place: P) -> R {
        self.heads[self.index(window, place)]
    }

    /// Every list that is not empty: place and head.
    pub fn heads(&self) -> impl Iterator<Item = (P, R)> {
        let lists = self.heads.chunks(self.places.max(1)).flat_map(|slot| (0..).zip(slot));
        lists.filter(|(_, head)| head.number() != NONE).map(|(place, head)| (P::from_number(place), *head))
    }

    /// Bytes that they take for every place.
    #[must_use]
    pub fn bytes_per_place(&self) -> usize {
        self.heads.len() / self.places.max(1) * size_of::<u32>()
    }
}
