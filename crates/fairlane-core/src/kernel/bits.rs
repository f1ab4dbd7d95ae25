//! Dense sets of indices.

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

    /// Empties the set of a slot into `list`, in ascending order.
    #[inline]
    pub fn drain_into(&mut self, slot: usize, list: &mut Vec<u32>) {
        list.clear();
        let mut first = 0;
        for word in &mut self.words[slot * self.width..][..self.width] {
            let mut left = std::mem::take(word);
            while left != 0 {
                list.push(first + left.trailing_zeros());
                left &= left - 1;
            }
            first += 64;
        }
    }
}
