//! A dense set of indices.

/// A set of indices below a fixed bound.
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

    /// Empties the set into `list`, in ascending order.
    #[inline]
    pub fn drain_into(&mut self, list: &mut Vec<u32>) {
        list.clear();
        let mut first = 0;
        for word in &mut self.words {
            let mut left = std::mem::take(word);
            while left != 0 {
                list.push(first + left.trailing_zeros());
                left &= left - 1;
            }
            first += 64;
        }
    }
}
