//! Begins collectives, on which all ranks of a communicator must agree, and carries out those that block.

pub(in crate::mpi) mod agreement;
pub mod algorithms;
mod background;
pub mod nccl;
pub(in crate::mpi) mod nonblocking;
pub(in crate::mpi) mod running;

use std::sync::Arc;

use crate::error::RunError;
use crate::ids::Rank;
use crate::mpi::comm::Communicator;
use crate::mpi::messaging::{Job, Messaging, Over};
use crate::mpi::p2p::matching::Pattern;
use crate::mpi::p2p::transfer::Send;
use crate::mpi::rank::{NEVER, RankState};
use crate::program::{CollectiveKind, CommHandle, NeighborKind, Op, SendMode, Tag, Volume};
use crate::qos::classes::Operation;
use crate::units::Bytes;
use agreement::{Claim, Consistency};
use algorithms::{Call, Phase};
use nccl::{Layout, Schedule};
use running::{Effect, PhaseSource, Running, Scope};

/// The lowest bits of a collective's tag have its operation, the others its number on the communicator.
const OPERATION_BITS: u32 = 4;

/// The tag of the messages of a collective. The number wraps.
#[allow(clippy::cast_possible_truncation, clippy::cast_possible_wrap, reason = "the number wraps")]
const fn tag(number: u64, operation: Operation) -> Tag {
    (number << OPERATION_BITS) as Tag | operation as Tag
}

/// The number of the collective with this tag; in a lane of NCCL the lane is in its bits from the 16th on as well.
#[allow(clippy::cast_sign_loss, clippy::cast_possible_wrap, reason = "28 bits")]
pub(in crate::mpi) const fn number_of(tag: Tag) -> Tag {
    (tag as u32 >> OPERATION_BITS) as Tag
}

/// The operation of the collective with this tag.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "four bits")]
pub(in crate::mpi) fn operation_of(tag: Tag) -> Operation {
    Operation::of(tag as u8 & ((1 << OPERATION_BITS) - 1))
}

/// A call on which the ranks of a communicator must agree, but for its communicator.
struct Agreed {
    name: &'static str,
    operation: Operation,
    root: Rank,
    consistency: Consistency,
}

impl Messaging {
    /// A collective of a kind that has algorithms. Nothing has been sent yet.
    pub fn collective(
        &mut self,
        rank: u32,
        op: &Op,
        scope: Scope,
        (kind, root, volume): (CollectiveKind, Rank, Volume),
        effect: Effect,
    ) -> Result<Running, Box<RunError>> {
        let span = self.spanning(rank, op, scope)?;
        let (own, size) = (span.rank, u32::try_from(span.members.len()).expect("invariant: 32-bit ranks"));
        let (context, members) = (span.context, Arc::clone(&span.members));
        let call = Call { kind, rank: Rank(own), size, root, volume };
        call.check().map_err(|problem| self.misuse(rank, op, problem))?;
        if Self::volume_of(&call) > u128::from(self.largest_message.0) {
            return Err(self.moves_too_much(rank, op));
        }
        let consistency = match (kind, &call.volume) {
            (CollectiveKind::Barrier, _) => Consistency::Anything,
            (_, Volume::PerRank(_)) => Consistency::Blocks,
            (CollectiveKind::Gather | CollectiveKind::Scatter, Volume::Uniform(_)) => Consistency::Number,
            (_, Volume::Uniform(bytes)) => Consistency::Bytes(*bytes),
        };
        let schedule = match effect {
            Effect::Nothing => self.nccl_schedule(rank, (context, &members), &call),
            _ => None,
        };
        let phases = match schedule {
            Some(schedule) => PhaseSource::Nccl(Box::new(schedule)),
            None => PhaseSource::Algorithm(self.preferences.choose(&call), call),
        };
        let agreed = Agreed { name: kind.name(), operation: kind.into(), root, consistency };
        let running = self.agreed(rank, op, scope, phases, effect, agreed)?;
        if let (Effect::Split { color: Some(color), key, .. }, Some(number)) = (&running.effect, running.number) {
            let (color, key, member) = (*color, *key, self.ranks[rank as usize].rank.0);
            let job = self.ranks[rank as usize].job;
            self.agreements.bid((job, running.context, number), (color, key, own, member));
        }
        Ok(running)
    }

    /// The schedule of a call in a job whose collectives are NCCL's, if NCCL has it.
    fn nccl_schedule(&mut self, rank: u32, (context, members): (u32, &[u32]), call: &Call) -> Option<Schedule> {
        let id = self.ranks[rank as usize].job;
        let Job { ref nccl, first, .. } = self.jobs[id.index()];
        let setup = nccl.as_ref()?;
        let hosts = || members.iter().map(|member| self.places[(first + member) as usize].host);
        let key = (id, context, call.size);
        let layout = self.layouts.entry(key).or_insert_with(|| Arc::new(Layout::new(hosts())));
        setup.schedule(call, layout)
    }

    /// A neighborhood collective: one phase, with a message for each neighbour, also if it is empty.
    pub fn neighborhood(
        &mut self,
        rank: u32,
        op: &Op,
        comm: CommHandle,
        kind: NeighborKind,
        volume: &Volume,
    ) -> Result<Running, Box<RunError>> {
        let Some(neighbors) = self.communicator(rank, op, comm)?.neighbors.clone() else {
            let problem = format!("communicator {comm} has no topology, so it has no neighbours");
            return Err(self.misuse(rank, op, problem));
        };
        let blocks = match volume {
            Volume::Uniform(bytes) => vec![bytes.0; neighbors.destinations.len()],
            Volume::PerRank(blocks)
                if kind == NeighborKind::Alltoall && blocks.len() == neighbors.destinations.len() =>
            {
                blocks.to_vec()
            }
            Volume::PerRank(blocks) => {
                let wanted = match kind {
                    NeighborKind::Allgather => "takes one number of bytes, that of the rank's own block".to_owned(),
                    NeighborKind::Alltoall => {
                        format!("to {} neighbours got {}", neighbors.destinations.len(), blocks.len())
                    }
                };
                return Err(self.misuse(rank, op, format!("{} {wanted} blocks", kind.name())));
            }
        };
        if blocks.iter().map(|block| u128::from(*block)).sum::<u128>() > u128::from(self.largest_message.0) {
            return Err(self.moves_too_much(rank, op));
        }
        let sends = neighbors.destinations.iter().zip(blocks);
        let phase = Phase {
            receives: neighbors.sources.iter().flatten().copied().collect(),
            sends: sends.filter_map(|(to, block)| to.map(|to| (to, Bytes(block)))).collect(),
            reduced: Bytes::ZERO,
        };
        let agreed =
            Agreed { name: kind.name(), operation: kind.into(), root: Rank(0), consistency: Consistency::Anything };
        self.agreed(rank, op, Scope::Communicator(comm), PhaseSource::Once(phase), Effect::Nothing, agreed)
    }

    #[cold]
    fn moves_too_much(&self, rank: u32, op: &Op) -> Box<RunError> {
        let problem = format!("a collective may move at most {} bytes through a rank", self.largest_message.0);
        self.misuse(rank, op, problem)
    }

    /// All that the call can bring to, or take from, one rank.
    fn volume_of(call: &Call) -> u128 {
        match &call.volume {
            Volume::Uniform(bytes) => u128::from(bytes.0) * u128::from(call.size),
            Volume::PerRank(blocks) => blocks.iter().map(|block| u128::from(*block)).sum(),
        }
    }

    /// Counts a collective call. Ends the run if the ranks of the communicator call different collectives.
    fn agreed(
        &mut self,
        rank: u32,
        op: &Op,
        scope: Scope,
        phases: PhaseSource,
        effect: Effect,
        Agreed { name, operation, root, consistency }: Agreed,
    ) -> Result<Running, Box<RunError>> {
        let Communicator { context, collectives: number, ref members, .. } = *self.spanning(rank, op, scope)?;
        let members = Arc::clone(members);
        if let Some(span) = self.span_mut(rank, scope) {
            span.collectives += 1;
        }
        let RankState { job, rank: own, .. } = *self.rank(rank);
        let size = u32::try_from(members.len()).expect("invariant: 32-bit ranks");
        let claim = Claim { rank: own.0, host: self.host, name, root, size, consistency };
        let agreed = self.agreements.enter((job, context, number), claim, op);
        agreed.map_err(|(first, second)| {
            self.disagreement = Some((job, context, number));
            let job = self.job_of(rank).name.to_string();
            Box::new(RunError::CollectiveMismatch { job, communicator: context, number, first, second })
        })?;
        let tag = tag(number, operation);
        Ok(Running { phases, phase: 0, combining: 0, scope, context, tag, number: Some(number), members, effect })
    }

    /// Posts a phase's receives and starts its sends one after another. The requests are added to `slots`. Returns when the
    /// last send has been handed over.
    pub fn start_phase(&mut self, rank: u32, running: &Running, phase: &Phase, now: u64, slots: &mut Vec<u32>) -> u64 {
        let Running { tag, ref members, .. } = *running;
        let collective = running.is_collective();
        let unasked = matches!(running.phases, PhaseSource::Nccl(_));
        let context = running.context + u32::from(collective);
        for source in &phase.receives {
            let pattern = Pattern { context, source: Some(members[source.index()]), tag: Some(tag) };
            slots.extend(self.post(rank, pattern, None, now));
        }
        let mut handed_at = now;
        for (to, bytes) in &phase.sends {
            let called_at = handed_at;
            handed_at += self.parameters.send_overhead_of(bytes.0);
            let send = Send {
                from: rank,
                to: Rank(members[to.index()]),
                bytes: *bytes,
                tag,
                context,
                name: None,
                eager: !collective || unasked || self.is_eager(*bytes, SendMode::Standard),
                collective,
                called_at,
                handed_at,
            };
            slots.extend(self.send(&send));
        }
        handed_at
    }

    /// Begins an operation in phases for which the rank blocks.
    pub fn begin(&mut self, rank: u32, op: &Op, running: Running, now: u64) -> Over {
        if matches!(running.phases, PhaseSource::Nccl(_)) {
            let request = self.start_in_lanes(rank, op, running, None, now)?;
            self.rank(rank).awaited.push(request);
            self.wait_for_all(rank, now, now);
            return Ok(NEVER);
        }
        self.rank(rank).collective = Some(Box::new(running));
        let over = self.advance_collective(rank, op, now)?;
        if over == now {
            // Even one without a message lets others that are due at this instant go first.
            self.resume(rank, now);
            return Ok(NEVER);
        }
        Ok(over)
    }

    /// The next phase of the operation that `rank` is in. Over now when it was the last.
    pub fn advance_collective(&mut self, rank: u32, op: &Op, now: u64) -> Over {
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
            let mut awaited = std::mem::take(&mut self.rank(rank).awaited);
            let handed_at = self.start_phase(rank, &running, &phase, now, &mut awaited);
            self.rank(rank).awaited = awaited;
            self.wait_for_all(rank, now, handed_at);
        }
        self.phase = phase;
        if !more {
            return self.end_running(rank, op, *running, now);
        }
        self.rank(rank).collective = Some(running);
        Ok(NEVER)
    }
}
