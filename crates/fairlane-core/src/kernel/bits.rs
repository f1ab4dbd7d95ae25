//! Dense sets of indices.

use super::Index;

/// Several sets of indices below one bound, by slot.
#[derive(Clone, Debug)]
pub struct Bits {
    words: Vec<u64>,
    /// Words of one slot.
    width: usize,
}

impl Bits {
    /// As many empty sets as there are slots, of indices below `len`.
    #[must_use]
    pub fn new(slots: usize, len: usize) -> Self {
        let width = len.div_ceil(64);
        Self { words: vec![0; slots * width], width }
    }

    /// Adds an index to the set of a slot.
    #[inline]
    pub fn insert(&mut self, slot: usize, index: u32) {
        self.words[slot * self.width + index as usize / 64] |= 1 << (index % 64);
    }

    /// Takes an index from the set of a slot.
    #[inline]
    pub fn remove(&mut self, slot: usize, index: u32) {
        self.words[slot * self.width + index as usize / 64] &= !(1 << (index % 64));
    }

    /// Empties the set of a slot into `list`, in ascending order.
    #[inline]
    pub fn drain_into<I: Index>(&mut self, slot: usize, list: &mut Vec<I>) {
        list.clear();
        for (first, word) in (0..).step_by(64).zip(&mut self.words[slot * self.width..][..self.width]) {
            extend(list, first, std::mem::take(word));
        }
    }

    /// Empties the set of a slot into two lists, in ascending order: what is in the mask, and what is not.
    #[inline]
    pub fn drain_split<I: Index>(&mut self, slot: usize, mask: &Mask, inside: &mut Vec<I>, outside: &mut Vec<I>) {
        inside.clear();
        outside.clear();
        let words = &mut self.words[slot * self.width..][..self.width];
        for ((first, word), mask) in (0..).step_by(64).zip(words).zip(&mask.words) {
            let word = std::mem::take(word);
            extend(outside, first, word & !mask);
            extend(inside, first, word & mask);
        }
    }
}

/// Adds the bits of a word, of which the lowest is number `first`.
#[inline]
fn extend<I: Index>(list: &mut Vec<I>, first: u32, mut word: u64) {
    while word != 0 {
        list.push(I::from_number(first + word.trailing_zeros()));
        word &= word - 1;
    }
}

/// A set of indices below a bound.
#[derive(Clone, Debug)]
pub struct Mask {
    words: Vec<u64>,
}

impl Mask {
    /// The empty set of indices below `len`.
    #[must_use]
    pub fn new(len: usize) -> Self {
        Self { words: vec![0; len.div_ceil(64)] }
    }

    /// Adds an index.
    pub fn insert(&mut self, index: impl Index) {
        let index = index.number();
        self.words[index as usize / 64] |= 1 << (index % 64);
    }
}
