//! A dense set of indices.

/// A set of indices below a fixed bound, iterated in ascending order by [`Bits::word`].
#[derive(Clone, Debug)]
pub struct Bits {
    words: Vec<u64>,
}

impl Bits {
    /// An empty set of indices below `len`.
    #[must_use]
    pub fn new(len: usize) -> Self {
        Self { words: vec![0; len.div_ceil(64)] }
    }

    /// Adds an index.
    #[inline]
    pub fn insert(&mut self, index: u32) {
        self.words[index as usize / 64] |= 1 << (index % 64);
    }

    /// How many words the set has.
    #[must_use]
    pub fn words(&self) -> usize {
        self.words.len()
    }

    /// The 64 indices from `64 x number` on, as a bit mask.
    #[must_use]
    #[inline]
    pub fn word(&self, number: usize) -> u64 {
        self.words[number]
    }

    /// Empties the 64 indices from `64 x number` on.
    #[inline]
    pub fn clear_word(&mut self, number: usize) {
        self.words[number] = 0;
    }
}
