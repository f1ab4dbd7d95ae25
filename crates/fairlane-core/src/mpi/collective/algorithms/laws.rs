//! Laws that every algorithm in the table obeys. The bounds on traffic are those of Chan, Heimlich, Purkayastha and
//! van de Geijn, "Collective communication: theory, practice, and experience" (2007).

use std::collections::HashSet;

use proptest::prelude::*;

use super::trial::{Outcome, listed, run, uniform};
use super::{Algorithm, Call, Collectives, Phase, Preferences, TABLE};
use crate::ids::Rank;
use crate::program::CollectiveKind::{
    Allgather, Allreduce, Alltoall, Barrier, Bcast, Gather, Reduce, ReduceScatter, Scan, Scatter,
};
use crate::program::{CollectiveKind, Volume};
use crate::table::Table;
use crate::units::Bytes;

const SIZES: [u64; 8] = [0, 1, 7, 8, 100, 4_096, 100_001, 1 << 20];

/// The collective as the calls describe it, apart from any algorithm.
struct Meaning<'c> {
    calls: &'c [Call],
}

impl Meaning<'_> {
    fn ranks(&self) -> impl Iterator<Item = u32> + use<> {
        0..self.calls[0].size
    }

    fn root(&self) -> u32 {
        self.calls[0].root.0
    }

    /// The bytes that `from` has and that, combined or not, make a part of what `to` must have in the end.
    fn share(&self, from: u32, to: u32) -> u64 {
        let by_rank = |holder: u32, block: u32| match &self.calls[holder as usize].volume {
            Volume::Uniform(bytes) => bytes.0,
            Volume::PerRank(blocks) => blocks[block as usize],
        };
        let (root, buffer) = (self.root(), || by_rank(0, 0));
        match self.calls[0].kind {
            Barrier => 0,
            Bcast if from == root => buffer(),
            Reduce if to == root => buffer(),
            Allreduce => buffer(),
            Scan if from <= to => buffer(),
            Gather if to == root => by_rank(root, from),
            Scatter if from == root => by_rank(root, to),
            Allgather => by_rank(to, from),
            Alltoall => by_rank(from, to),
            ReduceScatter => by_rank(from, to),
            Bcast | Reduce | Scan | Gather | Scatter => 0,
        }
    }

    /// Whether what comes from several ranks may be one buffer, combined on the way.
    fn combines(&self) -> bool {
        matches!(self.calls[0].kind, Reduce | Allreduce | ReduceScatter | Scan)
    }

    /// Whether what goes to several ranks is one buffer, copied on the way.
    fn copies(&self) -> bool {
        matches!(self.calls[0].kind, Bcast | Allreduce | Allgather | Scan)
    }

    /// The least that a rank must send.
    fn least_sent(&self, rank: u32) -> u64 {
        let shares = self.ranks().filter(|to| *to != rank).map(|to| self.share(rank, to));
        if self.copies() { shares.max().unwrap_or(0) } else { shares.sum() }
    }

    /// The least that a rank must receive.
    fn least_received(&self, rank: u32) -> u64 {
        let shares = self.ranks().filter(|from| *from != rank).map(|from| self.share(from, rank));
        if self.combines() { shares.max().unwrap_or(0) } else { shares.sum() }
    }

    /// The least that all ranks together must combine: every byte of the buffer, once for each rank but one.
    fn least_reduced(&self) -> u64 {
        let whole = |rank: u32| match self.calls[0].kind {
            ReduceScatter => self.ranks().map(|to| self.share(rank, to)).sum(),
            _ => self.share(rank, self.root().max(rank)),
        };
        if self.combines() { whole(0) * u64::from(self.calls[0].size - 1) } else { 0 }
    }
}

/// Checks the outcome of the calls against their meaning.
fn check_meaning(algorithm: &Algorithm, calls: &[Call], outcome: &Outcome) {
    let meaning = Meaning { calls };
    let place = |rank: u32| format!("{} {}, rank {rank}: {:?}", algorithm.build.kind.name(), algorithm.name, calls[0]);
    for rank in meaning.ranks() {
        for from in meaning.ranks() {
            let must = algorithm.build.kind == Barrier || meaning.share(from, rank) > 0;
            assert!(!must || outcome.heard[rank as usize].contains(from), "nothing of {from} at {}", place(rank));
        }
        assert!(outcome.sent[rank as usize] >= meaning.least_sent(rank), "sends too little: {}", place(rank));
        assert!(outcome.received[rank as usize] >= meaning.least_received(rank), "gets too little: {}", place(rank));
        assert!(outcome.reduced[rank as usize] == 0 || meaning.combines(), "combines: {}", place(rank));
    }
    assert!(outcome.reduced.iter().sum::<u64>() >= meaning.least_reduced(), "too little combined: {}", place(0));
    let nothing_to_do =
        algorithm.build.kind != Barrier && calls.iter().all(|call| call.volume == Volume::Uniform(Bytes(0)));
    assert!(!nothing_to_do || outcome.messages.iter().all(|count| *count == 0), "empty messages: {}", place(0));
}

/// Runs the algorithm on the calls, if it fits, and checks everything.
fn obey(algorithm: &Algorithm, calls: &[Call]) {
    assert!(calls.iter().all(|call| call.check().is_ok()), "{calls:?}");
    let fits: HashSet<bool> = calls.iter().map(|call| (algorithm.build.fits)(call)).collect();
    assert_eq!(fits.len(), 1, "{} {} fits some ranks only: {calls:?}", algorithm.build.kind.name(), algorithm.name);
    if fits.contains(&true) {
        check_meaning(algorithm, calls, &run(algorithm, calls));
    }
}

fn has_root(kind: CollectiveKind) -> bool {
    matches!(kind, Bcast | Reduce | Gather | Scatter)
}

fn has_blocks(kind: CollectiveKind) -> bool {
    matches!(kind, Gather | Scatter | Allgather | Alltoall | ReduceScatter)
}

#[test]
fn small_communicators_at_every_root() {
    for algorithm in TABLE {
        for size in 1..=12 {
            let roots = if has_root(algorithm.build.kind) { size } else { 1 };
            for root in 0..roots {
                for bytes in SIZES {
                    obey(algorithm, &uniform(algorithm.build.kind, size, root, bytes));
                }
            }
        }
    }
}

#[test]
fn larger_communicators() {
    for algorithm in TABLE {
        for size in (13..=33).chain([64, 100]) {
            let root = if has_root(algorithm.build.kind) { size / 3 } else { 0 };
            for bytes in [1, 100, 100_001] {
                obey(algorithm, &uniform(algorithm.build.kind, size, root, bytes));
            }
        }
    }
}

#[test]
fn a_rank_alone_has_nothing_to_do() {
    for algorithm in TABLE {
        let calls = uniform(algorithm.build.kind, 1, 0, 100);
        let mut phase = Phase { receives: vec![Rank(0)], ..Phase::default() };
        assert!(!algorithm.phase(&calls[0], 0, &mut phase));
        assert_eq!(phase, Phase::default());
    }
}

#[test]
fn a_schedule_ends_once_and_for_all() {
    for algorithm in TABLE {
        for call in uniform(algorithm.build.kind, 16, 0, 100) {
            let mut phase = Phase::default();
            let end = (0..).find(|k| !algorithm.phase(&call, *k, &mut phase)).unwrap();
            for later in [end + 1, end + 2, 31, 32, 33, 1 << 30, u32::MAX - 1, u32::MAX] {
                assert!(later < end || !algorithm.phase(&call, later, &mut phase), "{}", algorithm.name);
            }
        }
    }
}

/// Of a schedule of at most 64 phases: how many messages go to each peer, and how many come from it.
fn peers(algorithm: &Algorithm, call: &Call) -> Option<(Vec<Rank>, Vec<Rank>)> {
    let (mut to, mut from, mut phase) = (Vec::new(), Vec::new(), Phase::default());
    for k in 0..64 {
        if !algorithm.phase(call, k, &mut phase) {
            return Some((to, from));
        }
        to.extend(phase.sends.iter().map(|(rank, _)| *rank));
        from.extend(&phase.receives);
    }
    None
}

#[test]
fn a_hundred_thousand_ranks_agree_on_their_messages() {
    const SIZE: u32 = 100_000;
    let count = |list: &[Rank], rank| list.iter().filter(|peer| **peer == rank).count();
    for algorithm in TABLE {
        let call = |rank| Call {
            kind: algorithm.build.kind,
            rank: Rank(rank),
            size: SIZE,
            root: Rank(if has_root(algorithm.build.kind) { 77_777 } else { 0 }),
            volume: Volume::Uniform(Bytes(1 << 20)),
        };
        if !(algorithm.build.fits)(&call(0)) {
            continue;
        }
        for rank in [1, 2, 34_463, 34_464, 65_535, 65_536, 77_776, 77_778, SIZE - 1] {
            let Some((to, from)) = peers(algorithm, &call(rank)) else { continue };
            // Of all others some are enough.
            let every = if to.len() < 1000 { 1 } else { to.len() / 4 };
            for peer in to.iter().chain(&from).step_by(every) {
                let Some((theirs_to, theirs_from)) = peers(algorithm, &call(peer.0)) else { continue };
                assert_eq!(count(&to, *peer), count(&theirs_from, Rank(rank)), "{} {rank}-{peer}", algorithm.name);
                assert_eq!(count(&from, *peer), count(&theirs_to, Rank(rank)), "{} {rank}-{peer}", algorithm.name);
            }
        }
    }
}

#[test]
fn names_are_unique_within_a_kind_and_are_found() {
    let names: HashSet<_> = TABLE.iter().map(|entry| (entry.build.kind, entry.name)).collect();
    assert_eq!(names.len(), TABLE.len());
    for entry in TABLE {
        assert_eq!(Table::<Collectives>::default().algorithm(entry.build.kind, entry.name).unwrap().name, entry.name);
    }
    for kind in CollectiveKind::ALL {
        assert!(
            TABLE.iter().filter(|entry| entry.build.kind == kind).count() > 1,
            "{} has no alternative",
            kind.name()
        );
    }
}

/// Calls of one collective: any size, root and volume, the v-variants with empty blocks among theirs.
fn any_collective() -> impl Strategy<Value = Vec<Call>> {
    let block = prop_oneof![Just(0), 1_u64..300, 0_u64..1 << 17];
    let blocks = prop::collection::vec(block, 1..40);
    (prop::sample::select(&CollectiveKind::ALL), blocks, any::<prop::sample::Index>(), any::<bool>(), 0_u64..1 << 21)
        .prop_map(|(kind, blocks, root, vector, bytes)| {
            let root = if has_root(kind) { root.index(blocks.len()) as u32 } else { 0 };
            if !vector || !has_blocks(kind) {
                return uniform(kind, blocks.len() as u32, root, bytes);
            }
            let mut calls = listed(kind, root, &blocks);
            if kind == Alltoall {
                let turned = |by: usize| (0..blocks.len()).map(|i| blocks[(i * 3 + by * 5) % blocks.len()]).collect();
                calls.iter_mut().for_each(|call| call.volume = Volume::PerRank(turned(call.rank.index())));
            }
            calls
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn any_collective_obeys(calls in any_collective()) {
        for algorithm in TABLE.iter().filter(|entry| entry.build.kind == calls[0].kind) {
            obey(algorithm, &calls);
        }
    }

    #[test]
    fn all_ranks_choose_alike_and_what_fits(calls in any_collective(), entry in 0..TABLE.len()) {
        let preferred = &TABLE[entry];
        let names = [(preferred.build.kind.name().to_owned(), preferred.name.to_owned())].into();
        for preferences in [Preferences::default(), Preferences::new(&names, &Table::default()).unwrap()] {
            let chosen = preferences.choose(&calls[0]);
            prop_assert_eq!(chosen.build.kind, calls[0].kind);
            for call in &calls {
                prop_assert!((chosen.build.fits)(call));
                prop_assert_eq!(preferences.choose(call).name, chosen.name);
            }
        }
    }
}
