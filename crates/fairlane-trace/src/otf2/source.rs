//! Turns a rank's events into operations.

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::sync::Arc;

use fairlane_core::ids::Rank;
use fairlane_core::program::{COMM_SELF, COMM_WORLD, Comm, CommHandle, Op, P2p, RequestId};

use super::completions::{Completions, Got};
use super::definitions::{Definitions, Members, Region};
use super::event::{Event, Events, Moment};
use super::library::Archive;
use super::messages::Probed;
use super::needs::{self, Need};
use super::one_sided::Windows;
use crate::Options;
use crate::emitter::{Emitter, read_in_steps};
use crate::error::TraceError;
use crate::lookahead::{Lookahead, Outcome};
use crate::slots::Slots;

/// The region that ends a replay.
const FINALIZE: &str = "MPI_Finalize";

/// A rank's events and where the replay stands in them.
#[derive(Clone)]
pub struct RankReader {
    archive: Arc<Archive>,
    anchor: Arc<PathBuf>,
    rank: u32,
    options: Arc<Options>,
    /// The operations so far.
    pub out: Emitter,
    /// The communicators that this rank has defined; they stay defined from pass to pass.
    defined: HashSet<u32>,
    state: State,
}

/// A call of MPI that the rank is in.
#[derive(Clone, Copy)]
struct Call {
    region: u32,
    /// How many regions deep the rank is inside it.
    depth: u32,
    /// The number of the event that entered it.
    entered: u64,
    /// Whether it has started a request whose completion is recorded.
    requests: bool,
}

/// A call that cannot be simulated, the number of its record, and why.
pub struct Fault {
    pub call: String,
    pub record: u64,
    pub problem: String,
}

/// The outcome of an event.
pub struct Step {
    /// It is not the last.
    pub more: bool,
    /// Why it cannot be simulated.
    pub fault: Option<Fault>,
}

/// Everything that starts over with the trace.
#[derive(Clone)]
struct State {
    events: Events,
    /// The event that was read last, and its number.
    last: Option<(u64, Event)>,
    /// When the application last went on computing, in picoseconds; `None` before the first call of MPI has ended.
    computing_since: Option<u64>,
    /// The call of MPI that the rank is in.
    call: Option<Call>,
    /// The requests that this call has completed.
    completed: Vec<RequestId>,
    /// The program's requests, by the trace's; `None` for an operation that is not replayed.
    requests: HashMap<u64, Option<RequestId>>,
    request_ids: Slots,
    ahead: Option<Box<Lookahead<Completions>>>,
    windows: Windows,
    probed: Probed,
    posted: u64,
    finished: bool,
}

impl State {
    fn new(archive: &Arc<Archive>, rank: u32) -> Self {
        Self {
            events: Events::new(Arc::clone(archive), archive.definitions.ranks[rank as usize]),
            last: None,
            computing_since: None,
            call: None,
            completed: Vec::new(),
            requests: HashMap::new(),
            request_ids: Slots::starting_at(0),
            ahead: None,
            windows: Windows::default(),
            probed: Probed::default(),
            posted: 0,
            finished: false,
        }
    }
}

impl RankReader {
    /// At the first event.
    pub fn new(archive: Arc<Archive>, anchor: Arc<PathBuf>, rank: u32, options: &Arc<Options>) -> Self {
        let state = State::new(&archive, rank);
        let ranks = u32::try_from(archive.definitions.ranks.len()).expect("invariant: ranks are numbered with 32 bits");
        let out = Emitter::new(options, rank, ranks);
        Self { archive, anchor, rank, options: Arc::clone(options), out, defined: HashSet::new(), state }
    }

    /// The event that was read last.
    pub fn event(&self) -> Option<Event> {
        self.state.last.map(|(_, event)| event)
    }

    /// A region.
    pub fn region(&self, region: u32) -> Option<&Region> {
        self.archive.definitions.regions.get(&region)
    }

    /// The call of MPI that the rank is in.
    pub fn call(&self) -> Option<&Region> {
        self.state.call.and_then(|call| self.region(call.region))
    }

    /// Reads one event and emits what it means; `false` at the end of the trace.
    fn step(&mut self) -> Result<bool, TraceError> {
        match self.survey()? {
            Step { fault: Some(Fault { call, record, problem }), .. } if !self.options.leaves_out(&call) => {
                Err(TraceError::Record { file: self.anchor.to_path_buf(), rank: self.rank, record, call, problem })
            }
            Step { more, .. } => Ok(more),
        }
    }

    /// As [`RankReader::step`], but an event that cannot be simulated is no error: only a damaged archive is.
    pub fn survey(&mut self) -> Result<Step, TraceError> {
        self.state.last = match self.state.events.next() {
            Ok(event) => event,
            Err(problem) => {
                return Err(self.error(problem));
            }
        };
        let Some((_, event)) = self.state.last else { return Ok(Step { more: false, fault: None }) };
        // A call that lacks records is found out when it is left; it is reported where it was entered.
        let fault = match (event, self.state.call) {
            (Event::Leave(..), Some(Call { depth: 0, .. })) => self.missing(),
            _ => None,
        };
        let fault = self.translate(event).map_err(|problem| self.fault(problem)).err().or(fault);
        Ok(Step { more: !self.is_final(event), fault })
    }

    /// The missing record of the call that is being left.
    fn missing(&self) -> Option<Fault> {
        let Call { region, entered, requests, .. } = self.state.call?;
        let region = self.region(region)?;
        let problem = match region.need {
            Need::Nothing => return None,
            Need::Unsupported(why) => why,
            Need::Request if requests => return None,
            Need::Request => needs::NO_REQUEST,
            // An archive with windows records all operations on them; those to MPI_PROC_NULL are none.
            Need::Windows if !self.definitions().windows.is_empty() => return None,
            Need::Windows => needs::NO_WINDOWS,
        };
        Some(Fault { call: region.name.to_string(), record: entered, problem: problem.to_owned() })
    }

    fn is_final(&self, event: Event) -> bool {
        matches!(event, Event::Enter(region, _) if self.region(region).is_some_and(|r| &*r.name == FINALIZE))
    }

    fn fault(&self, problem: String) -> Fault {
        let region = match self.event() {
            Some(Event::Enter(region, _)) => self.region(region),
            _ => self.call(),
        };
        Fault {
            call: region.map_or("an event outside MPI", |region| &region.name).to_owned(),
            record: self.state.last.map_or(0, |(position, _)| position),
            problem,
        }
    }

    fn error(&self, problem: String) -> TraceError {
        let Fault { call, record, problem } = self.fault(problem);
        TraceError::Record { file: self.anchor.to_path_buf(), rank: self.rank, record, call, problem }
    }

    /// The definitions of the archive.
    pub(super) fn definitions(&self) -> &Definitions {
        &self.archive.definitions
    }

    /// The windows of one-sided communication.
    pub(super) const fn windows(&mut self) -> &mut Windows {
        &mut self.state.windows
    }

    /// The messages that have been probed and not received.
    pub(super) const fn probed(&mut self) -> &mut Probed {
        &mut self.state.probed
    }

    /// The call that the rank is in ends with a wait for a request of the program.
    pub(super) fn after_call(&mut self, request: RequestId) {
        self.state.completed.push(request);
    }

    /// A free request of the program.
    pub(super) fn take_request(&mut self) -> RequestId {
        self.state.request_ids.take()
    }

    /// A request of the trace starts; `own` is the program's, if there is anything to wait for.
    pub(super) fn start_request(&mut self, request: u64, own: Option<RequestId>) {
        self.state.requests.insert(request, own);
    }

    /// The call that the rank is in has started a request whose completion is recorded.
    pub(super) const fn note_request(&mut self) {
        if let Some(call) = &mut self.state.call {
            call.requests = true;
        }
    }

    /// A request of the program is complete: the call that the rank is in has waited for it.
    pub(super) fn completes(&mut self, request: RequestId) {
        self.state.completed.push(request);
        if self.state.call.is_none() {
            self.wait();
        }
    }

    /// The rank in the trace.
    pub const fn rank(&self) -> u32 {
        self.rank
    }

    /// The end of a pass: gives up what is open, and starts over if that is wanted.
    fn end_pass(&mut self) -> Result<(), TraceError> {
        self.end_call();
        self.free_windows();
        let mut open: Vec<RequestId> = self.state.requests.drain().filter_map(|(_, request)| request).collect();
        open.sort_unstable();
        open.into_iter().for_each(|request| self.out.op(Op::P2p(P2p::RequestFree(request))));
        self.out.end_pass(self.options.repeat).map_err(|problem| self.error(problem))?;
        self.state = State::new(&self.archive, self.rank);
        self.state.finished = !self.options.repeat;
        Ok(())
    }

    fn translate(&mut self, event: Event) -> Result<(), String> {
        match event {
            Event::Enter(region, moment) => self.enter(region, moment)?,
            Event::Leave(_, moment) => self.leave(moment),
            Event::Send(message) => self.send(&message)?,
            Event::Recv(message) => self.receive(&message)?,
            Event::Isend(message, request) => {
                let own = self.isend(&message)?;
                let own = if self.is_in("MPI_Ibsend") { self.give_up(own) } else { Some(own) };
                self.state.requests.insert(request, own);
            }
            Event::IrecvRequest(request) => {
                let own = self.irecv()?;
                self.state.requests.insert(request, own);
            }
            Event::IsendComplete(request)
            | Event::Irecv(_, request)
            | Event::ImrecvComplete(request)
            | Event::CollectiveComplete(_, request) => {
                let own = self.state.requests.remove(&request);
                let own = own.ok_or_else(|| format!("request {request} completes, but was never started"))?;
                own.into_iter().for_each(|own| self.completes(own));
            }
            Event::RequestCancelled(request) => {
                if let Some(Some(own)) = self.state.requests.remove(&request) {
                    self.give_up(own);
                }
            }
            Event::Probe(message, number) => self.probe(&message, number)?,
            Event::Mrecv(number) => self.receive_matched(number)?,
            Event::ImrecvRequest(number, request) => {
                let own = self.post_matched(number)?;
                self.start_request(request, Some(own));
            }
            Event::RequestTest(_) => {}
            Event::CollectiveRequest(request) => self.start_collective(request)?,
            Event::Rma(record) => self.one_sided(record)?,
            Event::CollectiveEnd(collective) => self.collective(&collective)?,
        }
        Ok(())
    }

    /// A moment in picoseconds, on the CPU clock if the trace has one.
    fn clock(&self, moment: Moment) -> Option<u64> {
        let definitions = &self.archive.definitions;
        if definitions.cpu_time.is_some() {
            return moment.cpu.map(|nanoseconds| nanoseconds.saturating_mul(1000));
        }
        let exact = u128::from(moment.wall) * 1_000_000_000_000 / u128::from(definitions.ticks_per_second);
        // Only differences count, so that a clock that started long ago may wrap.
        #[allow(clippy::cast_possible_truncation, reason = "wraps")]
        Some(exact as u64)
    }

    fn enter(&mut self, id: u32, moment: Moment) -> Result<(), String> {
        if let Some(call) = &mut self.state.call {
            call.depth += 1;
            return Ok(());
        }
        self.compute_until(moment);
        let archive = Arc::clone(&self.archive);
        let Some(region) = archive.definitions.regions.get(&id) else {
            return Err(format!("region {id} is not defined"));
        };
        self.out.at(moment.wall);
        self.out.enter(&region.name);
        if region.mpi {
            let entered = self.state.last.map_or(0, |(position, _)| position);
            self.state.call = Some(Call { region: id, depth: 0, entered, requests: false });
        }
        Ok(())
    }

    fn leave(&mut self, moment: Moment) {
        match &mut self.state.call {
            None => self.compute_until(moment),
            Some(Call { depth: 0, .. }) => {
                self.end_call();
                self.state.computing_since = self.clock(moment);
            }
            Some(call) => call.depth -= 1,
        }
    }

    fn compute_until(&mut self, moment: Moment) {
        let Some(now) = self.clock(moment) else { return };
        if let Some(since) = &mut self.state.computing_since {
            let span = now.wrapping_sub(*since);
            // A clock that went back has not advanced.
            if span < u64::MAX / 2 {
                self.out.compute(span);
            }
            *since = now;
        }
    }

    fn end_call(&mut self) {
        self.flush();
        self.wait();
        self.state.call = None;
    }

    /// Waits for what the call has completed.
    fn wait(&mut self) {
        let completed = std::mem::take(&mut self.state.completed);
        self.out.wait(&completed);
        completed.into_iter().for_each(|request| self.state.request_ids.give_back(request));
    }

    pub(super) fn is_in(&self, call: &str) -> bool {
        self.call().is_some_and(|region| &*region.name == call)
    }

    /// Nobody waits for a request any more.
    pub(super) fn give_up(&mut self, request: RequestId) -> Option<RequestId> {
        self.out.op(Op::P2p(P2p::RequestFree(request)));
        self.state.request_ids.give_back(request);
        None
    }

    /// The outcome of the request that starts now.
    pub(super) fn outcome(&mut self) -> Result<Outcome<Got>, String> {
        let number = self.state.posted;
        self.state.posted += 1;
        let (archive, location) = (&self.archive, self.definitions().ranks[self.rank as usize]);
        let scan = || Box::new(Lookahead::new(Completions::new(Events::new(Arc::clone(archive), location))));
        self.state.ahead.get_or_insert_with(scan).outcome(number)
    }

    /// The handle of a communicator; its first use defines it.
    pub(super) fn handle(&mut self, id: u32) -> Result<CommHandle, String> {
        let unknown = || format!("the archive does not say who is in communicator {id}");
        let communicator = self.archive.definitions.communicators.get(&id).ok_or_else(unknown)?;
        let members = match &communicator.members {
            Members::World => return Ok(COMM_WORLD),
            Members::Alone => return Ok(COMM_SELF),
            Members::Between => {
                return Err(format!("communicator {id} is an intercommunicator, which is not supported"));
            }
            Members::Unknown => return Err(unknown()),
            Members::These(members) => Arc::clone(members),
        };
        let new = id.checked_add(COMM_SELF + 1).ok_or_else(unknown)?;
        if !self.defined.contains(&id) {
            if !members.contains(&Rank(self.rank)) {
                return Err(format!("this rank is not in communicator {id}"));
            }
            self.defined.insert(id);
            self.out.op(Op::Comm(Comm::Define { new, members }));
            if !communicator.name.is_empty() {
                self.out.op(Op::Comm(Comm::SetName { comm: new, name: Arc::clone(&communicator.name) }));
            }
        }
        Ok(new)
    }

    /// The names of communicators that have some of the ranks.
    pub(super) fn communicator_names(&self) -> Vec<Arc<str>> {
        let some = |members: &Members| matches!(members, Members::These(_));
        let known = self.archive.definitions.communicators.values().filter(|known| some(&known.members));
        known.map(|known| Arc::clone(&known.name)).filter(|name| !name.is_empty()).collect()
    }

    /// The handle of a communicator that has been used.
    pub fn known(&self, id: u32) -> Option<CommHandle> {
        match self.archive.definitions.communicators.get(&id)?.members {
            Members::World => Some(COMM_WORLD),
            Members::Alone => Some(COMM_SELF),
            Members::These(_) if self.defined.contains(&id) => Some(id + COMM_SELF + 1),
            Members::These(_) | Members::Between | Members::Unknown => None,
        }
    }
}

read_in_steps!(RankReader);
