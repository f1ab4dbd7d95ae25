//! Communicators, and the bookkeeping by which all members of one agree.

use std::collections::HashMap;
use std::sync::Arc;

use crate::ids::Rank;
use crate::program::{CommHandle, Neighbors, Op};
use crate::units::Bytes;

/// The context of the communicator of all ranks of a job.
pub(super) const WORLD_CONTEXT: u32 = 0;

/// A communicator as one rank sees it.
#[derive(Clone, Debug)]
pub(super) struct Communicator {
    /// The context of its point-to-point messages; that of its collectives is one more.
    pub context: u32,
    /// This rank in it.
    pub rank: u32,
    /// The members, as ranks of the job.
    pub members: Arc<[u32]>,
    /// Collectives that this rank has begun on it.
    pub collectives: u64,
    /// This rank's neighbours, if it has a topology.
    pub neighbors: Option<Arc<Neighbors>>,
}

impl Communicator {
    /// A communicator without a topology, on which no collective has been called.
    pub fn new(context: u32, rank: u32, members: Arc<[u32]>) -> Self {
        Self { context, rank, members, collectives: 0, neighbors: None }
    }

    /// The same ranks and topology in another context.
    pub fn copy(&self, context: u32) -> Self {
        Self { context, collectives: 0, ..self.clone() }
    }

    /// The rank of the job that `rank` of the communicator is.
    pub fn member(&self, rank: Rank) -> Option<u32> {
        self.members.get(rank.index()).copied()
    }
}

/// What ranks of a job must agree on, by collective: (context, number of the collective on it).
#[derive(Clone, Debug)]
pub(super) struct Agreements {
    next_context: u32,
    open: HashMap<(u32, u64), Agreement>,
    defined: HashMap<(CommHandle, Arc<[u32]>), u32>,
}

#[derive(Clone, Debug)]
struct Agreement {
    first: u32,
    /// Members of the communicator.
    size: u32,
    op: Op,
    name: &'static str,
    root: Rank,
    alike: Alike,
    arrived: u32,
    left: u32,
    /// Colour, key and rank of the job, by caller; for a split.
    bids: Vec<(i32, i32, u32, u32)>,
    contexts: HashMap<i32, u32>,
}

/// What the volumes of one collective's callers have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Alike {
    Anything,
    /// Each gives one number, its own.
    Number,
    /// Each gives this number.
    Bytes(Bytes),
    /// Each gives a list of blocks.
    Blocks,
}

/// A rank's call, as far as others must agree with it.
pub(super) struct Claim<'op> {
    /// The operation's name.
    pub name: &'static str,
    pub root: Rank,
    /// Members of the communicator.
    pub size: u32,
    /// How the volumes must be alike.
    pub alike: Alike,
    /// The call.
    pub op: &'op Op,
}

impl Agreements {
    /// Contexts below `first_context` are taken.
    pub fn new(first_context: u32) -> Self {
        Self { next_context: first_context, open: HashMap::new(), defined: HashMap::new() }
    }

    /// Rank `rank` of the job makes collective call `number` on `context`. Says with whom it disagrees: the first
    /// caller and its words.
    pub fn enter(&mut self, context: u32, number: u64, rank: u32, claim: Claim<'_>) -> Result<(), (u32, String)> {
        let agreement = self.open.entry((context, number)).or_insert_with(|| Agreement {
            first: rank,
            size: claim.size,
            op: claim.op.clone(),
            name: claim.name,
            root: claim.root,
            alike: claim.alike,
            arrived: 0,
            left: 0,
            bids: Vec::new(),
            contexts: HashMap::new(),
        });
        agreement.arrived += 1;
        let same_call = std::mem::discriminant(&agreement.op) == std::mem::discriminant(claim.op);
        if same_call && (agreement.name, agreement.root, agreement.alike) == (claim.name, claim.root, claim.alike) {
            Ok(())
        } else {
            Err((agreement.first, super::words::of(&agreement.op)))
        }
    }

    /// What a caller of a split asks for. `rank` is its rank in the parent, `member` that in the job.
    pub fn bid(&mut self, context: u32, number: u64, color: i32, key: i32, rank: u32, member: u32) {
        if let Some(agreement) = self.open.get_mut(&(context, number)) {
            agreement.bids.push((color, key, rank, member));
        }
    }

    /// The members of colour `color` in order, as ranks of the job; once every member has made its bid.
    pub fn members(&self, context: u32, number: u64, color: i32) -> Vec<u32> {
        let bids = self.open.get(&(context, number)).map_or(&[][..], |agreement| &agreement.bids);
        let mut chosen: Vec<_> = bids.iter().filter(|bid| bid.0 == color).collect();
        chosen.sort_unstable();
        chosen.into_iter().map(|bid| bid.3).collect()
    }

    /// The context of the new communicator of `color` that came of this call: the same for every caller.
    pub fn context(&mut self, context: u32, number: u64, color: i32) -> u32 {
        let next = &mut self.next_context;
        let mut fresh = || {
            *next += 2;
            *next - 2
        };
        match self.open.get_mut(&(context, number)) {
            Some(agreement) => *agreement.contexts.entry(color).or_insert_with(fresh),
            None => fresh(),
        }
    }

    /// The context of the communicator with this handle and these members: the same for every member.
    pub fn defined(&mut self, handle: CommHandle, members: &Arc<[u32]>) -> u32 {
        let next = &mut self.next_context;
        *self.defined.entry((handle, Arc::clone(members))).or_insert_with(|| {
            *next += 2;
            *next - 2
        })
    }

    /// A collective that some members of its communicator have never called: context, number, first caller, its call, and
    /// how many called it. To be asked when the job has ended.
    pub fn deserted(&self) -> Option<(u32, u64, u32, String, u32)> {
        let deserted = self.open.iter().filter(|(_, agreement)| agreement.arrived < agreement.size);
        let (&(context, number), agreement) = deserted.min_by_key(|(key, _)| **key)?;
        Some((context, number, agreement.first, super::words::of(&agreement.op), agreement.arrived))
    }

    /// A rank has finished the call; when all `size` have, it is forgotten.
    pub fn leave(&mut self, context: u32, number: u64, size: usize) {
        if let Some(agreement) = self.open.get_mut(&(context, number)) {
            agreement.left += 1;
            if agreement.left as usize == size {
                self.open.remove(&(context, number));
            }
        }
    }
}
