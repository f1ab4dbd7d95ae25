//! The calendar: who has something to do in which window.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use super::{Bits, Index, Mask};
use crate::units::{Instant, Picoseconds};

/// Windows ahead that are kept as bit sets; what is due later waits in a heap. One bit of a `u64` each.
const SLOTS: u64 = 64;

/// Entries due in a window further ahead than the bit sets reach.
#[derive(Clone, Copy, Debug)]
enum Due<D> {
    /// This member of this set has something to do.
    Member(usize, u32),
    /// The caller's.
    Item(D),
}

/// An entry of the far future, ordered by window, then in the order of being put in; the first is the greatest.
#[derive(Clone, Debug)]
struct Far<D> {
    window: u64,
    sequence: u64,
    due: Due<D>,
}

impl<D> Far<D> {
    fn key(&self) -> Reverse<(u64, u64)> {
        Reverse((self.window, self.sequence))
    }
}

impl<D> PartialEq for Far<D> {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl<D> Eq for Far<D> {}

impl<D> PartialOrd for Far<D> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<D> Ord for Far<D> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.key().cmp(&other.key())
    }
}

/// The width of a window: `factor * 2^shift` picoseconds, so that finding an instant's window takes no division.
#[derive(Clone, Copy, Debug)]
struct Width {
    shift: u32,
    /// 4 to 7; 1 where windows are shorter than 256 ps.
    factor: u64,
    /// `2^INVERSE_BITS / factor`, rounded up.
    inverse: u64,
}

impl Width {
    const INVERSE_BITS: u32 = 62;

    /// The greatest width that is not above `span`, which is not zero.
    fn below(span: Picoseconds) -> Self {
        let bits = span.0.ilog2();
        let shift = if bits < 8 { bits } else { bits - 2 };
        let factor = span.0 >> shift;
        Self { shift, factor, inverse: (1_u64 << Self::INVERSE_BITS).div_ceil(factor) }
    }

    #[inline]
    fn span(self) -> u64 {
        self.factor << self.shift
    }

    /// How many whole windows there are before an instant. Exact: where `factor` is not 1, what is multiplied has 58 bits, and
    /// `inverse` is too large by less than one: the product is too large by less than `2^INVERSE_BITS / factor`.
    #[inline]
    #[allow(clippy::cast_possible_truncation, reason = "at most the instant itself")]
    fn count(self, at: Instant) -> u64 {
        ((u128::from(at.0 >> self.shift) * u128::from(self.inverse)) >> Self::INVERSE_BITS) as u64
    }
}

/// The calendar: for the next windows bit sets, one for each class of things that run, and for the far future a heap, which
/// also keeps items of the caller's until their window opens.
#[derive(Clone, Debug)]
pub struct Calendar<const SETS: usize, D> {
    width: Width,
    /// The window that is open, or was last, and when it opens.
    window: u64,
    opened: Instant,
    sets: [Bits; SETS],
    /// Bit `s`: slot `s` is not empty.
    occupied: u64,
    far: BinaryHeap<Far<D>>,
    sequence: u64,
}

impl<const SETS: usize, D: Copy> Calendar<SETS, D> {
    /// Bits that every member takes in its set.
    pub const BITS_PER_MEMBER: usize = SLOTS as usize;

    /// A calendar of windows as wide as the greatest number of picoseconds that is not above `lookahead` and has no more than
    /// three significant bits (no more than one below 256 ps), for sets of so many members.
    ///
    /// # Panics
    /// If `lookahead` is zero.
    #[must_use]
    pub fn new(lookahead: Picoseconds, members: [usize; SETS]) -> Self {
        let slots = usize::try_from(SLOTS).expect("invariant: 64 fits a usize");
        Self {
            width: Width::below(lookahead),
            window: 0,
            opened: Instant::ZERO,
            sets: members.map(|members| Bits::new(slots, members)),
            occupied: 0,
            far: BinaryHeap::new(),
            sequence: 0,
        }
    }

    /// The number of the window in which `at` lies.
    #[must_use]
    #[inline]
    pub fn window_of(&self, at: Instant) -> u64 {
        self.width.count(at)
    }

    /// The instant at which window `number` opens.
    #[must_use]
    #[inline]
    pub fn opening(&self, number: u64) -> Instant {
        Instant(number * self.width.span())
    }

    /// When the window opened that is open, or was last.
    #[must_use]
    #[inline]
    pub fn opened(&self) -> Instant {
        self.opened
    }

    /// How long a window is.
    #[must_use]
    pub fn width(&self) -> Picoseconds {
        Picoseconds(self.width.span())
    }

    /// The window that is open, or was last.
    #[must_use]
    #[inline]
    pub fn window(&self) -> u64 {
        self.window
    }

    /// Has a member of a set run in the window of `at`, the open one or a later one.
    #[inline(always)]
    pub fn wake(&mut self, set: usize, member: impl Index, at: Instant) {
        self.wake_in(set, member, self.window_of(at));
    }

    /// Has a member of a set run in a window, the open one or a later one.
    #[inline(always)]
    pub fn wake_in(&mut self, set: usize, member: impl Index, window: u64) {
        if window - self.window < SLOTS {
            self.wake_near(set, member, window);
        } else {
            self.put_off(window, Due::Member(set, member.number()));
        }
    }

    /// Has a member of a set run in one of the windows that have bit sets: the open one or one of the 63 after it.
    #[inline(always)]
    pub fn wake_near(&mut self, set: usize, member: impl Index, window: u64) {
        debug_assert!(window - self.window < SLOTS, "window {window} is not near {}", self.window);
        self.sets[set].insert(slot(window), member.number());
        self.need(window);
    }

    /// Has one of the same windows open, whether or not a member of a set runs in it.
    #[inline(always)]
    pub fn need(&mut self, window: u64) {
        self.occupied |= 1 << (window % SLOTS);
    }

    /// Has a member of a set not run in the open window.
    #[inline]
    pub fn forget(&mut self, set: usize, member: impl Index) {
        self.sets[set].remove(slot(self.window), member.number());
    }

    /// Keeps an item until its window opens; see [`Calendar::next_due`].
    pub fn defer(&mut self, item: D, window: u64) {
        self.put_off(window, Due::Item(item));
    }

    #[cold]
    fn put_off(&mut self, window: u64, due: Due<D>) {
        self.far.push(Far { window, sequence: self.sequence, due });
        self.sequence += 1;
    }

    /// The first window from `from` on in which anything is due, or [`u64::MAX`].
    #[must_use]
    pub fn next(&self, from: u64) -> u64 {
        #[allow(clippy::cast_possible_truncation, reason = "below 64")]
        let turned = self.occupied.rotate_right((from % SLOTS) as u32);
        let near = if turned == 0 { u64::MAX } else { from + u64::from(turned.trailing_zeros()) };
        let far = self.far.peek().map_or(u64::MAX, |far| far.window);
        near.min(far)
    }

    /// Opens a window before which nothing is due, whether or not anything is due in it.
    pub fn open(&mut self, window: u64) {
        self.window = window;
        self.opened = self.opening(window);
    }

    /// Takes the next item of the far future that is due in the open window. Members of sets that are due are put into the
    /// window's sets.
    pub fn next_due(&mut self) -> Option<D> {
        while let Some(&Far { window, due, .. }) = self.far.peek() {
            if window > self.window {
                return None;
            }
            self.far.pop();
            self.occupied |= 1 << (window % SLOTS);
            match due {
                Due::Member(set, member) => self.sets[set].insert(slot(window), member),
                Due::Item(item) => return Some(item),
            }
        }
        None
    }

    /// Takes the open window's members of a set, in ascending order.
    #[inline]
    pub fn take<I: Index>(&mut self, set: usize, list: &mut Vec<I>) {
        self.sets[set].drain_into(slot(self.window), list);
    }

    /// Takes the open window's members of a set, in ascending order: those in the mask, and those that are not.
    #[inline]
    pub fn take_split<I: Index>(&mut self, set: usize, mask: &Mask, inside: &mut Vec<I>, outside: &mut Vec<I>) {
        self.sets[set].drain_split(slot(self.window), mask, inside, outside);
    }

    /// Closes the open window; its sets must have been emptied.
    pub fn close(&mut self) {
        self.occupied &= !(1 << (self.window % SLOTS));
    }

    /// The items that are kept for the far future.
    pub fn deferred(&self) -> impl Iterator<Item = D> {
        self.far.iter().filter_map(|far| match far.due {
            Due::Item(item) => Some(item),
            Due::Member(..) => None,
        })
    }

    /// Whether nothing is due at any time.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.occupied == 0 && self.far.is_empty()
    }
}

#[inline]
fn slot(window: u64) -> usize {
    #[allow(clippy::cast_possible_truncation, reason = "below 64")]
    {
        (window % SLOTS) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Opens the first window in which anything is due, if it opens before `end`.
    fn open(calendar: &mut Calendar<2, &'static str>, from: u64, end: Instant) -> Option<u64> {
        let window = calendar.next(from);
        let opens = window != u64::MAX && calendar.opening(window) < end;
        opens.then(|| calendar.open(window))?;
        Some(window)
    }

    fn drained(take: impl FnOnce(&mut Vec<u32>)) -> Vec<u32> {
        let mut list = vec![99];
        take(&mut list);
        list
    }

    #[test]
    fn windows_are_counted_as_a_division_would() {
        for span in (1..2_000).chain([100_000, 196_607, 196_608, 200_000, u64::MAX >> 3, u64::MAX]) {
            let width = Width::below(Picoseconds(span));
            assert!(width.span() <= span && (width.span() > span / 2 || span < 2), "{span}");
            assert!(span < 256 || width.span() > span / 5 * 4, "{span}");
            let ends = [1, 2, 3, 1_000, u64::MAX / width.span()].map(|number| width.span().saturating_mul(number));
            for at in ends.into_iter().flat_map(|end| [end - 1, end, end.saturating_add(1)]).chain([0, u64::MAX]) {
                assert_eq!(width.count(Instant(at)), at / width.span(), "{at} in windows of {}", width.span());
            }
        }
    }

    #[test]
    fn near_and_far_come_in_order() {
        let mut calendar = Calendar::new(Picoseconds(100), [10, 10]);
        assert_eq!(calendar.width(), Picoseconds(64));
        calendar.wake(0, 3, Instant(130));
        calendar.wake(0, 4, Instant(640_000));
        calendar.wake_in(1, 9, 7);
        calendar.defer("first", 5_000);
        calendar.defer("second", 5_000);
        calendar.wake_in(1, 7, 5_000);
        assert_eq!(open(&mut calendar, 0, Instant::MAX), Some(2));
        assert_eq!(calendar.next_due(), None);
        assert_eq!(drained(|list| calendar.take(0, list)), [3]);
        calendar.close();
        assert_eq!(open(&mut calendar, 3, Instant::MAX), Some(7));
        assert_eq!(drained(|list| calendar.take(1, list)), [9]);
        calendar.close();
        assert_eq!(open(&mut calendar, 8, Instant(300_000)), None);
        assert_eq!(open(&mut calendar, 8, Instant::MAX), Some(5_000));
        assert_eq!(calendar.deferred().count(), 2);
        assert_eq!(calendar.next_due(), Some("first"));
        assert_eq!(calendar.next_due(), Some("second"));
        assert_eq!(calendar.next_due(), None);
        assert_eq!(drained(|list| calendar.take_split(1, &Mask::new(10), &mut Vec::new(), list)), [7]);
        calendar.close();
        assert_eq!(open(&mut calendar, 5_001, Instant::MAX), Some(10_000));
        assert_eq!(calendar.next_due(), None);
        assert_eq!(drained(|list| calendar.take(0, list)), [4]);
        calendar.close();
        assert!(calendar.is_empty());
    }
}
