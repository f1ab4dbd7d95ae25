//! Carries out collectives, and makes communicators.

use std::sync::Arc;

use super::collectives::{self, Algorithm, Call, Phase};
use super::communicator::{Alike, Claim, Communicator};
use super::interpreter::Over;
use super::matching::Pattern;
use super::messaging::Messaging;
use super::protocol::Send;
use super::rank::NEVER;
use super::words;
use crate::error::RunError;
use crate::ids::Rank;
use crate::program::{CollectiveKind, CommHandle, Op, SendMode, Tag, Volume};

/// A collective that a rank is in.
#[derive(Clone)]
pub(super) struct Running {
    call: Call,
    algorithm: &'static Algorithm,
    phase: u32,
    /// Time to combine what the last phase brought; spent once its messages have come.
    combining: u64,
    comm: CommHandle,
    context: u32,
    number: u64,
    members: Arc<[u32]>,
    after: After,
}

/// What comes of a collective that makes a communicator.
#[derive(Clone)]
pub(super) enum After {
    Nothing,
    Dup { new: CommHandle },
    Split { new: CommHandle, color: Option<i32>, key: i32 },
    Create { new: CommHandle, members: Arc<[Rank]> },
}

impl Running {
    /// Goes on to the next phase in which there is something to do. False when there is none.
    fn next_phase(&mut self, phase: &mut Phase) -> bool {
        while self.algorithm.phase(&self.call, self.phase, phase) {
            self.phase += 1;
            if !phase.is_empty() {
                return true;
            }
        }
        false
    }
}

impl Messaging {
    pub(super) fn begin_collective(
        &mut self,
        rank: u32,
        op: &Op,
        comm: CommHandle,
        (kind, root, volume): (CollectiveKind, Rank, Volume),
        after: After,
        now: u64,
    ) -> Over {
        let Communicator { context, rank: own, ref members, collectives: number } =
            *self.communicator(rank, op, comm)?;
        let members = Arc::clone(members);
        let size = u32::try_from(members.len()).expect("invariant: 32-bit ranks");
        let call = Call { kind, rank: Rank(own), size, root, volume };
        call.check().map_err(|problem| self.misuse(rank, op, problem))?;
        if Self::volume_of(&call) > u128::from(self.largest_message.0) {
            let problem = format!("a collective may move at most {} bytes through a rank", self.largest_message.0);
            return Err(self.misuse(rank, op, problem));
        }
        self.count_collective(rank, comm);
        self.agree(rank, op, context, number, &call)?;
        if let After::Split { color: Some(color), key, .. } = after {
            let member = self.ranks[rank as usize].rank.0;
            self.job_of(rank).agreements.bid(context, number, color, key, own, member);
        }
        let preference = self.parameters.collectives.get(kind.name()).map(String::as_str);
        let algorithm = collectives::choose(&call, preference);
        let running = Running { call, algorithm, phase: 0, combining: 0, comm, context, number, members, after };
        self.rank(rank).collective = Some(Box::new(running));
        let over = self.advance_collective(rank, op, now)?;
        if over == now {
            // Even one without a message lets others that are due at this instant go first.
            self.resume(rank, now);
            return Ok(NEVER);
        }
        Ok(over)
    }

    /// All that the call can bring to, or take from, one rank.
    fn volume_of(call: &Call) -> u128 {
        match &call.volume {
            Volume::Uniform(bytes) => u128::from(bytes.0) * u128::from(call.size),
            Volume::PerRank(blocks) => blocks.iter().map(|block| u128::from(*block)).sum(),
        }
    }

    fn count_collective(&mut self, rank: u32, comm: CommHandle) {
        let state = self.rank(rank);
        let communicator = if comm == crate::program::COMM_WORLD {
            Some(&mut state.world)
        } else {
            state.communicators.get_mut(&comm)
        };
        if let Some(communicator) = communicator {
            communicator.collectives += 1;
        }
    }

    /// Ends the run if the ranks of the communicator call different collectives.
    fn agree(&mut self, rank: u32, op: &Op, context: u32, number: u64, call: &Call) -> Result<(), Box<RunError>> {
        let alike = match (call.kind, &call.volume) {
            (CollectiveKind::Barrier, _) => Alike::Anything,
            (_, Volume::PerRank(_)) => Alike::Blocks,
            (CollectiveKind::Gather | CollectiveKind::Scatter, Volume::Uniform(_)) => Alike::Number,
            (_, Volume::Uniform(bytes)) => Alike::Bytes(*bytes),
        };
        let state = self.rank(rank);
        let own = state.rank;
        let claim = Claim { kind: call.kind, root: call.root, alike, op };
        let agreed = self.job_of(rank).agreements.enter(context, number, own.0, claim);
        agreed.map_err(|(first, first_words)| {
            Box::new(RunError::CollectiveMismatch {
                job: self.job_of(rank).name.clone(),
                communicator: context,
                number,
                first: format!("rank {first} called {first_words}"),
                second: format!("rank {own} called {}", words::of(op)),
            })
        })
    }

    /// The next phase of the collective that `rank` is in. Over now when it was the last.
    pub(super) fn advance_collective(&mut self, rank: u32, op: &Op, now: u64) -> Over {
        let Some(mut running) = self.rank(rank).collective.take() else { return Ok(now) };
        if running.combining > 0 {
            let end = now + std::mem::take(&mut running.combining);
            self.rank(rank).collective = Some(running);
            return Ok(end);
        }
        let mut phase = std::mem::take(&mut self.phase);
        let more = running.next_phase(&mut phase);
        if more {
            running.combining = self.parameters.reduction_bandwidth.serialization(phase.reduced).0;
            self.start_phase(rank, &running, &phase, now);
        }
        self.phase = phase;
        if !more {
            self.end_collective(rank, op, *running)?;
            return Ok(now);
        }
        self.rank(rank).collective = Some(running);
        Ok(NEVER)
    }

    /// Posts a phase's receives, starts its sends one after another, and waits for all.
    fn start_phase(&mut self, rank: u32, running: &Running, phase: &Phase, now: u64) {
        let context = running.context + 1;
        #[allow(clippy::cast_possible_truncation, clippy::cast_possible_wrap, reason = "a tag may wrap")]
        let tag = running.number as Tag;
        for source in &phase.receives {
            let pattern = Pattern { context, source: Some(running.members[source.index()]), tag: Some(tag) };
            let receive = self.post(rank, pattern, None, now);
            self.rank(rank).awaited.extend(receive);
        }
        let mut handed_at = now;
        for (to, bytes) in &phase.sends {
            let called_at = handed_at;
            handed_at += self.parameters.send_overhead.0;
            let send = Send {
                from: rank,
                to: self.peer(rank, running.members[to.index()]),
                bytes: *bytes,
                tag,
                context,
                name: None,
                eager: self.is_eager(*bytes, SendMode::Standard),
                collective: true,
                called_at,
                handed_at,
            };
            let request = self.send(&send);
            self.rank(rank).awaited.extend(request);
        }
        self.wait_for_all(rank, now, handed_at);
    }

    /// The last phase is over: makes the communicator that was asked for.
    fn end_collective(&mut self, rank: u32, op: &Op, running: Running) -> Result<(), Box<RunError>> {
        let Running { comm, context, number, members, after, .. } = running;
        match after {
            After::Nothing => {}
            After::Dup { new } => {
                let fresh = self.job_of(rank).agreements.context(context, number, 0);
                let own = self.communicator(rank, op, comm)?.rank;
                let copy = Communicator { context: fresh, rank: own, members: Arc::clone(&members), collectives: 0 };
                self.add_communicator(rank, op, new, copy)?;
            }
            After::Split { color: None, .. } => {}
            After::Split { new, color: Some(color), .. } => {
                let chosen = self.job_of(rank).agreements.members(context, number, color);
                let fresh = self.job_of(rank).agreements.context(context, number, color);
                self.join_communicator(rank, op, new, fresh, chosen.into())?;
            }
            After::Create { new, members: wanted } => {
                let chosen: Option<Arc<[u32]>> =
                    wanted.iter().map(|member| members.get(member.index()).copied()).collect();
                let Some(chosen) = chosen else {
                    return Err(self.misuse(
                        rank,
                        op,
                        format!("the communicator has {} ranks, numbered from 0", members.len()),
                    ));
                };
                // Disjoint groups of one call are different communicators: told apart by their first member.
                let color = chosen.first().map_or(0, |first| i32::try_from(*first).unwrap_or(i32::MAX));
                let fresh = self.job_of(rank).agreements.context(context, number, color);
                self.join_communicator(rank, op, new, fresh, chosen)?;
            }
        }
        self.job_of(rank).agreements.leave(context, number, members.len());
        Ok(())
    }

    /// Gives `rank` the handle of a communicator, if it is a member.
    fn join_communicator(
        &mut self,
        rank: u32,
        op: &Op,
        new: CommHandle,
        context: u32,
        members: Arc<[u32]>,
    ) -> Result<(), Box<RunError>> {
        let own = self.ranks[rank as usize].rank.0;
        let mut places = (0..).zip(members.iter()).filter(|(_, member)| **member == own).map(|(place, _)| place);
        let (place, again) = (places.next(), places.next());
        match (place, again) {
            (None, _) => Ok(()),
            (Some(_), Some(_)) => Err(self.misuse(rank, op, "a member is listed twice")),
            (Some(place), None) => {
                self.add_communicator(rank, op, new, Communicator { context, rank: place, members, collectives: 0 })
            }
        }
    }

    fn add_communicator(
        &mut self,
        rank: u32,
        op: &Op,
        new: CommHandle,
        communicator: Communicator,
    ) -> Result<(), Box<RunError>> {
        if new <= crate::program::COMM_SELF || self.rank(rank).communicators.contains_key(&new) {
            return Err(self.misuse(rank, op, format!("communicator {new} is in use at this rank")));
        }
        self.rank(rank).communicators.insert(new, communicator);
        Ok(())
    }

    /// A communicator that is given, not made: its members know each other by the handle.
    pub(super) fn define_communicator(
        &mut self,
        rank: u32,
        op: &Op,
        new: CommHandle,
        members: &[Rank],
    ) -> Result<(), Box<RunError>> {
        let size = self.job_of(rank).size;
        if members.iter().any(|member| member.0 >= size) {
            return Err(self.misuse(rank, op, format!("the job has {size} ranks, numbered from 0")));
        }
        let members: Arc<[u32]> = members.iter().map(|member| member.0).collect();
        let context = self.job_of(rank).agreements.defined(new, &members);
        self.join_communicator(rank, op, new, context, members)
    }
}
