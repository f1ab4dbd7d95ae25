//! Non-blocking collectives: they make progress while the program of their rank runs.
//!
//! Each has a progress engine of its own, as a library's progress thread or an adapter that offloads collectives is: phases
//! follow each other as in the blocking operation and take the same overheads, but not from the rank's CPU.

use std::ops::Range;

use super::algorithms::Phase;
use super::nonblocking::{ORDERS, Operation};
use super::running::{PhaseSource, Running};
use crate::error::RunError;
use crate::mpi::messaging::{Messaging, Over};
use crate::mpi::p2p::request::{PENDING, Request};
use crate::observe::call_of;
use crate::program::{Op, RequestId};

impl Messaging {
    /// Starts a non-blocking operation with its first phase.
    pub fn begin_in_background(&mut self, rank: u32, op: &Op, running: Running, name: RequestId, now: u64) -> Over {
        self.start_in_lanes(rank, op, running, Some(name), now)?;
        Ok(now)
    }

    /// Starts an operation, in all of its lanes if it has some. Returns its request.
    pub fn start_in_lanes(
        &mut self,
        rank: u32,
        op: &Op,
        running: Running,
        name: Option<RequestId>,
        now: u64,
    ) -> Result<u32, Box<RunError>> {
        // The messages of a phase can be handed over before what the rank's program has sent earlier.
        self.start_numbering();
        let state = self.rank(rank);
        let Some(request) = state.requests.start(name, Request::send(now, PENDING)) else {
            return Err(self.in_use(rank, op, name.unwrap_or_default()));
        };
        state.matching.begin_progress();
        let lanes = running.lanes();
        if lanes.is_empty() {
            let number = self.begin_lane(rank, op, running, request, now);
            self.next_in_background(rank, number, now);
        }
        // All lanes are there before one of them can end.
        let numbers: Vec<u32> = lanes.into_iter().map(|lane| self.begin_lane(rank, op, lane, request, now)).collect();
        for number in numbers {
            self.end_phase_in_background(rank, number, now);
        }
        Ok(request)
    }

    fn begin_lane(&mut self, rank: u32, op: &Op, running: Running, request: u32, now: u64) -> u32 {
        let background = &mut self.rank(rank).needed().background;
        background.begun = background.begun.wrapping_add(1) & ORDERS;
        let name = call_of(op).map_or("", |call| crate::observe::call_name(usize::from(call)));
        background.insert(Operation {
            running,
            name,
            request,
            order: background.begun,
            missing: 0,
            awaits: Vec::new(),
            receives: 0,
            handed_at: now,
            partner_at: now,
        })
    }

    /// An operation's last phase is over, at `now`: starts the next, or ends it.
    pub fn next_in_background(&mut self, rank: u32, number: u32, now: u64) {
        if now >= self.job_of(rank).stop {
            return;
        }
        let Some(more) = self.rank(rank).more_mut() else { return };
        let Some(mut operation) = more.background.operations[number as usize].take() else { return };
        let mut phase = std::mem::take(&mut self.phase);
        if operation.running.next_phase(&mut phase) {
            self.start_in_background(rank, number, operation, &phase, now);
        } else {
            self.end_in_background(rank, *operation, now);
        }
        self.phase = phase;
    }

    fn start_in_background(&mut self, rank: u32, number: u32, mut operation: Box<Operation>, phase: &Phase, now: u64) {
        let running = &mut operation.running;
        let receives = phase.receives.len() as u64 * self.parameters.receive_overhead.0;
        let after = match &running.phases {
            PhaseSource::Nccl(schedule) => schedule.after(phase),
            _ => self.parameters.reduction_bandwidth.serialization(phase.reduced).0,
        };
        running.combining = receives + after;
        let mut slots = std::mem::take(&mut self.slots);
        operation.handed_at = self.start_phase(rank, running, phase, now, &mut slots);
        let partners = phase.receives.iter().chain(phase.sends.iter().map(|(to, _)| to));
        operation.awaits.clear();
        operation.awaits.extend(slots.iter().copied().zip(partners.copied()));
        (operation.missing, operation.receives) = (0, phase.receives.len());
        let requests = &mut self.rank(rank).requests;
        for slot in slots.drain(..) {
            let request = requests.get_mut(slot);
            (request.detached, request.owner) = (true, number);
            if request.complete_at == PENDING {
                operation.missing += 1;
            } else {
                requests.end(slot);
            }
        }
        self.slots = slots;
        let over = operation.missing == 0;
        if let Some(more) = self.rank(rank).more_mut() {
            more.background.operations[number as usize] = Some(operation);
        }
        if over {
            self.end_phase_in_background(rank, number, now);
        }
    }

    fn end_in_background(&mut self, rank: u32, operation: Operation, now: u64) {
        let Operation { running, request, partner_at, .. } = operation;
        let more = self.rank(rank).more();
        if more.is_some_and(|more| more.background.operations.iter().flatten().any(|lane| lane.request == request)) {
            return;
        }
        if let Some(number) = running.number {
            let job = self.ranks[rank as usize].job;
            self.agreements.leave((job, running.context, number));
        }
        let state = self.rank(rank);
        state.matching.end_progress();
        state.requests.get_mut(request).partner_at = partner_at;
        self.complete(rank, request, now);
    }

    /// Describes the active non-blocking operations of a rank that is stuck.
    pub fn describe_background(&self, rank: u32) -> Vec<String> {
        let state = &self.ranks[rank as usize];
        let requests = &state.requests;
        let operations = state.more().into_iter().flat_map(|more| (0..).zip(&more.background.operations));
        let under_way = operations.filter_map(|(number, operation)| Some((number, operation.as_deref()?)));
        let words = under_way.map(|(number, Operation { running, name, awaits, receives, .. })| {
            let late = |place: &usize| {
                let request = requests.get(awaits[*place].0);
                request.detached && request.owner == number && request.complete_at == PENDING
            };
            let peers = |places: Range<usize>| {
                let mut peers: Vec<String> = places.filter(late).map(|place| awaits[place].1.to_string()).collect();
                if peers.len() > PEERS_SHOWN {
                    peers.truncate(PEERS_SHOWN);
                    peers.push("...".to_owned());
                }
                peers.join(", ")
            };
            let (from, to) = (peers(0..*receives), peers(*receives..awaits.len()));
            let partners = match (from.is_empty(), to.is_empty()) {
                (false, true) => format!("messages from {from}"),
                (true, _) => format!("receives of {to}"),
                (false, false) => format!("messages from {from} and receives of {to}"),
            };
            let call = running.number.unwrap_or_default();
            format!("{name}, collective number {call} of its communicator, waits for {partners}")
        });
        words.collect()
    }
}

/// So many of the partners that an operation waits for are named in an error.
const PEERS_SHOWN: usize = 8;
