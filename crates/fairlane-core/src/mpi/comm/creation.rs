//! Creation of communicators and windows, at the end of the collectives that make them.

use std::sync::Arc;

use super::Communicator;
use crate::error::RunError;
use crate::ids::Rank;
use crate::mpi::collective::running::{Effect, Running, Scope};
use crate::mpi::messaging::{Messaging, Over};
use crate::mpi::rma::window::Window;
use crate::program::{CommHandle, Op, Topology};

impl Messaging {
    /// The last phase is over: makes what was asked for. Returns when the operation is over.
    pub fn end_running(&mut self, rank: u32, op: &Op, running: Running, now: u64) -> Over {
        let Running { scope, context, number, members, effect, .. } = running;
        let Some(number) = number else {
            return match (effect, scope) {
                (Effect::Release { targets }, Scope::Window(win)) => self.release(rank, op, win, targets, now),
                _ => Ok(now),
            };
        };
        self.make(rank, op, effect, (scope, context, number), &members)?;
        let job = self.ranks[rank as usize].job;
        self.agreements.leave((job, context, number));
        Ok(now)
    }

    /// Makes what comes of a collective: the one of this number on this context.
    fn make(
        &mut self,
        rank: u32,
        op: &Op,
        effect: Effect,
        (scope, context, number): (Scope, u32, u64),
        members: &Arc<[u32]>,
    ) -> Result<(), Box<RunError>> {
        match effect {
            Effect::Nothing | Effect::Release { .. } | Effect::Split { color: None, .. } => {}
            Effect::Burst => {
                let key = (self.ranks[rank as usize].job, context, number);
                self.rank(rank).needed().burst_over = self.agreements.has_bid(key);
            }
            Effect::Dup { new } => {
                let fresh = self.fresh_context(rank, (context, number), 0);
                let copy = self.spanning(rank, op, scope)?.copy(fresh);
                self.keep_classes(rank, context, fresh);
                self.add_communicator(rank, op, new, copy)?;
            }
            Effect::Split { new, color: Some(color), .. } => {
                let chosen = self.agreements.members((self.ranks[rank as usize].job, context, number), color);
                let fresh = self.fresh_context(rank, (context, number), color);
                self.join_communicator(rank, op, new, fresh, chosen)?;
            }
            Effect::Create { new, members: wanted } => {
                let chosen: Option<Arc<[u32]>> =
                    wanted.iter().map(|member| members.get(member.index()).copied()).collect();
                let Some(chosen) = chosen else { return Err(self.outside(rank, op, members.len())) };
                // Disjoint groups of one call are different communicators: distinguished by their first member.
                let color = chosen.first().map_or(0, |first| i32::try_from(*first).unwrap_or(i32::MAX));
                let fresh = self.fresh_context(rank, (context, number), color);
                self.join_communicator(rank, op, new, fresh, chosen)?;
            }
            Effect::Topology { new, topology } => {
                let fresh = self.fresh_context(rank, (context, number), 0);
                self.add_topology(rank, op, new, fresh, members, &topology)?;
            }
            Effect::Window { win } => {
                let fresh = self.fresh_context(rank, (context, number), 0);
                let window = Window::new(self.spanning(rank, op, scope)?.copy(fresh));
                self.keep_classes(rank, context, fresh);
                self.rank(rank).needed().windows.insert(win, window);
            }
            Effect::FreeWindow { win } => {
                if let Some(more) = self.rank(rank).more_mut() {
                    more.windows.remove(&win);
                    more.locks.remove(&context);
                }
            }
        }
        Ok(())
    }

    /// The context of the new communicator of `color` that comes of a collective.
    fn fresh_context(&mut self, rank: u32, (context, number): (u32, u64), color: i32) -> u32 {
        let order = self.order();
        self.contexts.derived((self.ranks[rank as usize].job, context, number), color, order)
    }

    /// Gives `rank` the communicator of the first ranks of `members` that has this topology, if it has a place for the rank.
    fn add_topology(
        &mut self,
        rank: u32,
        op: &Op,
        new: CommHandle,
        context: u32,
        members: &[u32],
        topology: &Topology,
    ) -> Result<(), Box<RunError>> {
        let size = u32::try_from(members.len()).expect("invariant: 32-bit ranks");
        let places = topology.places(size);
        let Some(chosen) = usize::try_from(places).ok().and_then(|places| members.get(..places)) else {
            let problem = format!("the topology has {places} ranks and the communicator {size}");
            return Err(self.misuse(rank, op, problem));
        };
        let own = self.ranks[rank as usize].rank.0;
        let Some(place) = chosen.iter().position(|member| *member == own) else { return Ok(()) };
        let neighbors = topology.neighbors(u32::try_from(place).expect("invariant: 32-bit ranks"));
        let mut listed = neighbors.sources.iter().chain(&neighbors.destinations).flatten();
        if listed.any(|neighbor| neighbor.index() >= chosen.len()) {
            return Err(self.outside(rank, op, chosen.len()));
        }
        self.join_communicator(rank, op, new, context, chosen.into())?;
        if let Some(communicator) = self.rank(rank).needed().communicators.get_mut(&new) {
            communicator.neighbors = Some(Arc::new(neighbors));
        }
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
            (Some(place), None) => self.add_communicator(rank, op, new, Communicator::new(context, place, members)),
        }
    }

    fn add_communicator(
        &mut self,
        rank: u32,
        op: &Op,
        new: CommHandle,
        communicator: Communicator,
    ) -> Result<(), Box<RunError>> {
        if new <= crate::program::COMM_SELF || self.rank(rank).communicators().contains_key(&new) {
            return Err(self.misuse(rank, op, format!("communicator {new} is in use at this rank")));
        }
        self.rank(rank).needed().communicators.insert(new, communicator);
        Ok(())
    }

    /// A communicator that is given, not made: its members know each other by the handle.
    pub fn define_communicator(
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
        let (job, order) = (self.ranks[rank as usize].job, self.order());
        let context = self.contexts.defined(job, new, &members, order);
        self.join_communicator(rank, op, new, context, members)
    }
}
