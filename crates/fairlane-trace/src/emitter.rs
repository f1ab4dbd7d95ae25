//! The way from a reader to the program: operations in order, compute before them, iterations marked.

use fairlane_core::program::{
    COMM_WORLD, Collective, CollectiveKind, Comm, CommHandle, Op, P2p, RequestId, Rma, Volume,
};
use fairlane_core::units::{Bytes, Picoseconds};

use crate::{Bound, Iteration, Options};

/// Makes a reader of a rank's records the source of its operations: a `step` reads some into the emitter `out`, and returns
/// whether there are more in this pass.
macro_rules! read_in_steps {
    ($reader:ty) => {
        impl fairlane_core::program::Source for $reader {
            fn ahead(&mut self) -> Result<&[fairlane_core::program::Op], String> {
                while self.out.ahead().is_empty() && !self.state.finished {
                    self.out.forget();
                    if !self.step().map_err(|e| e.to_string())? {
                        self.end_pass().map_err(|e| e.to_string())?;
                    }
                }
                Ok(self.out.ahead())
            }

            fn pass(&mut self, count: usize) {
                self.out.pass(count);
            }

            fn current(&self) -> Option<&fairlane_core::program::Op> {
                self.out.current()
            }

            fn communicators(&self) -> Vec<std::sync::Arc<str>> {
                self.communicator_names()
            }

            fn boxed_clone(&self) -> Box<dyn fairlane_core::program::Source> {
                Box::new(self.clone())
            }
        }
    };
}
pub(crate) use read_in_steps;

/// Collects the operations of a rank.
#[derive(Clone)]
pub struct Emitter {
    scale: f64,
    message_scale: f64,
    iteration: Iteration,
    queue: Vec<Op>,
    /// How many of them the program has passed.
    passed: usize,
    /// Compute time not yet emitted, in picoseconds before scaling.
    compute: u64,
    /// Whether the call or region that bounds iterations has been seen.
    bounded: bool,
    /// Whether the first one is marked too, although it ends no iteration.
    marks_first: bool,
    /// The wall clock of the trace at the call that is read, and where iterations begin on it, if that is asked for.
    now: u64,
    starts: Option<Vec<u64>>,
    /// Calls of the collective that bounds iterations, in this pass.
    calls: u64,
    /// Ranks of the trace, and the rank's communicators of all of them.
    ranks: u32,
    whole: Vec<CommHandle>,
    /// Whether this pass has emitted anything that takes time.
    busy: bool,
}

impl Emitter {
    /// An emitter of a rank that has seen nothing.
    pub fn new(options: &Options, rank: u32, ranks: u32) -> Self {
        Self {
            scale: options.scale_of(rank),
            message_scale: options.message_scale,
            iteration: options.iteration.clone(),
            queue: Vec::new(),
            passed: 0,
            compute: 0,
            bounded: false,
            marks_first: options.window().is_some(),
            now: 0,
            starts: None,
            calls: 0,
            ranks,
            whole: vec![COMM_WORLD],
            busy: false,
        }
    }

    /// The operations that are ready.
    pub fn ahead(&self) -> &[Op] {
        &self.queue[self.passed..]
    }

    /// Goes past the first `count` of those that are ready.
    pub fn pass(&mut self, count: usize) {
        self.passed += count;
    }

    /// The operation passed last, if it is not forgotten.
    pub fn current(&self) -> Option<&Op> {
        self.queue[..self.passed].last()
    }

    /// Forgets the operations that have been passed: to be called when none is ready.
    pub fn forget(&mut self) {
        self.queue.drain(..std::mem::take(&mut self.passed));
    }

    /// Takes the operations that are ready.
    pub fn take(&mut self) -> impl Iterator<Item = Op> {
        self.forget();
        self.queue.drain(..)
    }

    /// A call is entered, at a time of the trace's wall clock.
    pub const fn at(&mut self, time: u64) {
        self.now = time;
    }

    /// Keeps from now on when iterations begin.
    pub fn keep_starts(&mut self) {
        self.starts = Some(Vec::new());
    }

    /// When iterations began, on the wall clock; those of an iteration that is the whole pass are not kept.
    pub fn starts(&self) -> &[u64] {
        self.starts.as_deref().unwrap_or_default()
    }

    /// Time that the application computed, in picoseconds of the trace's clock.
    pub const fn compute(&mut self, picoseconds: u64) {
        self.compute = self.compute.saturating_add(picoseconds);
    }

    fn flush(&mut self) {
        #[allow(
            clippy::cast_precision_loss,
            clippy::cast_sign_loss,
            clippy::cast_possible_truncation,
            reason = "a factor"
        )]
        let span = if self.scale == 1.0 { self.compute } else { (self.compute as f64 * self.scale).round() as u64 };
        self.compute = 0;
        if span > 0 {
            self.busy = true;
            self.queue.push(Op::Compute(Picoseconds(span)));
        }
    }

    /// An operation, with the bytes that the application had.
    pub fn op(&mut self, mut op: Op) {
        if self.is_bound(&op) {
            self.calls += 1;
            if let Iteration::Collective(Bound { every, .. }) = self.iteration
                && (self.calls - 1).is_multiple_of(every.get().into())
            {
                self.boundary();
            }
        }
        if self.message_scale != 1.0 {
            self.scale_bytes(&mut op);
        }
        self.unmarked(op);
    }

    /// Whether an operation, with the bytes of the trace, is a collective of those that bound iterations.
    fn is_bound(&self, op: &Op) -> bool {
        let (Op::Collective(Collective::Blocking { kind, comm, volume, .. })
        | Op::Collective(Collective::Nonblocking { kind, comm, volume, .. })) = op
        else {
            return false;
        };
        let Iteration::Collective(bound) = &self.iteration else { return false };
        let handed_in = || match volume {
            Volume::Uniform(bytes) => bytes.0,
            Volume::PerRank(blocks) => blocks.iter().sum(),
        };
        *kind == bound.kind
            && bound.bytes.is_none_or(|bytes| bytes == handed_in())
            && (!bound.world || self.whole.contains(comm))
    }

    /// Keeps which communicators have all ranks.
    fn follow(&mut self, op: &Op) {
        match op {
            Op::Comm(Comm::Dup { comm, new }) if self.whole.contains(comm) => self.whole.push(*new),
            Op::Comm(Comm::Create { new, members, .. }) | Op::Comm(Comm::Define { new, members })
                if members.len() == self.ranks as usize =>
            {
                self.whole.push(*new);
            }
            Op::Comm(Comm::Free(comm)) => self.whole.retain(|whole| whole != comm),
            _ => {}
        }
    }

    fn scale_bytes(&self, op: &mut Op) {
        #[allow(
            clippy::cast_precision_loss,
            clippy::cast_sign_loss,
            clippy::cast_possible_truncation,
            reason = "a factor"
        )]
        let scaled = |bytes: u64| ((bytes as f64 * self.message_scale).round() as u64).max(bytes.min(1));
        match op {
            Op::P2p(P2p::Send { bytes, .. })
            | Op::P2p(P2p::Isend { bytes, .. })
            | Op::Rma(Rma::Access { bytes, .. })
            | Op::Collective(Collective::Blocking { volume: Volume::Uniform(bytes), .. })
            | Op::Collective(Collective::Nonblocking { volume: Volume::Uniform(bytes), .. }) => {
                *bytes = Bytes(scaled(bytes.0))
            }
            Op::Collective(Collective::Blocking { volume: Volume::PerRank(blocks), .. })
            | Op::Collective(Collective::Nonblocking { volume: Volume::PerRank(blocks), .. }) => {
                *blocks = blocks.iter().map(|&block| scaled(block)).collect();
            }
            _ => {}
        }
    }

    /// An operation that bounds no iteration and is no message of the application's own.
    pub fn unmarked(&mut self, op: Op) {
        self.flush();
        self.follow(&op);
        self.busy |= !matches!(
            op,
            Op::Comm(Comm::Free(_) | Comm::Define { .. } | Comm::SetName { .. }) | Op::P2p(P2p::RequestFree(_))
        );
        self.queue.push(op);
    }

    /// A wait for these requests, if there are any.
    pub fn wait(&mut self, requests: &[RequestId]) {
        match requests {
            [] => {}
            [one] => self.op(Op::P2p(P2p::Wait(*one))),
            several => self.op(Op::P2p(P2p::WaitAll(several.into()))),
        }
    }

    /// A call or region of this name begins.
    pub fn enter(&mut self, name: &str) {
        if matches!(&self.iteration, Iteration::Region(bound) if bound == name) {
            self.boundary();
        }
    }

    fn boundary(&mut self) {
        if let Some(starts) = &mut self.starts {
            starts.push(self.now);
        }
        if std::mem::replace(&mut self.bounded, true) || self.marks_first {
            self.flush();
            self.queue.push(Op::MarkProgress);
        }
    }

    /// Whether the call or region that bounds iterations has been seen, if there is to be one.
    pub const fn is_bounded(&self) -> bool {
        self.bounded || matches!(self.iteration, Iteration::Pass)
    }

    /// Whether this pass has, or will have had at its end, anything that takes time.
    pub const fn is_busy(&self) -> bool {
        self.busy || self.compute > 0
    }

    /// The end of the trace.
    ///
    /// # Errors
    /// The mark of an iteration never came, or, if the trace is to start over, there is nothing in it that takes time.
    pub fn end_pass(&mut self, repeat: bool) -> Result<(), String> {
        self.flush();
        self.calls = 0;
        match &self.iteration {
            Iteration::Pass => self.queue.push(Op::MarkProgress),
            Iteration::Collective(bound) if !self.bounded => return Err(never("collective", bound.kind.name())),
            Iteration::Region(name) if !self.bounded => return Err(never("region", name)),
            Iteration::Collective(_) | Iteration::Region(_) => {}
        }
        if repeat && !std::mem::replace(&mut self.busy, false) {
            return Err("the trace of this rank has no operation, so it cannot be repeated".to_owned());
        }
        Ok(())
    }
}

fn never(what: &str, name: &str) -> String {
    let kinds: Vec<&str> = CollectiveKind::ALL.iter().map(|kind| kind.name()).collect();
    let hint =
        if what == "collective" { format!(" (the collectives are {})", kinds.join(", ")) } else { String::new() };
    format!("this rank has no {what} {name:?} to bound its iterations{hint}")
}
