//! Carries out the schedules of all ranks together, for tests: who got how much from whom, and who has heard of whom.

use std::collections::BTreeMap;

use super::{Algorithm, Call, Phase};
use crate::ids::Rank;
use crate::program::{CollectiveKind, Volume};
use crate::units::Bytes;

/// Ranks whose data may be in what a rank has: one bit each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Heard(Vec<u64>);

impl Heard {
    fn of(rank: u32, size: u32) -> Self {
        let mut words = vec![0; size.div_ceil(64) as usize];
        words[rank as usize / 64] = 1 << (rank % 64);
        Self(words)
    }

    pub(super) fn contains(&self, rank: u32) -> bool {
        self.0[rank as usize / 64] >> (rank % 64) & 1 == 1
    }

    fn add(&mut self, other: &Self) {
        self.0.iter_mut().zip(&other.0).for_each(|(mine, theirs)| *mine |= theirs);
    }
}

/// Results of a collective, by rank.
#[derive(Debug)]
pub(super) struct Outcome {
    /// Bytes sent.
    pub(super) sent: Vec<u64>,
    /// Bytes received.
    pub(super) received: Vec<u64>,
    /// Bytes combined.
    pub(super) reduced: Vec<u64>,
    /// Messages sent.
    pub(super) messages: Vec<u64>,
    /// Phases in the schedule.
    pub(super) phases: Vec<u32>,
    /// The ranks whose data can have come here.
    pub(super) heard: Vec<Heard>,
    /// Bytes from the first to the second.
    pub(super) pairs: BTreeMap<(u32, u32), u64>,
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

struct Trial<'t> {
    algorithm: &'t Algorithm,
    calls: &'t [Call],
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
    let zeros = || vec![0; calls.len()];
    let size = calls[0].size;
    let mut trial = Trial {
        algorithm,
        calls,
        ranks: calls.iter().map(|_| Standing::default()).collect(),
        channels: BTreeMap::new(),
        outcome: Outcome {
            sent: zeros(),
            received: zeros(),
            reduced: zeros(),
            messages: zeros(),
            phases: vec![0; calls.len()],
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
        let call = &self.calls[rank as usize];
        let number = self.outcome.phases[rank as usize];
        let standing = &mut self.ranks[rank as usize];
        standing.ended = !self.algorithm.phase(call, number, &mut standing.phase);
        let mut again = standing.phase.clone();
        assert_eq!(!self.algorithm.phase(call, number, &mut again), standing.ended);
        assert_eq!(again, standing.phase, "phase {number} of rank {rank}");
        self.outcome.phases[rank as usize] += u32::from(!standing.ended);
        standing.incoming.clear();
        standing.outgoing.clear();
        for from in standing.phase.receives.iter().map(|from| from.0) {
            assert!(from != rank && from < call.size, "rank {rank} of {} receives from {from}", call.size);
            let channel = self.channels.entry((from, rank)).or_default();
            standing.incoming.push((from, channel.posted));
            channel.posted += 1;
        }
        for (to, bytes) in standing.phase.sends.iter().map(|(to, bytes)| (to.0, bytes.0)) {
            assert!(to != rank && to < call.size, "rank {rank} of {} sends to {to}", call.size);
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
        let (name, kind) = (self.algorithm.name, self.algorithm.build.kind.name());
        for (rank, standing) in self.ranks.iter().enumerate() {
            assert!(
                standing.ended,
                "{kind} {name}: rank {rank} is stuck in {:?}: {:?}",
                standing.phase, self.calls[rank]
            );
        }
        for ((from, to), channel) in &self.channels {
            assert_eq!(channel.sent.len(), channel.posted, "{kind} {name}: messages from {from} to {to}");
        }
        self.outcome
    }
}

/// A collective in which every rank hands in `bytes`.
pub(super) fn uniform(kind: CollectiveKind, size: u32, root: u32, bytes: u64) -> Vec<Call> {
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
