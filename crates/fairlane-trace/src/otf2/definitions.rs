//! The definitions of an archive: clock, locations, regions, groups and communicators.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use fairlane_core::ids::Rank;

use super::needs::{self, Need};

/// OTF2's number for the paradigm MPI.
const PARADIGM_MPI: u8 = 4;
const LOCATION_CPU_THREAD: u8 = 1;
const GROUP_COMM_LOCATIONS: u8 = 4;
const GROUP_COMM_GROUP: u8 = 5;
const GROUP_COMM_SELF: u8 = 6;
/// The members of a group are locations, not ranks.
const GROUP_GLOBAL_MEMBERS: u32 = 1;

/// The name of the attribute that carries a process's CPU time in nanoseconds.
const CPU_TIME: &str = "cputime";

/// Definitions as the archive has them.
#[derive(Default)]
pub struct Raw {
    pub strings: HashMap<u32, String>,
    pub ticks_per_second: u64,
    /// Attribute, name.
    pub attributes: Vec<(u32, u32)>,
    pub locations: Vec<RawLocation>,
    /// Region, name, paradigm.
    pub regions: Vec<(u32, u32, u8)>,
    pub groups: HashMap<u32, RawGroup>,
    /// Communicator, name, group.
    pub communicators: Vec<(u32, u32, u32)>,
    /// Communicator between groups, name.
    pub intercommunicators: Vec<(u32, u32)>,
    /// Window, name, communicator.
    pub windows: Vec<(u32, u32, u32)>,
}

/// A location as the archive has it.
pub struct RawLocation {
    pub id: u64,
    pub kind: u8,
    pub events: u64,
    /// The process that it belongs to.
    pub process: u32,
}

/// A group as the archive has it.
pub struct RawGroup {
    pub kind: u8,
    pub paradigm: u8,
    pub flags: u32,
    pub members: Vec<u64>,
}

/// A region of the code.
#[derive(Debug)]
pub struct Region {
    /// Its name.
    pub name: Arc<str>,
    /// Whether it is a call of MPI.
    pub mpi: bool,
    /// The record that it needs so that it can be simulated.
    pub need: Need,
}

/// Who is in a communicator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Members {
    World,
    Alone,
    /// As ranks of the job.
    These(Arc<[Rank]>),
    /// Two groups.
    Between,
    /// The archive does not say so in a known way.
    Unknown,
}

/// A communicator.
#[derive(Debug)]
pub struct Communicator {
    pub name: Arc<str>,
    pub members: Members,
}

/// A window of one-sided communication.
#[derive(Debug)]
pub struct Window {
    pub name: String,
    /// The communicator whose ranks it spans.
    pub comm: u32,
}

/// A thread beside the one that is the rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Thread {
    /// The rank of its process; the first one if the archive does not name the process.
    pub rank: u32,
    /// Its location, and how many events it has.
    pub location: (u64, u64),
}

/// Definitions as the reader wants them.
pub struct Definitions {
    /// Ticks of the wall clock in a second.
    pub ticks_per_second: u64,
    /// The attribute that carries CPU time, if there is one.
    pub cpu_time: Option<u32>,
    /// Each rank's location, and how many events it has.
    pub ranks: Vec<(u64, u64)>,
    /// Threads with events that are not ranks themselves.
    pub threads: Vec<Thread>,
    pub regions: HashMap<u32, Region>,
    pub communicators: BTreeMap<u32, Communicator>,
    pub windows: BTreeMap<u32, Window>,
    /// Groups of ranks, as ranks of the job.
    pub groups: HashMap<u32, Arc<[Rank]>>,
}

impl Definitions {
    /// The locations of the ranks and of other threads, each with how many events it has.
    pub fn locations(&self) -> impl Iterator<Item = (u64, u64)> {
        self.ranks.iter().copied().chain(self.threads.iter().map(|thread| thread.location))
    }

    /// How many ranks are in a communicator, if the archive says so.
    pub fn size_of(&self, comm: u32) -> Option<usize> {
        match &self.communicators.get(&comm)?.members {
            Members::World => Some(self.ranks.len()),
            Members::Alone => Some(1),
            Members::These(members) => Some(members.len()),
            Members::Between | Members::Unknown => None,
        }
    }

    /// Works the definitions out.
    pub fn new(raw: &Raw) -> Result<Self, String> {
        if raw.ticks_per_second == 0 {
            return Err("the archive does not define its clock".to_owned());
        }
        let name = |id: u32| raw.strings.get(&id).map_or("", String::as_str);
        let ranks = ranks(raw)?;
        let region = |&(id, string, paradigm): &(u32, u32, u8)| {
            let name = name(string);
            let mpi = paradigm == PARADIGM_MPI || name.starts_with("MPI_");
            (id, Region { name: name.into(), mpi, need: needs::of(name) })
        };
        Ok(Self {
            ticks_per_second: raw.ticks_per_second,
            cpu_time: raw.attributes.iter().find(|(_, string)| name(*string) == CPU_TIME).map(|(id, _)| *id),
            regions: raw.regions.iter().map(region).collect(),
            communicators: communicators(raw, &ranks),
            groups: groups(raw, &ranks),
            threads: threads(raw, &ranks),
            windows: raw.windows.iter().map(|&(id, s, comm)| (id, Window { name: name(s).to_owned(), comm })).collect(),
            ranks,
        })
    }
}

/// The locations of the ranks in order, each with its number of events.
fn ranks(raw: &Raw) -> Result<Vec<(u64, u64)>, String> {
    let events: HashMap<u64, u64> = raw.locations.iter().map(|location| (location.id, location.events)).collect();
    let of_mpi = |(_, g): &(&u32, &RawGroup)| g.kind == GROUP_COMM_LOCATIONS && g.paradigm == PARADIGM_MPI;
    let locations: Vec<u64> = match raw.groups.iter().filter(of_mpi).min_by_key(|(id, _)| **id) {
        Some((_, group)) => group.members.clone(),
        None => raw.locations.iter().filter(|one| one.kind == LOCATION_CPU_THREAD).map(|one| one.id).collect(),
    };
    if locations.is_empty() {
        return Err("the archive has no location of an MPI process".to_owned());
    }
    let known = |id: &u64| events.get(id).map(|&n| (*id, n)).ok_or_else(|| format!("location {id} is not defined"));
    locations.iter().map(known).collect()
}

/// The threads that are not ranks themselves.
fn threads(raw: &Raw, ranks: &[(u64, u64)]) -> Vec<Thread> {
    let rank_of = ranks_by_location(ranks);
    let of_process: HashMap<u32, u32> =
        raw.locations.iter().filter_map(|one| Some((one.process, *rank_of.get(&one.id)?))).collect();
    let thread =
        |one: &&RawLocation| one.kind == LOCATION_CPU_THREAD && one.events > 0 && !rank_of.contains_key(&one.id);
    let known = |one: &RawLocation| Thread {
        rank: of_process.get(&one.process).copied().unwrap_or(0),
        location: (one.id, one.events),
    };
    let mut found: Vec<Thread> = raw.locations.iter().filter(thread).map(known).collect();
    found.sort_unstable_by_key(|thread| (thread.rank, thread.location));
    found
}

fn ranks_by_location(ranks: &[(u64, u64)]) -> HashMap<u64, u32> {
    ranks.iter().zip(0..).map(|(&(location, _), rank)| (location, rank)).collect()
}

/// The groups whose members are known; a simulation wants them for windows only.
fn groups(raw: &Raw, ranks: &[(u64, u64)]) -> HashMap<u32, Arc<[Rank]>> {
    if raw.windows.is_empty() {
        return HashMap::new();
    }
    let rank_of = ranks_by_location(ranks);
    let of_ranks = raw.groups.iter().filter(|(_, group)| group.kind == GROUP_COMM_GROUP);
    let known = of_ranks.filter_map(|(&id, group)| match these(group, ranks.len(), &rank_of) {
        Members::These(members) => Some((id, members)),
        _ => None,
    });
    known.collect()
}

fn communicators(raw: &Raw, ranks: &[(u64, u64)]) -> BTreeMap<u32, Communicator> {
    let rank_of = ranks_by_location(ranks);
    let mut world = false;
    let mut found = BTreeMap::new();
    let mut ordered = raw.communicators.clone();
    ordered.sort_unstable();
    for (id, string, group) in ordered {
        let name = raw.strings.get(&string).cloned().unwrap_or_default();
        let mut members = match raw.groups.get(&group) {
            Some(group) if group.kind == GROUP_COMM_SELF => Members::Alone,
            Some(group) if group.kind == GROUP_COMM_GROUP => these(group, ranks.len(), &rank_of),
            _ => Members::Unknown,
        };
        // The first communicator of all ranks in their order is the world; later ones are copies.
        let all = |list: &[Rank]| list.len() == ranks.len() && (0..).zip(list).all(|(i, rank)| rank.0 == i);
        if !world && matches!(&members, Members::These(list) if all(list)) {
            (world, members) = (true, Members::World);
        }
        found.insert(id, Communicator { name: name.into(), members });
    }
    for (id, string) in &raw.intercommunicators {
        let name = raw.strings.get(string).cloned().unwrap_or_default();
        found.insert(*id, Communicator { name: name.into(), members: Members::Between });
    }
    found
}

fn these(group: &RawGroup, ranks: usize, rank_of: &HashMap<u64, u32>) -> Members {
    let global = group.flags & GROUP_GLOBAL_MEMBERS != 0;
    let rank = |&member: &u64| {
        if global {
            rank_of.get(&member).copied()
        } else {
            u32::try_from(member).ok().filter(|&r| (r as usize) < ranks)
        }
    };
    let members = group.members.iter().map(|member| rank(member).map(Rank)).collect::<Option<_>>();
    members.map_or(Members::Unknown, Members::These)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_and_members_are_worked_out() {
        let group =
            |kind, members: &[u64], flags| RawGroup { kind, paradigm: PARADIGM_MPI, flags, members: members.to_vec() };
        let at = |id, events, process| RawLocation { id, kind: LOCATION_CPU_THREAD, events, process };
        let raw = Raw {
            ticks_per_second: 1,
            locations: vec![at(10, 5, 0), at(20, 6, 1), at(21, 99, 1), at(30, 7, 2), at(31, 0, 2)],
            groups: HashMap::from([
                (0, group(GROUP_COMM_LOCATIONS, &[10, 20, 30], 0)),
                (1, group(GROUP_COMM_GROUP, &[0, 1, 2], 0)),
                (2, group(GROUP_COMM_SELF, &[], 0)),
                (3, group(GROUP_COMM_GROUP, &[30, 10], GROUP_GLOBAL_MEMBERS)),
            ]),
            communicators: vec![(5, 0, 1), (6, 0, 2), (7, 0, 3), (8, 0, 1), (9, 0, 4)],
            ..Raw::default()
        };
        let definitions = Definitions::new(&raw).unwrap();
        assert_eq!(definitions.ranks, [(10, 5), (20, 6), (30, 7)]);
        assert_eq!(definitions.threads, [Thread { rank: 1, location: (21, 99) }], "one without events is none");
        let members: Vec<Members> = definitions.communicators.values().map(|c| c.members.clone()).collect();
        let these = |list: &[u32]| Members::These(list.iter().map(|&r| Rank(r)).collect());
        assert_eq!(members, [Members::World, Members::Alone, these(&[2, 0]), these(&[0, 1, 2]), Members::Unknown]);
    }
}
