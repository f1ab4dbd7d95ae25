//! Path choice: a number in each packet, its *entropy*, from which switches compute its path.
//!
//! - `bitmap`: entropies in order, which a random number permutes anew each round; one that has been answered with a mark is
//!   skipped once, with a trimmed packet (but at the last hop) four times, at most fifteen times in all (Ultra Ethernet
//!   Specification 1.0; htsim's `UecMpBitmap`).
//! - `reps`, recycled entropies (T. Bonato et al., "REPS: recycling entropies for packet spraying", 2024): an entropy that has
//!   been answered without a mark is used once more, of the last eight the oldest first; if there is none, a random one.
//!   Not modelled: freezing after timeouts.
//! - `mixed`: all entropies that have been answered without a mark are used once more, in order; if there is none, the next one of
//!   `bitmap`.

use std::collections::VecDeque;

use schemars::JsonSchema;
use serde::Deserialize;

use super::super::Notice;
use crate::rng::draw;

/// How a flow selects the entropies of its packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum PathChoice {
    /// It does not: the routing selects paths.
    #[default]
    Routing,
    /// Entropies that were marked are skipped.
    Bitmap,
    /// Entropies that were not marked are recycled.
    Reps,
    /// Entropies that were not marked are recycled, and otherwise those that were marked are skipped.
    Mixed,
}

/// Entropies that REPS keeps.
const KEPT: usize = 8;
/// An entropy is skipped at most so many times, and so often for a mark and for a trimmed packet.
const MOST_SKIPS: u8 = 15;
const MARKED: u8 = 1;
const TRIMMED: u8 = 4;

/// The entropies of a flow.
#[derive(Clone)]
pub(super) struct Paths {
    choice: PathChoice,
    /// How many entropies there are: a power of two.
    count: u16,
    /// Entropies to use once more.
    recycled: VecDeque<u16>,
    /// How often each is to be skipped; empty with `reps`.
    skips: Vec<u8>,
    /// The place in the round of `bitmap`, and the number that permutes the round.
    place: u16,
    order: u16,
}

impl Paths {
    /// Those of a flow, of so many entropies.
    pub fn new(choice: PathChoice, count: u16) -> Self {
        let skips = if choice == PathChoice::Reps { Vec::new() } else { vec![0; usize::from(count)] };
        Self { choice, count, recycled: VecDeque::new(), skips, place: 0, order: 0 }
    }

    /// The answer to a packet.
    pub fn answered(&mut self, notice: &Notice) {
        let penalty = match notice {
            Notice { trimmed: true, last_hop: false, .. } => TRIMMED,
            Notice { marked: true, .. } => MARKED,
            _ => 0,
        };
        if penalty > 0 {
            if let Some(skips) = self.skips.get_mut(usize::from(notice.entropy)) {
                *skips = MOST_SKIPS.min(*skips + penalty);
            }
        } else if self.choice != PathChoice::Bitmap {
            if self.choice == PathChoice::Reps && self.recycled.len() == KEPT {
                self.recycled.pop_front();
            }
            self.recycled.push_back(notice.entropy);
        }
    }

    /// The entropy of the next packet, which starts at `now`.
    pub fn next(&mut self, now: u64) -> u16 {
        if let Some(entropy) = self.recycled.pop_front() {
            return entropy;
        }
        if self.choice == PathChoice::Reps {
            return self.random(now);
        }
        let mut entropy = self.place ^ self.order;
        for attempt in 0..=self.count {
            let skips = &mut self.skips[usize::from(entropy)];
            if *skips == 0 {
                break;
            }
            // Of the entropies that are skipped for one packet only the first is closer to use.
            *skips -= u8::from(attempt == 0);
            self.advance(now);
            entropy = self.place ^ self.order;
        }
        self.advance(now);
        entropy
    }

    fn advance(&mut self, now: u64) {
        self.place += 1;
        if self.place == self.count {
            self.place = 0;
            self.order = self.random(now);
        }
    }

    #[allow(clippy::cast_possible_truncation, reason = "less than the count")]
    fn random(&self, now: u64) -> u16 {
        (draw(now, u32::from(self.order)) % u32::from(self.count)) as u16
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::units::{Bytes, Instant};

    fn answer(entropy: u16, marked: bool, trimmed: bool) -> Notice {
        let (sent, received) = (Instant::ZERO, Instant::ZERO);
        let (last_hop, pull_target, bytes, flows) = (false, 0, Bytes(0), 1);
        Notice { marked, trimmed, last_hop, entropy, pull_target, bytes, sent, received, flows }
    }

    #[test]
    fn a_round_of_the_bitmap_has_each_entropy_once() {
        let mut paths = Paths::new(PathChoice::Bitmap, 64);
        let rounds: [Vec<u16>; 2] = std::array::from_fn(|_| (0..64).map(|now| paths.next(now)).collect());
        assert!(rounds.iter().all(|round| round.iter().collect::<BTreeSet<_>>().len() == 64));
        assert_ne!(rounds[0], rounds[1]);
    }

    /// Of four entropies, 2 is passed over once for a mark, four times for a trimmed packet: in so many rounds the other three are
    /// used, and in the one that follows at most those.
    #[test]
    fn the_bitmap_skips_entropies_that_were_marked() {
        for (trimmed, skips) in [(false, 1), (true, 4)] {
            let mut paths = Paths::new(PathChoice::Bitmap, 4);
            paths.answered(&answer(2, true, trimmed));
            let until = (0..).take_while(|now| paths.next(*now) != 2).count();
            assert!((3 * skips..=3 * skips + 3).contains(&until), "{trimmed}: {until}");
        }
    }

    #[test]
    fn all_entropies_may_have_been_marked() {
        let mut paths = Paths::new(PathChoice::Bitmap, 4);
        for entropy in (0..4).cycle().take(40) {
            paths.answered(&answer(entropy, true, true));
        }
        assert_eq!(paths.skips, [MOST_SKIPS; 4]);
        assert!((0..100).all(|now| paths.next(now) < 4));
    }

    #[test]
    fn entropies_without_marks_are_recycled() {
        let mut reps = Paths::new(PathChoice::Reps, 64);
        (10..20).for_each(|entropy| reps.answered(&answer(entropy, entropy == 15, false)));
        // Of nine without marks the last eight.
        assert_eq!([(); 8].map(|()| reps.next(0)), [11, 12, 13, 14, 16, 17, 18, 19]);
        let mut mixed = Paths::new(PathChoice::Mixed, 64);
        mixed.answered(&answer(0, true, false));
        mixed.answered(&answer(7, false, false));
        assert_eq!([(); 2].map(|()| mixed.next(0)), [7, 1]);
    }
}
