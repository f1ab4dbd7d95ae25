//! Indices of things of one kind, and tables by them, so that a number of one kind is not taken for one of another.

use std::marker::PhantomData;

use crate::ids::{LinkId, SwitchId};

/// The number of no record.
pub const NONE: u32 = u32::MAX;

/// A number of things of one kind: 0, 1, 2 ..., or [`NONE`].
pub trait Index: Copy {
    /// The thing with this number.
    fn from_number(number: u32) -> Self;

    /// Its number.
    fn number(self) -> u32;

    /// Its place in a table.
    #[inline(always)]
    fn place(self) -> usize {
        self.number() as usize
    }
}

impl Index for u32 {
    #[inline(always)]
    fn from_number(number: u32) -> Self {
        number
    }

    #[inline(always)]
    fn number(self) -> u32 {
        self
    }
}

impl Index for LinkId {
    #[inline(always)]
    fn from_number(number: u32) -> Self {
        Self(number)
    }

    #[inline(always)]
    fn number(self) -> u32 {
        self.0
    }
}

impl Index for SwitchId {
    #[inline(always)]
    fn from_number(number: u32) -> Self {
        Self(number)
    }

    #[inline(always)]
    fn number(self) -> u32 {
        self.0
    }
}

/// A table with a row for each thing of a kind.
#[derive(Clone, Debug)]
pub struct Indexed<I, T> {
    rows: Vec<T>,
    index: PhantomData<I>,
}

impl<I: Index, T> Indexed<I, T> {
    /// So many equal rows.
    #[must_use]
    pub fn of(row: T, rows: usize) -> Self
    where
        T: Clone,
    {
        vec![row; rows].into()
    }

    /// The rows.
    #[must_use]
    #[inline(always)]
    pub fn rows(&self) -> &[T] {
        &self.rows
    }

    /// How many rows there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// A row, if there is one.
    #[must_use]
    #[inline]
    pub fn get(&self, index: I) -> Option<&T> {
        self.rows.get(index.place())
    }

    /// A row to change, if there is one.
    #[must_use]
    pub fn get_mut(&mut self, index: I) -> Option<&mut T> {
        self.rows.get_mut(index.place())
    }

    /// Adds equal rows up to that of an index, if it has none.
    pub fn grow_to(&mut self, index: I, row: T)
    where
        T: Clone,
    {
        if self.rows.len() <= index.place() {
            self.rows.resize(index.place() + 1, row);
        }
    }

    /// All rows with their indices.
    pub fn each(&self) -> impl Iterator<Item = (I, &T)> {
        (0..).map(I::from_number).zip(&self.rows)
    }
}

impl<I, T> Default for Indexed<I, T> {
    fn default() -> Self {
        Vec::new().into()
    }
}

impl<I, T> From<Vec<T>> for Indexed<I, T> {
    fn from(rows: Vec<T>) -> Self {
        Self { rows, index: PhantomData }
    }
}

impl<I, T> FromIterator<T> for Indexed<I, T> {
    fn from_iter<R: IntoIterator<Item = T>>(rows: R) -> Self {
        rows.into_iter().collect::<Vec<T>>().into()
    }
}

impl<I: Index, T> std::ops::Index<I> for Indexed<I, T> {
    type Output = T;
    #[inline(always)]
    fn index(&self, index: I) -> &T {
        &self.rows[index.place()]
    }
}

impl<I: Index, T> std::ops::IndexMut<I> for Indexed<I, T> {
    #[inline(always)]
    fn index_mut(&mut self, index: I) -> &mut T {
        &mut self.rows[index.place()]
    }
}
