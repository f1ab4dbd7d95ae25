//! Small numbers for things that come and go: the smallest free one is used next.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Hands out numbers from a first one on, and takes them back.
#[derive(Clone)]
pub struct Slots {
    next: u32,
    free: BinaryHeap<Reverse<u32>>,
}

impl Slots {
    /// No number below `first` is ever handed out.
    pub const fn starting_at(first: u32) -> Self {
        Self { next: first, free: BinaryHeap::new() }
    }

    /// The smallest free number.
    pub fn take(&mut self) -> u32 {
        self.free.pop().map_or_else(
            || {
                self.next += 1;
                self.next - 1
            },
            |Reverse(number)| number,
        )
    }

    /// Makes a number free again.
    pub fn give_back(&mut self, number: u32) {
        self.free.push(Reverse(number));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_smallest_free_number_comes_first() {
        let mut slots = Slots::starting_at(2);
        assert_eq!([slots.take(), slots.take(), slots.take()], [2, 3, 4]);
        slots.give_back(4);
        slots.give_back(2);
        assert_eq!([slots.take(), slots.take(), slots.take()], [2, 4, 5]);
    }
}
