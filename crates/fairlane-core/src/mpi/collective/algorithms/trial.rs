//! Carries out the schedules of all ranks together, for tests: who got how much from whom, and who has heard of whom.

use std::collections::BTreeMap;

use super::{Algorithm, Call, Phase};
use crate::ids::Rank;
use crate::program::{CollectiveKind, Volume};
use crate::units::Bytes;

/// Ranks whose data may be in what a rank has: one bit each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::mpi::collective) struct Heard(Vec<u64>);

impl Heard {
    fn of(rank: u32, size: u32) -> Self {
        let mut words = vec![0; size.div_ceil(64) as usize];
        words[rank as usize / 64] = 1 << (rank % 64);
        Self(words)
    }

    pub(in crate::mpi::collective) fn contains(&self, rank: u32) -> bool {
        self.0[rank as usize / 64] >> (rank % 64) & 1 == 1
    }

    fn add(&mut self, other: &Self) {
        self.0.iter_mut().zip(&other.0).for_each(|(mine, theirs)| *mine |= theirs);
    }
}

/// Results of a collective, by rank.
#[derive(Debug)]
pub(in crate::mpi::collective) struct Outcome {
    /// Bytes sent.
    pub(in crate::mpi::collective) sent: Vec<u64>,
    /// Bytes received.
    pub(in crate::mpi::collective) received: Vec<u64>,
    /// Bytes combined.
    pub(in crate::mpi::collective) reduced: Vec<u64>,
    /// Messages sent.
    pub(in crate::mpi::collective) messages: Vec<u64>,
    /// Phases in the schedule.
    pub(in crate::mpi::collective) phases: Vec<u32>,
    /// The ranks whose data can have come here.
    pub(in crate::mpi::collective) heard: Vec<Heard>,
    /// Bytes from the first to the second.
    pub(in crate::mpi::collective) pairs: BTreeMap<(u32, u32), u64>,
}

/// Messages from one rank to another, in order: what was sent, and how many receives have been posted.
#[derive(Default)]
struct Channel {
    sent: Vec<(u64, Heard)>,
    posted: usize,
}

/// Where a rank stands: its phase, and the messages of it, each as a place in a channel.
#[derive(Default)]
struct Standing {
    phase: Phase,
    incoming: Vec<(u32, usize)>,
    outgoing: Vec<(u32, usize)>,
    ended: bool,
}

/// Writes phase `k` of a rank's schedule: rank, `k`, phase. False when the schedule has ended before.
type Phases<'t> = dyn Fn(u32, u32, &mut Phase) -> bool + 't;

struct Trial<'t> {
    phases: &'t Phases<'t>,
    size: u32,
    ranks: Vec<Standing>,
    channels: BTreeMap<(u32, u32), Channel>,
    outcome: Outcome,
}

/// Runs the ranks' schedules together. A rank goes on when all its receives have been sent and all its sends have found
/// a posted receive, so what passes here passes with any mix of eager and rendezvous messages.
///
/// # Panics
/// When no rank can go on, when messages are left over, when a rank sends to itself or out of the communicator, or when
/// a phase is not the same when asked for twice.
pub(super) fn run(algorithm: &Algorithm, calls: &[Call]) -> Outcome {
    play(calls[0].size, &|rank, k, phase| algorithm.phase(&calls[rank as usize], k, phase))
}

/// Runs the schedules of so many ranks together, as [`run`] does.
pub(in crate::mpi::collective) fn play(size: u32, phases: &Phases<'_>) -> Outcome {
    let zeros = || vec![0; size as usize];
    let mut trial = Trial {
        phases,
        size,
        ranks: (0..size).map(|_| Standing::default()).collect(),
        channels: BTreeMap::new(),
        outcome: Outcome {
            sent: zeros(),
            received: zeros(),
            reduced: zeros(),
            messages: zeros(),
            phases: vec![0; size as usize],
            heard: (0..size).map(|rank| Heard::of(rank, size)).collect(),
            pairs: BTreeMap::new(),
        },
    };
    (0..size).for_each(|rank| trial.enter(rank));
    while (0..size).map(|rank| u32::from(trial.advance(rank))).sum::<u32>() > 0 {}
    trial.end()
}

impl Trial<'_> {
    /// Starts the rank's next phase: posts its receives and starts its sends.
    fn enter(&mut self, rank: u32) {
        let size = self.size;
        let number = self.outcome.phases[rank as usize];
        let standing = &mut self.ranks[rank as usize];
        standing.phase.clear();
        standing.ended = !(self.phases)(rank, number, &mut standing.phase);
        let mut again = Phase::default();
        assert_eq!(!(self.phases)(rank, number, &mut again), standing.ended);
        assert_eq!(again, standing.phase, "phase {number} of rank {rank}");
        self.outcome.phases[rank as usize] += u32::from(!standing.ended);
        standing.incoming.clear();
        standing.outgoing.clear();
        for from in standing.phase.receives.iter().map(|from| from.0) {
            assert!(from != rank && from < size, "rank {rank} of {size} receives from {from}");
            let channel = self.channels.entry((from, rank)).or_default();
            standing.incoming.push((from, channel.posted));
            channel.posted += 1;
        }
        for (to, bytes) in standing.phase.sends.iter().map(|(to, bytes)| (to.0, bytes.0)) {
            assert!(to != rank && to < size, "rank {rank} of {size} sends to {to}");
            let channel = self.channels.entry((rank, to)).or_default();
            standing.outgoing.push((to, channel.sent.len()));
            channel.sent.push((bytes, self.outcome.heard[rank as usize].clone()));
            self.outcome.sent[rank as usize] += bytes;
            self.outcome.messages[rank as usize] += 1;
            *self.outcome.pairs.entry((rank, to)).or_default() += bytes;
        }
    }

    /// Ends the rank's phase and starts the next, if all its messages have met their partners.
    fn advance(&mut self, rank: u32) -> bool {
        let standing = &self.ranks[rank as usize];
        let come = |&(from, place): &(u32, usize)| self.channels[&(from, rank)].sent.len() > place;
        let met = |&(to, place): &(u32, usize)| self.channels[&(rank, to)].posted > place;
        if standing.ended || !standing.incoming.iter().all(come) || !standing.outgoing.iter().all(met) {
            return false;
        }
        for (from, place) in &standing.incoming {
            let (bytes, heard) = &self.channels[&(*from, rank)].sent[*place];
            self.outcome.received[rank as usize] += bytes;
            self.outcome.heard[rank as usize].add(heard);
        }
        self.outcome.reduced[rank as usize] += standing.phase.reduced.0;
        self.enter(rank);
        true
    }

    fn end(self) -> Outcome {
        for (rank, standing) in self.ranks.iter().enumerate() {
            assert!(standing.ended, "rank {rank} is stuck in {:?}", standing.phase);
        }
        for ((from, to), channel) in &self.channels {
            assert_eq!(channel.sent.len(), channel.posted, "messages from {from} to {to}");
        }
        self.outcome
    }
}

/// A collective in which every rank hands in `bytes`.
pub(in crate::mpi::collective) fn uniform(kind: CollectiveKind, size: u32, root: u32, bytes: u64) -> Vec<Call> {
    let volume = Volume::Uniform(Bytes(bytes));
    let call = |rank| Call { kind, rank: Rank(rank), size, root: Rank(root), volume: volume.clone() };
    (0..size).map(call).collect()
}

/// The v-variant over as many ranks as there are blocks: in an alltoallv every rank hands in the same list, in a gatherv
/// or scatterv only the root knows it all.
pub(super) fn listed(kind: CollectiveKind, root: u32, blocks: &[u64]) -> Vec<Call> {
    let rooted = matches!(kind, CollectiveKind::Gather | CollectiveKind::Scatter);
    let mut calls = uniform(kind, blocks.len() as u32, root, 0);
    for call in &mut calls {
        let own = call.rank.index();
        let known = if rooted && call.rank != call.root { &blocks[own..=own] } else { blocks };
        call.volume = Volume::PerRank(known.into());
    }
    calls
}

/// Runs a uniform collective of the algorithm's kind.
pub(super) fn traffic(algorithm: &Algorithm, size: u32, root: u32, bytes: u64) -> Outcome {
    run(algorithm, &uniform(algorithm.build.kind, size, root, bytes))
}
