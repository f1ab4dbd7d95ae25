//! A store of records with stable indices; the slot freed last is used first, so that it is still in the cache.

use super::prefetch_at;

/// No record.
pub const NONE: u32 = u32::MAX;

/// Records by index, with a list of free slots.
#[derive(Clone, Debug)]
pub struct Pool<T> {
    records: Vec<T>,
    free: Vec<u32>,
}

impl<T> Default for Pool<T> {
    fn default() -> Self {
        Self { records: Vec::new(), free: Vec::new() }
    }
}

impl<T> Pool<T> {
    /// Stores a record and returns its index.
    #[inline]
    pub fn insert(&mut self, record: T) -> u32 {
        if let Some(index) = self.free.pop() {
            self.records[index as usize] = record;
            index
        } else {
            self.records.push(record);
            u32::try_from(self.records.len() - 1).expect("invariant: fewer than 2^32 records in flight")
        }
    }

    /// Gives a slot back. The record stays readable until the slot is used again.
    #[inline]
    pub fn remove(&mut self, index: u32) {
        self.free.push(index);
    }

    /// The record in a slot; `None` if there is no such slot.
    #[inline]
    #[must_use]
    pub fn get(&self, index: u32) -> Option<&T> {
        self.records.get(index as usize)
    }

    /// The same, to change it.
    #[inline]
    #[must_use]
    pub fn get_mut(&mut self, index: u32) -> Option<&mut T> {
        self.records.get_mut(index as usize)
    }

    /// A record will be needed soon; none if there is none.
    #[inline(always)]
    pub fn prefetch(&self, index: u32) {
        prefetch_at(&self.records, index as usize);
    }

    /// Every slot's record, in use or not.
    pub fn slots(&self) -> impl Iterator<Item = (u32, &T)> {
        (0..).zip(&self.records)
    }

    /// The records in use.
    pub fn used(&self) -> impl Iterator<Item = (u32, &T)> {
        let mut used = vec![true; self.records.len()];
        self.free.iter().for_each(|index| used[*index as usize] = false);
        self.slots().zip(used).filter_map(|(slot, used)| used.then_some(slot))
    }

    /// How many records are in use.
    #[must_use]
    pub fn len(&self) -> usize {
        self.records.len() - self.free.len()
    }

    /// Whether no record is in use.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl<T> std::ops::Index<u32> for Pool<T> {
    type Output = T;
    #[inline]
    fn index(&self, index: u32) -> &T {
        &self.records[index as usize]
    }
}

impl<T> std::ops::IndexMut<u32> for Pool<T> {
    #[inline]
    fn index_mut(&mut self, index: u32) -> &mut T {
        &mut self.records[index as usize]
    }
}
