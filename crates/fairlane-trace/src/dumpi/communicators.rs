//! Communicators and groups of a rank, by the handles of a DUMPI file.
//!
//! A file does not say who is in a communicator that `MPI_Comm_split` made; that takes all ranks' files. Such a
//! communicator is a **root**: its members have no other names than their ranks in it. The members of all communicators
//! and groups that are derived from a root by duplication, inclusion, exclusion and so on are ranks of that root.

use std::sync::Arc;

use fairlane_core::ids::Rank;
use fairlane_core::program::{COMM_SELF, COMM_WORLD, CommHandle};
use rustc_hash::FxHashMap;

use super::cursor::Fault;
use crate::slots::Slots;

const COMM_NULL: i32 = 1;
const WORLD: i32 = 2;
const SELF: i32 = 3;
const GROUP_EMPTY: i32 = 2;

/// Members as ranks of a root, in their order.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Members {
    /// All of the root's, whose number may not be known.
    All(Option<u32>),
    These(Arc<[u32]>),
}

/// An ordered set of ranks of a root.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    root: u32,
    members: Members,
}

impl Group {
    fn list(&self) -> Result<Vec<u32>, Fault> {
        match &self.members {
            Members::These(list) => Ok(list.to_vec()),
            Members::All(Some(size)) => Ok((0..*size).collect()),
            Members::All(None) => Err("the size of a communicator made by MPI_Comm_split, without a call of \
                                       MPI_Comm_size or MPI_Group_size, is not known"
                .to_owned()),
        }
    }

    fn derived(&self, members: Vec<u32>) -> Self {
        Self { root: self.root, members: Members::These(members.into()) }
    }

    /// The members at these positions.
    pub fn pick(&self, positions: &[i32]) -> Result<Self, Fault> {
        let get = |&position: &i32| {
            let outside = || format!("rank {position} is not in the group");
            let index = u32::try_from(position).map_err(|_| outside())?;
            match &self.members {
                Members::All(None) => Ok(index),
                Members::All(Some(size)) => {
                    if index < *size {
                        Ok(index)
                    } else {
                        Err(outside())
                    }
                }
                Members::These(list) => list.get(index as usize).copied().ok_or_else(outside),
            }
        };
        Ok(self.derived(positions.iter().map(get).collect::<Result<_, Fault>>()?))
    }

    /// The members that are not at these positions.
    pub fn without(&self, positions: &[i32]) -> Result<Self, Fault> {
        let left_out = self.pick(positions)?.list()?;
        Ok(self.derived(self.list()?.into_iter().filter(|member| !left_out.contains(member)).collect()))
    }

    /// The members as ranks of another group, which is that of `whom`.
    pub fn within(&self, other: &Self, whom: impl Fn() -> String) -> Result<Arc<[Rank]>, Fault> {
        other.same_root(self)?;
        let members = self.list()?;
        let positions: FxHashMap<u32, u32> = match &other.members {
            Members::All(_) => members.iter().map(|&m| (m, m)).collect(),
            Members::These(list) => list.iter().zip(0..).map(|(&m, position)| (m, position)).collect(),
        };
        let outside = |m: &u32| format!("the group's member {m} is not in {}", whom());
        members.iter().map(|m| positions.get(m).copied().map(Rank).ok_or_else(|| outside(m))).collect()
    }

    fn same_root(&self, other: &Self) -> Result<(), Fault> {
        let empty = |group: &Self| group.members == Members::These([].into());
        if self.root == other.root || empty(self) || empty(other) {
            return Ok(());
        }
        Err("groups of communicators that MPI_Comm_split made apart cannot be compared".to_owned())
    }

    /// Set operations, in MPI's order of members.
    pub fn combine(&self, other: &Self, how: Combine) -> Result<Self, Fault> {
        self.same_root(other)?;
        let (mine, theirs) = (self.list()?, other.list()?);
        let root = if mine.is_empty() { other.root } else { self.root };
        let members: Vec<u32> = match how {
            Combine::Union => mine.iter().chain(theirs.iter().filter(|m| !mine.contains(m))).copied().collect(),
            Combine::Intersection => mine.into_iter().filter(|m| theirs.contains(m)).collect(),
            Combine::Difference => mine.into_iter().filter(|m| !theirs.contains(m)).collect(),
        };
        Ok(Self { root, members: Members::These(members.into()) })
    }
}

/// How two groups make a third.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Combine {
    Union,
    Intersection,
    Difference,
}

/// A communicator.
#[derive(Clone)]
pub struct Communicator {
    /// Its handle in the program.
    pub handle: CommHandle,
    group: Group,
    /// This rank's rank in it, if known.
    me: Option<u32>,
    /// Its extent in each dimension, if it has a Cartesian topology.
    dims: Option<Arc<[i32]>>,
}

/// A new communicator's place.
pub struct New {
    /// Its handle, which is free again at once if this rank is not in it.
    pub handle: CommHandle,
    /// The handle of a communicator whose number in the file it has taken.
    pub replaced: Option<CommHandle>,
}

/// All communicators and groups of a rank.
#[derive(Clone)]
pub struct Communicators {
    rank: u32,
    size: u32,
    communicators: FxHashMap<i32, Communicator>,
    groups: FxHashMap<i32, Group>,
    handles: Slots,
    roots: u32,
}

impl Communicators {
    /// The predefined ones.
    pub fn new(rank: u32, size: u32) -> Self {
        let world = Group { root: 0, members: Members::All(Some(size)) };
        let alone = Group { root: 0, members: Members::These([rank].into()) };
        let empty = Group { root: 0, members: Members::These([].into()) };
        let predefined = |handle, group, me| Communicator { handle, group, me: Some(me), dims: None };
        Self {
            rank,
            size,
            communicators: FxHashMap::from_iter([
                (WORLD, predefined(COMM_WORLD, world, rank)),
                (SELF, predefined(COMM_SELF, alone, 0)),
            ]),
            groups: FxHashMap::from_iter([(GROUP_EMPTY, empty)]),
            handles: Slots::starting_at(COMM_SELF + 1),
            roots: 1,
        }
    }

    /// A communicator.
    pub fn get(&self, id: i32) -> Result<&Communicator, Fault> {
        let unknown = || match id {
            COMM_NULL => "MPI_COMM_NULL".to_owned(),
            _ => format!("communicator {id} was made by no call that the trace records"),
        };
        self.communicators.get(&id).ok_or_else(unknown)
    }

    /// The handle of a communicator in the program.
    pub fn handle(&self, id: i32) -> Result<CommHandle, Fault> {
        Ok(self.get(id)?.handle)
    }

    /// The handle of a communicator that a message to or from `peer` uses.
    pub fn handle_with(&self, id: i32, peer: Rank) -> Result<CommHandle, Fault> {
        let communicator = self.get(id)?;
        match communicator.size() {
            Some(size) if peer.index() >= size => {
                Err(format!("rank {} of communicator {id}, which has {size} ranks", peer.0))
            }
            _ => Ok(communicator.handle),
        }
    }

    /// Notes a communicator under a new handle.
    fn insert(&mut self, id: i32, group: Group, me: Option<u32>, dims: Option<Arc<[i32]>>) -> New {
        let handle = self.handles.take();
        if id <= COMM_NULL {
            self.handles.give_back(handle);
            return New { handle, replaced: None };
        }
        let old = self.communicators.insert(id, Communicator { handle, group, me, dims });
        New { handle, replaced: old.map(|old| old.handle) }
    }

    /// A copy of a communicator.
    pub fn duplicate(&mut self, parent: i32, id: i32) -> Result<New, Fault> {
        let Communicator { group, me, dims, .. } = self.get(parent)?.clone();
        Ok(self.insert(id, group, me, dims))
    }

    /// A part of a communicator that only all ranks together know; `me` and `dims` as in [`Communicator`].
    pub fn split(&mut self, id: i32, me: Option<u32>, dims: Option<Arc<[i32]>>) -> New {
        let group = Group { root: self.roots, members: Members::All(None) };
        self.roots += 1;
        self.insert(id, group, me, dims)
    }

    /// A communicator of these members; also returns them as ranks of the parent.
    pub fn create(
        &mut self,
        parent: i32,
        group: &Group,
        id: i32,
        dims: Option<Arc<[i32]>>,
    ) -> Result<(New, Arc<[Rank]>), Fault> {
        let within = self.get(parent)?;
        let ranks = group.within(&within.group, || format!("communicator {parent}"))?;
        let me = within.me.and_then(|me| ranks.iter().position(|r| r.0 == me));
        let me = me.and_then(|position| u32::try_from(position).ok());
        Ok((self.insert(id, group.clone(), me, dims), ranks))
    }

    /// Forgets a communicator; returns its handle, unless it is a predefined one.
    pub fn free(&mut self, id: i32) -> Result<Option<CommHandle>, Fault> {
        let handle = self.handle(id)?;
        if handle <= COMM_SELF {
            return Ok(None);
        }
        self.communicators.remove(&id);
        self.handles.give_back(handle);
        Ok(Some(handle))
    }

    /// Takes a handle back whose communicator has been replaced.
    pub fn release(&mut self, handle: CommHandle) {
        self.handles.give_back(handle);
    }

    /// Forgets everything that is not predefined; returns the handles that were open.
    pub fn clear(&mut self) -> Vec<CommHandle> {
        let mut open: Vec<_> = self.communicators.values().map(|c| c.handle).filter(|&h| h > COMM_SELF).collect();
        open.sort_unstable();
        *self = Self::new(self.rank, self.size);
        open
    }

    /// A recorded number of members; an error if the job has fewer ranks.
    pub fn possible(&self, size: i32) -> Result<u32, Fault> {
        let ranks = u32::try_from(size).ok().filter(|&ranks| ranks <= self.size);
        ranks.ok_or_else(|| format!("{size} ranks, in a job of {}", self.size))
    }

    /// The answer of `MPI_Comm_size`.
    pub fn learn_size(&mut self, id: i32, size: i32) -> Result<(), Fault> {
        let size = self.possible(size)?;
        if let Some(communicator) = self.communicators.get_mut(&id) {
            learn(&mut communicator.group, size);
        }
        Ok(())
    }

    /// The answer of `MPI_Comm_rank`.
    pub fn learn_rank(&mut self, id: i32, rank: i32) {
        let Some(communicator) = self.communicators.get_mut(&id) else { return };
        communicator.me = communicator.me.or(u32::try_from(rank).ok());
    }

    /// The answer of `MPI_Group_size`.
    pub fn learn_group_size(&mut self, id: i32, size: i32) -> Result<(), Fault> {
        let size = self.possible(size)?;
        if let Some(group) = self.groups.get_mut(&id) {
            learn(group, size);
        }
        Ok(())
    }

    /// The group of a communicator.
    pub fn group_of(&self, communicator: i32) -> Result<Group, Fault> {
        Ok(self.get(communicator)?.group.clone())
    }

    /// A group.
    pub fn group(&self, id: i32) -> Result<&Group, Fault> {
        self.groups.get(&id).ok_or_else(|| format!("group {id} was made by no call that the trace records"))
    }

    /// Notes a group.
    pub fn set_group(&mut self, id: i32, group: Group) {
        if id > GROUP_EMPTY {
            self.groups.insert(id, group);
        }
    }

    /// Forgets a group.
    pub fn free_group(&mut self, id: i32) {
        if id > GROUP_EMPTY {
            self.groups.remove(&id);
        }
    }
}

impl Communicator {
    /// How many ranks it has, if that is known.
    pub fn size(&self) -> Option<usize> {
        match &self.group.members {
            Members::All(size) => size.map(|size| size as usize),
            Members::These(list) => Some(list.len()),
        }
    }

    /// This rank's coordinates, and the extents, of a communicator with a Cartesian topology.
    pub fn coordinates(&self) -> Result<(Vec<i32>, Arc<[i32]>), Fault> {
        let dims = self.dims.clone().ok_or("the communicator has no Cartesian topology that the trace records")?;
        let mut rest = self.me.ok_or("this rank's rank in the communicator is not known")?;
        let mut coordinates = vec![0; dims.len()];
        for (coordinate, &extent) in coordinates.iter_mut().zip(dims.iter()).rev() {
            let extent = u32::try_from(extent).ok().filter(|&e| e > 0).ok_or("an extent below 1")?;
            *coordinate = (rest % extent).cast_signed();
            rest /= extent;
        }
        Ok((coordinates, dims))
    }
}

const fn learn(group: &mut Group, size: u32) {
    if let Members::All(known @ None) = &mut group.members {
        *known = Some(size);
    }
}
