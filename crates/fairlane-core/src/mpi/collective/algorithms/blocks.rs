//! Blocks of a buffer.

use std::ops::Range;

/// How a buffer is divided into consecutive blocks.
pub(in crate::mpi) enum Blocks<'c> {
    /// `parts` blocks of the same size.
    Equal {
        /// Bytes in a block.
        each: u64,
        /// Number of blocks.
        parts: u32,
    },
    /// A total cut into `parts` nearly equal blocks; the first ones are a byte longer if it does not divide.
    Split {
        /// Bytes in all blocks together.
        total: u64,
        /// Number of blocks.
        parts: u32,
    },
    /// Blocks of any size.
    Listed(&'c [u64]),
}

impl Blocks<'_> {
    /// Bytes in one block.
    pub(in crate::mpi) fn of(&self, block: u32) -> u64 {
        self.sum(block..block + 1)
    }

    /// Bytes in a range of blocks.
    pub(super) fn sum(&self, blocks: Range<u32>) -> u64 {
        match self {
            Self::Equal { each, .. } => each * u64::from(blocks.end - blocks.start),
            Self::Split { total, parts } => {
                let parts = u64::from(*parts);
                let offset = |block| u64::from(block) * (total / parts) + u64::from(block).min(total % parts);
                offset(blocks.end) - offset(blocks.start)
            }
            Self::Listed(blocks_of) => blocks_of[blocks.start as usize..blocks.end as usize].iter().sum(),
        }
    }

    /// Bytes in `count` blocks from `first` on, cyclically.
    pub(super) fn sum_around(&self, first: u32, count: u32) -> u64 {
        let (parts, end) = (self.parts(), first + count);
        if end <= parts { self.sum(first..end) } else { self.sum(first..parts) + self.sum(0..end - parts) }
    }

    /// Bytes in all blocks.
    pub(super) fn total(&self) -> u64 {
        self.sum(0..self.parts())
    }

    /// Number of blocks.
    pub(in crate::mpi) fn parts(&self) -> u32 {
        match self {
            Self::Equal { parts, .. } | Self::Split { parts, .. } => *parts,
            Self::Listed(blocks) => u32::try_from(blocks.len()).expect("invariant: one block a rank"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_add_up() {
        let split = Blocks::Split { total: 11, parts: 4 };
        assert_eq!([0, 1, 2, 3].map(|block| split.of(block)), [3, 3, 3, 2]);
        assert_eq!((split.sum(1..4), split.sum_around(3, 3), split.total()), (8, 8, 11));
        let listed = Blocks::Listed(&[5, 0, 7]);
        assert_eq!((listed.of(2), listed.sum_around(2, 2), listed.sum_around(1, 0), listed.total()), (7, 12, 0, 12));
        assert_eq!(Blocks::Equal { each: 6, parts: 5 }.sum_around(4, 5), 30);
    }
}
