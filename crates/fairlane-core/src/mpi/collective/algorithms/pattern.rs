//! Patterns that many algorithms share: binomial trees, rings.

use std::ops::Range;

use super::{Blocks, Call, Phase};

/// The least `k` with 2^k at least `n`: rounds until everybody is reached if the number doubles in each.
pub(super) const fn ceil_log2(n: u32) -> u32 {
    n.next_power_of_two().trailing_zeros()
}

/// A rank's place in a binomial tree. Positions count from the root; the subtree of position `p` is a range of
/// positions that starts at `p`, as long as the lowest set bit of `p` says, cut off at the last rank.
pub(super) struct BinomialTree<'c> {
    call: &'c Call,
    position: u32,
}

impl<'c> BinomialTree<'c> {
    pub(super) const fn new(call: &'c Call) -> Self {
        Self { call, position: call.position() }
    }

    /// How many phases [`Self::descend`] and [`Self::ascend`] have.
    pub(super) fn phases(&self) -> u32 {
        self.children() + u32::from(self.position > 0)
    }

    /// Phase `k` from the root to the leaves: one message from the parent, then one to each child, largest subtree
    /// first. `bytes` says how much goes to a subtree.
    pub(super) fn descend(&self, k: u32, phase: &mut Phase, bytes: impl Fn(Range<u32>) -> u64) -> bool {
        let last = self.phases();
        if k >= last {
            return false;
        }
        let left = last - 1 - k;
        if left < self.children() {
            let (child, subtree) = self.child(left);
            phase.send(child, bytes(subtree));
        } else {
            phase.receive(self.parent(), bytes(self.subtree()));
        }
        true
    }

    /// Phase `k` from the leaves to the root: one message from each child, smallest subtree first, then one to the
    /// parent. `bytes` says how much comes from a subtree.
    pub(super) fn ascend(&self, k: u32, phase: &mut Phase, bytes: impl Fn(Range<u32>) -> u64) -> bool {
        if k >= self.phases() {
            return false;
        }
        if k < self.children() {
            let (child, subtree) = self.child(k);
            phase.receive(child, bytes(subtree));
        } else {
            phase.send(self.parent(), bytes(self.subtree()));
        }
        true
    }

    fn subtree(&self) -> Range<u32> {
        let rest = self.call.size - self.position;
        let weight = if self.position == 0 { rest } else { rest.min(1 << self.position.trailing_zeros()) };
        self.position..self.position + weight
    }

    fn children(&self) -> u32 {
        ceil_log2(self.subtree().len() as u32)
    }

    /// Child number `i` by size of its subtree, the smallest first, and that subtree.
    fn child(&self, i: u32) -> (u32, Range<u32>) {
        let start = self.position + (1 << i);
        let end = self.subtree().end.min(start + (1 << i));
        (self.rank(start), start..end)
    }

    fn parent(&self) -> u32 {
        self.rank(self.position & (self.position - 1))
    }

    const fn rank(&self, position: u32) -> u32 {
        (self.call.root.0 + position) % self.call.size
    }
}

/// Step `k` of `size - 1` of blocks that travel round a ring, to the next rank each: this rank starts with block
/// `origin`, passes on in every step what it got in the one before, and ends with block `origin + 1`. The origins of
/// neighbours must differ by one. Returns the bytes that come.
pub(super) fn ring_step(call: &Call, blocks: &Blocks<'_>, origin: u32, k: u32, phase: &mut Phase) -> u64 {
    let back = |steps: u32| (origin + call.size - steps) % call.size;
    let coming = blocks.of(back(k + 1));
    phase.receive(call.before(1), coming);
    phase.send(call.after(1), blocks.of(back(k)));
    coming
}
