//! A store of records with stable indices; the slot freed last is used first, so that it is still in the cache.

use std::marker::PhantomData;

use super::{Index, NONE, prefetch_at};

/// Records by index, with a list of free slots.
#[derive(Clone, Debug)]
pub struct Pool<T, I = u32> {
    records: Vec<T>,
    free: Vec<u32>,
    /// Whether a slot is in use: that none is read when it is not is checked where assertions are.
    #[cfg(debug_assertions)]
    in_use: Vec<bool>,
    index: PhantomData<I>,
}

impl<T, I> Default for Pool<T, I> {
    fn default() -> Self {
        Self {
            records: Vec::new(),
            free: Vec::new(),
            #[cfg(debug_assertions)]
            in_use: Vec::new(),
            index: PhantomData,
        }
    }
}

impl<T, I: Index> Pool<T, I> {
    /// Stores a record and returns its index.
    #[inline]
    pub fn insert(&mut self, record: T) -> I {
        let index = I::from_number(if let Some(index) = self.free.pop() {
            self.records[index as usize] = record;
            index
        } else {
            self.records.push(record);
            u32::try_from(self.records.len() - 1).expect("invariant: fewer than 2^32 records in flight")
        });
        #[cfg(debug_assertions)]
        {
            self.in_use.resize(self.records.len(), true);
            self.in_use[index.place()] = true;
        }
        index
    }

    /// Takes a record out.
    #[inline]
    pub fn take(&mut self, index: I) -> T
    where
        T: Copy,
    {
        let record = self[index];
        self.free.push(index.number());
        #[cfg(debug_assertions)]
        (self.in_use[index.place()] = false);
        record
    }

    /// Refuses to read a slot that is not in use.
    #[inline(always)]
    fn check(&self, index: I) {
        #[cfg(debug_assertions)]
        assert!(self.in_use[index.place()], "invariant: no record is read after it was taken out");
        #[cfg(not(debug_assertions))]
        let _ = index;
    }

    /// The record in a slot; `None` if there is no such slot.
    #[inline]
    #[must_use]
    pub fn get(&self, index: I) -> Option<&T> {
        self.records.get(index.place())
    }

    /// A record will be needed soon; none if there is none.
    #[inline(always)]
    pub fn prefetch(&self, index: I) {
        prefetch_at(&self.records, index.place());
    }

    /// Every slot's record, in use or not.
    pub fn slots(&self) -> impl Iterator<Item = (I, &T)> {
        (0..).map(I::from_number).zip(&self.records)
    }

    /// The records in use, with their indices.
    pub fn used(&self) -> impl Iterator<Item = (I, &T)> {
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

    /// The records of a list, from its first on, given what follows each: an index, or [`NONE`].
    pub fn list<'a>(&'a self, first: I, next: impl Fn(&T) -> I + 'a) -> impl Iterator<Item = &'a T> {
        let mut index = first;
        std::iter::from_fn(move || {
            let record = (index.number() != NONE).then(|| &self[index])?;
            index = next(record);
            Some(record)
        })
    }
}

impl<T, I: Index> std::ops::Index<I> for Pool<T, I> {
    type Output = T;
    #[inline]
    fn index(&self, index: I) -> &T {
        self.check(index);
        &self.records[index.place()]
    }
}

impl<T, I: Index> std::ops::IndexMut<I> for Pool<T, I> {
    #[inline]
    fn index_mut(&mut self, index: I) -> &mut T {
        self.check(index);
        &mut self.records[index.place()]
    }
}
