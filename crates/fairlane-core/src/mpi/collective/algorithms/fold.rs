//! Folding any number of ranks to a power of two, and exchanges among those who are left.

use std::ops::Range;

use super::Phase;
use super::blocks::Blocks;

/// The largest power of two among `size` ranks, and how the others step aside: of the first ranks, two by two, one
/// hands its data to the other and drops out; who is left is a member and has an index, in order of rank.
pub(super) struct Fold {
    /// Members: a power of two.
    pub(super) members: u32,
    pairs: u32,
    odd_stays: bool,
    /// A rank that must not drop out.
    pinned: u32,
}

/// The role of a rank in a [`Fold`].
enum Role {
    Dropped { partner: u32 },
    Member { index: u32, dropped: Option<u32> },
}

impl Fold {
    /// The even rank of a pair drops out.
    pub(super) const fn odd_stays(size: u32) -> Self {
        let members = 1 << size.ilog2();
        Self { members, pairs: size - members, odd_stays: true, pinned: 1 }
    }

    /// The odd rank of a pair drops out, unless it is the root.
    pub(super) const fn even_and_root_stay(size: u32, root: u32) -> Self {
        Self { odd_stays: false, pinned: root, ..Self::odd_stays(size) }
    }

    /// Rounds in which each member meets a partner at each power of two once.
    pub(super) const fn rounds(&self) -> u32 {
        self.members.ilog2()
    }

    /// The rank of a member.
    pub(super) const fn rank(&self, index: u32) -> u32 {
        if index >= self.pairs {
            index + self.pairs
        } else if self.pinned / 2 == index {
            self.pinned
        } else {
            2 * index + self.odd_stays as u32
        }
    }

    /// The index of the member that stands for a rank: itself or its partner.
    pub(super) const fn index(&self, rank: u32) -> u32 {
        if rank < 2 * self.pairs { rank / 2 } else { rank - self.pairs }
    }

    /// The first of the one or two ranks that a member stands for; a range of members is a range of ranks.
    pub(super) const fn first_rank(&self, index: u32) -> u32 {
        if index < self.pairs { 2 * index } else { index + self.pairs }
    }

    /// The one of `rank` and its partner that drops out; `rank` itself if it has no partner.
    pub(super) const fn dropped(&self, rank: u32) -> u32 {
        if rank < 2 * self.pairs && self.rank(rank / 2) == rank { rank ^ 1 } else { rank }
    }

    /// Phase `k` of a schedule in which those who drop out hand in `brought` bytes to be combined, the members go
    /// through `steps` steps, and those who dropped out get `taken` bytes back. `step` is given index and step.
    pub(super) fn phase(
        &self,
        (rank, k): (u32, u32),
        phase: &mut Phase,
        (brought, taken): (u64, u64),
        steps: u32,
        step: impl FnOnce(u32, u32, &mut Phase),
    ) -> bool {
        match (self.role(rank), k) {
            (Role::Dropped { partner }, 0) => phase.send(partner, brought),
            (Role::Dropped { partner }, 1) if taken > 0 => phase.receive(partner, taken),
            (Role::Dropped { .. }, _) => return false,
            (Role::Member { dropped: Some(from), .. }, 0) => phase.combine(from, brought),
            (Role::Member { index, dropped }, _) => {
                let now = k - u32::from(dropped.is_some());
                match dropped {
                    _ if now < steps => step(index, now, phase),
                    Some(to) if now == steps && taken > 0 => phase.send(to, taken),
                    _ => return false,
                }
            }
        }
        true
    }

    const fn role(&self, rank: u32) -> Role {
        let index = self.index(rank);
        if self.rank(index) != rank {
            Role::Dropped { partner: rank ^ 1 }
        } else if index < self.pairs {
            Role::Member { index, dropped: Some(rank ^ 1) }
        } else {
            Role::Member { index, dropped: None }
        }
    }

    /// Member `index`'s exchange at distance 2^`step` when windows are halved from the nearest partner to the farthest.
    pub(super) fn swap(&self, index: u32, step: u32, blocks: &Blocks<'_>) -> Swap {
        let other = index ^ (1 << step);
        let window = |index| blocks.sum(self.window(index, step + 1));
        Swap { partner: self.rank(other), mine: window(index), theirs: window(other) }
    }

    /// The blocks that a member is left with after `halvings`: each time the lower half for the one with the lower
    /// index, so the window's place is the index with its bits in reverse order.
    fn window(&self, index: u32, halvings: u32) -> Range<u32> {
        let width = self.members >> halvings;
        let place = index.reverse_bits() >> (u32::BITS - self.rounds());
        let start = place / width * width;
        start..start + width
    }
}

/// Two members' halves of the window that they have in common.
pub(super) struct Swap {
    /// The partner's rank.
    pub(super) partner: u32,
    /// Bytes in the half that stays with this member.
    pub(super) mine: u64,
    /// Bytes in the half that stays with the partner.
    pub(super) theirs: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rank_has_one_place_in_a_fold() {
        for size in 2..70 {
            for root in 0..size {
                for fold in [Fold::odd_stays(size), Fold::even_and_root_stay(size, root)] {
                    let mut stands_for = vec![0; size as usize];
                    for index in 0..fold.members {
                        let rank = fold.rank(index);
                        assert_eq!(fold.index(rank), index);
                        stands_for[rank as usize] += 1;
                        if fold.dropped(rank) != rank {
                            stands_for[fold.dropped(rank) as usize] += 1;
                        }
                        let end = if index + 1 == fold.members { size } else { fold.first_rank(index + 1) };
                        assert!((fold.first_rank(index)..end).contains(&rank));
                    }
                    assert!(stands_for.iter().all(|count| *count == 1), "{size} ranks, root {root}");
                }
                let fold = Fold::even_and_root_stay(size, root);
                assert_eq!(fold.rank(fold.index(root)), root);
            }
        }
    }

    #[test]
    fn the_last_windows_are_the_blocks() {
        let fold = Fold::odd_stays(8);
        let mut starts: Vec<u32> = (0..8).map(|index| fold.window(index, 3).start).collect();
        assert_eq!(starts, [0, 4, 2, 6, 1, 5, 3, 7]);
        starts.sort_unstable();
        assert_eq!(starts, [0, 1, 2, 3, 4, 5, 6, 7]);
        assert_eq!(fold.window(5, 1), 4..8);
    }
}
