//! Plays a rank's part of a trace, once or again and again.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use fairlane_core::program::{Collective, Comm, CommHandle, Op, P2p, RequestId, Rma, Source};

use super::Window;
use super::channels::Plan;
use super::scan::{Handles, Key};

/// A source of a rank's part.
#[derive(Clone)]
pub struct Player {
    plan: Arc<Plan>,
    window: Window,
    /// At the first operation of the part.
    start: Box<dyn Source>,
    source: Box<dyn Source>,
    queue: Vec<Op>,
    passed: usize,
    pass: Pass,
    finished: bool,
}

/// The state that starts over with the part.
#[derive(Clone)]
struct Pass {
    handles: Handles,
    iterations: u32,
    sent: HashMap<Key, u64>,
    received: HashMap<Key, u64>,
    open: BTreeSet<RequestId>,
    /// Communicators that are made in the part.
    made: BTreeSet<CommHandle>,
    /// Whether anything takes time.
    busy: bool,
}

impl Player {
    /// At the beginning.
    pub fn new(start: Box<dyn Source>, plan: Plan, window: Window) -> Self {
        let (queue, source) = (plan.prelude.clone(), start.boxed_clone());
        let pass = Pass::new(&plan);
        let mut player = Self { plan: Arc::new(plan), window, start, source, queue, passed: 0, pass, finished: false };
        player.open();
        player
    }

    /// Starts what is open when the part begins.
    fn open(&mut self) {
        for op in &self.plan.open {
            if let Op::P2p(P2p::Isend { request, .. }) | Op::P2p(P2p::Irecv { request, .. }) = op {
                self.pass.open.insert(*request);
            }
            if let Op::P2p(P2p::RequestFree(request)) = op {
                self.pass.open.remove(request);
            }
        }
        self.queue.extend(self.plan.open.iter().cloned());
    }

    fn end_pass(&mut self, marked: bool) -> Result<(), String> {
        self.queue
            .extend(std::mem::take(&mut self.pass.open).into_iter().map(|request| Op::P2p(P2p::RequestFree(request))));
        self.queue.extend(std::mem::take(&mut self.pass.made).into_iter().map(|comm| Op::Comm(Comm::Free(comm))));
        if marked || self.window.repeat {
            self.queue.push(Op::MarkProgress);
        }
        if !self.window.repeat {
            self.finished = true;
            return Ok(());
        }
        if !self.pass.busy {
            return Err("the part of the trace has no operation of this rank, so it cannot be repeated".to_owned());
        }
        self.source = self.start.boxed_clone();
        self.pass = Pass::new(&self.plan);
        self.open();
        Ok(())
    }

    fn play(&mut self, op: Op) -> Result<(), String> {
        let pass = &mut self.pass;
        let left_out = match &op {
            Op::P2p(P2p::Send { to, tag, comm, .. }) | Op::P2p(P2p::Isend { to, tag, comm, .. }) => {
                beyond(&self.plan.sends, &mut pass.sent, (pass.handles.number(*comm), to.0, *tag))
            }
            Op::P2p(P2p::Irecv { from: Some(from), tag: Some(tag), comm, .. })
            | Op::P2p(P2p::Recv { from: Some(from), tag: Some(tag), comm }) => {
                beyond(&self.plan.receives, &mut pass.received, (pass.handles.number(*comm), from.0, *tag))
            }
            // State from before the part stays there for its next pass.
            Op::Comm(Comm::Free(comm)) => !pass.made.remove(comm) && self.window.repeat,
            _ => false,
        };
        if left_out {
            return Ok(());
        }
        match &op {
            Op::P2p(P2p::Isend { request, .. })
            | Op::P2p(P2p::Irecv { request, .. })
            | Op::Collective(Collective::Nonblocking { request, .. })
            | Op::Collective(Collective::NonblockingNeighbor { request, .. })
            | Op::Rma(Rma::Access { request: Some(request), .. }) => {
                pass.open.insert(*request);
            }
            Op::P2p(P2p::Wait(request)) | Op::P2p(P2p::RequestFree(request)) => {
                pass.open.remove(request);
            }
            Op::P2p(P2p::WaitAll(requests)) => pass.open.retain(|request| !requests.contains(request)),
            _ => {}
        }
        if let Some(new) = pass.handles.follow(&op) {
            if self.window.repeat && self.plan.handles.has(new) {
                let problem = "gives up a communicator that was made in front of it and makes another one";
                return Err(format!("the part of the trace {problem}: it can be played once, with repeat = false"));
            }
            pass.made.insert(new);
        }
        pass.busy |= !matches!(
            op,
            Op::Comm(Comm::Free(_) | Comm::Define { .. } | Comm::SetName { .. })
                | Op::P2p(P2p::RequestFree(_))
                | Op::MarkProgress
        );
        self.queue.push(op);
        Ok(())
    }

    /// Plays one operation, or ends the pass.
    fn step(&mut self) -> Result<(), String> {
        match self.source.next_op()? {
            None => self.end_pass(false),
            Some(Op::MarkProgress) => {
                self.pass.iterations += 1;
                if self.window.iterations() == Some(self.pass.iterations) {
                    return self.end_pass(true);
                }
                self.queue.push(Op::MarkProgress);
                Ok(())
            }
            Some(op) => self.play(op),
        }
    }
}

impl Pass {
    fn new(plan: &Plan) -> Self {
        Self {
            handles: plan.handles.clone(),
            iterations: 0,
            sent: HashMap::new(),
            received: HashMap::new(),
            open: BTreeSet::new(),
            made: BTreeSet::new(),
            busy: false,
        }
    }
}

/// Counts an operation of a channel, of which no more than `limits` are played; whether it is one more.
fn beyond(limits: &HashMap<Key, u64>, counts: &mut HashMap<Key, u64>, key: Key) -> bool {
    let Some(limit) = limits.get(&key) else { return false };
    let count = counts.entry(key).or_default();
    *count += 1;
    *count > *limit
}

impl Source for Player {
    fn ahead(&mut self) -> Result<&[Op], String> {
        if self.passed == self.queue.len() {
            self.queue.clear();
            self.passed = 0;
            while self.queue.is_empty() && !self.finished {
                self.step()?;
            }
        }
        Ok(&self.queue[self.passed..])
    }

    fn pass(&mut self, count: usize) {
        self.passed += count;
    }

    fn current(&self) -> Option<&Op> {
        self.queue[..self.passed].last()
    }

    fn communicators(&self) -> Vec<Arc<str>> {
        self.start.communicators()
    }

    fn boxed_clone(&self) -> Box<dyn Source> {
        Box::new(self.clone())
    }
}
