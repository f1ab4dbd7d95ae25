//! Traces whose operations depend on each other as a graph: GOAL schedules, Chakra execution traces, workload files of SimAI, and lists
//! of flows.
//!
//! They are read whole, checked before anything runs, and executed as [`fairlane_core::program::graph`] does: several operations of a
//! rank are under way at once. What the check finds is named with rank and node: messages that are sent and never received, or the
//! other way round, partners that do not exist, collectives whose members differ, cycles of dependencies, and operations of several
//! ranks that wait for each other.

mod chakra;
mod checks;
mod flows;
mod goal;
mod simai;
mod waits;

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use fairlane_core::ids::Rank;
use fairlane_core::program::graph::{Graph, Node, RankGraph};
use fairlane_core::program::{CollectiveKind, Program, Volume};
use fairlane_core::units::{Bytes, Picoseconds};

use crate::description::{CollectiveTotals, Description, KindTotals, Neighbours};
use crate::unsupported::Collector;
use crate::{Iteration, Options, TraceError};

/// A graph as it was read, and the names of its parts.
#[derive(Default)]
pub struct Recorded {
    /// The file, or that of each rank.
    files: Vec<PathBuf>,
    format: &'static str,
    version: String,
    graph: Graph,
    /// Names of the groups.
    groups: Vec<String>,
    /// By rank and node: line, node id or operation number in the file.
    places: Vec<Vec<u64>>,
    /// The word for such a number.
    place: &'static str,
    /// Nodes by what the file calls them.
    kinds: BTreeMap<String, u64>,
    unsupported: Collector,
}

/// The files of a graph at a path, if it leads to one.
pub enum Files {
    /// A GOAL schedule, text or binary.
    Goal(PathBuf),
    /// Chakra execution traces, by rank.
    Chakra(Vec<PathBuf>),
    /// A list of flows.
    Flows(PathBuf),
    /// A workload file of SimAI.
    Simai(PathBuf),
}

/// The graph that a path leads to, if it does.
///
/// # Errors
/// A folder has Chakra traces of some ranks only.
pub fn find(path: &Path) -> Result<Option<Files>, TraceError> {
    if path.is_file() {
        let mut start = Vec::new();
        let read = File::open(path).and_then(|file| file.take(4096).read_to_end(&mut start));
        if read.is_ok() && goal::is_one(path, &start) {
            return Ok(Some(Files::Goal(path.to_owned())));
        }
        if read.is_ok() && flows::is_one(&start) {
            return Ok(Some(Files::Flows(path.to_owned())));
        }
        if read.is_ok() && simai::is_one(&start) {
            return Ok(Some(Files::Simai(path.to_owned())));
        }
    }
    Ok(chakra::find(path)?.map(Files::Chakra))
}

impl Files {
    fn read(&self, options: &Options) -> Result<Recorded, TraceError> {
        let recorded = match self {
            Self::Goal(file) => goal::read(file)?,
            Self::Chakra(files) => chakra::read(files, options)?,
            Self::Flows(file) => flows::read(file)?,
            Self::Simai(file) => simai::read(file, options)?,
        };
        if recorded.graph.ranks.is_empty() {
            return Err(TraceError::file(&recorded.file(0), "no ranks"));
        }
        recorded.check()?;
        // Passes of SimAI are written here: they wait for nothing that comes later.
        if !matches!(self, Self::Simai(_)) {
            recorded.check_waits()?;
        }
        Ok(recorded)
    }

    /// The program of the graph.
    ///
    /// # Errors
    /// As [`crate::open`].
    pub fn open(&self, options: &Options) -> Result<Program, TraceError> {
        if options.iteration != Iteration::Pass || options.window().is_some() {
            let problem = "a graph has one iteration, from its beginning to its end: pass is allowed".to_owned();
            return Err(TraceError::Option { key: "iteration", value: "a part".to_owned(), problem });
        }
        let mut recorded = self.read(options)?;
        if let Some(first) = std::mem::take(&mut recorded.unsupported).finish().into_iter().next() {
            let (rank, record, file) = (first.first_rank, first.first_record, recorded.file(first.first_rank));
            return Err(TraceError::Record { file, rank, record, call: first.call, problem: first.reason });
        }
        // A flow that begins at its time does so once.
        let repeat = options.repeat && !matches!(self, Self::Flows(_));
        recorded.program(repeat, options)
    }

    /// The contents of the graph.
    ///
    /// # Errors
    /// As [`crate::describe`].
    pub fn describe(&self, options: &Options) -> Result<Description, TraceError> {
        let mut recorded = self.read(&Options { leave_out: Vec::new(), ..options.clone() })?;
        let mut description = recorded.describe();
        description.unsupported = std::mem::take(&mut recorded.unsupported).finish();
        if matches!(self, Self::Flows(_)) {
            // They are not repeated.
            description.ranks_without_operations = 0;
        }
        recorded.program(false, options)?;
        Ok(description)
    }
}

/// With the times and bytes that the options make of it.
fn scaled(graph: RankGraph, rank: u32, options: &Options) -> RankGraph {
    let (time, size) = (options.scale_of(rank), options.message_scale);
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "saturates"
    )]
    let times = |value: u64, factor: f64| (value as f64 * factor).round() as u64;
    let bytes = |bytes: Bytes| Bytes(if bytes.0 == 0 { 0 } else { times(bytes.0, size).max(1) });
    graph.map_nodes(|node| match node {
        Node::Work { stream, span } if time != 1.0 => Node::Work { stream, span: Picoseconds(times(span.0, time)) },
        Node::Send { to, bytes: of, tag, mode } if size != 1.0 => Node::Send { to, bytes: bytes(of), tag, mode },
        Node::Collective { kind, group, root, volume: Volume::Uniform(of), stream } if size != 1.0 => {
            Node::Collective { kind, group, root, volume: Volume::Uniform(bytes(of)), stream }
        }
        node => node,
    })
}

impl Recorded {
    /// Adds a node of the rank that is read, the last one.
    fn add(&mut self, node: Node, place: u64, kind: &str) -> u32 {
        match self.kinds.get_mut(kind) {
            Some(count) => *count += 1,
            None => drop(self.kinds.insert(kind.to_owned(), 1)),
        }
        if let Some(places) = self.places.last_mut() {
            places.push(place);
        }
        self.graph.ranks.last_mut().map_or(0, |rank| rank.node(node))
    }

    fn wrong(&self, rank: u32, node: usize, problem: String) -> TraceError {
        let number = self.places[rank as usize].get(node).copied().unwrap_or_default();
        TraceError::Node { file: self.file(rank), rank, place: self.place, number, problem }
    }

    /// The file of a rank.
    fn file(&self, rank: u32) -> PathBuf {
        self.files.get(rank as usize).or(self.files.first()).cloned().unwrap_or_default()
    }

    fn program(mut self, repeat: bool, options: &Options) -> Result<Program, TraceError> {
        let graph = std::mem::take(&mut self.graph);
        let of_rank = |((rank, of), places): ((u32, RankGraph), &Vec<u64>)| {
            scaled(of, rank, options).placed(self.place, places.clone())
        };
        let ranks = (0..).zip(graph.ranks).zip(&self.places).map(of_rank).collect();
        Graph { ranks, repeat, names: self.groups.clone(), ..graph }.program().map_err(|cycle| {
            let places = &self.places[cycle.rank as usize];
            let shown = cycle.nodes.iter().take(SHOWN).map(|node| places[*node as usize].to_string());
            let mut numbers: Vec<String> = shown.collect();
            if cycle.nodes.len() > SHOWN {
                numbers.push(format!("... ({} in all)", cycle.nodes.len() - 1));
            }
            let problem = format!("a cycle of dependencies: {} {}", self.place, numbers.join(" after "));
            self.wrong(cycle.rank, cycle.nodes[0] as usize, problem)
        })
    }

    fn nodes(&self) -> impl Iterator<Item = (u32, usize, &Node)> {
        let of_rank = |(rank, graph): (u32, &'_ RankGraph)| (rank, graph.nodes().len());
        let counts: Vec<(u32, usize)> = (0..).zip(&self.graph.ranks).map(of_rank).collect();
        counts.into_iter().flat_map(move |(rank, count)| {
            (0..count).map(move |node| (rank, node, &self.graph.ranks[rank as usize].nodes()[node]))
        })
    }

    fn describe(&self) -> Description {
        let ranks = u32::try_from(self.graph.ranks.len()).unwrap_or(u32::MAX);
        let mut description = Description {
            format: self.format.to_owned(),
            version: self.version.clone(),
            ranks,
            events: self.kinds.values().sum(),
            calls: self.kinds.clone(),
            ..Description::default()
        };
        let mut partners = vec![BTreeSet::new(); ranks as usize];
        let mut callers: BTreeMap<&str, BTreeSet<u32>> = BTreeMap::new();
        let mut idle: BTreeSet<u32> = (0..ranks).collect();
        let mut busy = 0.0;
        for (rank, _, node) in self.nodes() {
            // A rank that only sends never blocks.
            if matches!(node, Node::Work { .. } | Node::Recv { .. } | Node::Collective { .. }) {
                idle.remove(&rank);
            }
            match node {
                Node::Send { to, bytes, .. } => {
                    description.p2p_messages += 1;
                    description.p2p_bytes = description.p2p_bytes.saturating_add(bytes.0);
                    partners[rank as usize].insert(to.0);
                    partners[to.0 as usize].insert(rank);
                }
                Node::Recv { from: None, .. } => description.wildcard_receives += 1,
                Node::Collective { kind, group, root, volume, .. } => {
                    let totals = description.collectives.entry(kind.name().to_owned()).or_default();
                    totals.calls += 1;
                    let root = group.map_or(*root, |group| self.graph.groups[group][root.index()]);
                    let handed_in = of_call(*kind, volume, self.members(node), root == Rank(rank));
                    totals.bytes = totals.bytes.saturating_add(handed_in);
                    callers.entry(kind.name()).or_default().insert(rank);
                }
                #[allow(clippy::cast_precision_loss, reason = "seconds are shown")]
                Node::Work { span, .. } => busy += span.0 as f64,
                Node::Join | Node::Delay(_) | Node::Recv { .. } => {}
            }
        }
        for (name, ranks) in callers {
            let calls = description.collectives.get(name).map_or(0, |totals: &CollectiveTotals| totals.calls);
            let totals = KindTotals { calls, ranks: u32::try_from(ranks.len()).unwrap_or(u32::MAX) };
            description.iteration_collectives.insert(name.to_owned(), totals);
        }
        for (name, members) in self.groups.iter().zip(&self.graph.groups) {
            *description.communicators.entry(format!("{name}({})", members.len())).or_default() += 1;
        }
        let counts = partners.iter().map(|of| u32::try_from(of.len()).unwrap_or(u32::MAX));
        description.neighbours = Neighbours {
            min: counts.clone().min().unwrap_or_default(),
            mean: counts.clone().map(f64::from).sum::<f64>() / f64::from(ranks.max(1)),
            max: counts.max().unwrap_or_default(),
        };
        description.cpu_seconds = Some(busy * 1e-12);
        description.ranks_without_operations = u32::try_from(idle.len()).unwrap_or(u32::MAX);
        description
    }

    fn members(&self, node: &Node) -> usize {
        match node {
            Node::Collective { group: Some(group), .. } => self.graph.groups[*group].len(),
            _ => self.graph.ranks.len(),
        }
    }
}

/// So many nodes of a cycle are named.
const SHOWN: usize = 8;

/// Bytes that a member hands in.
fn of_call(kind: CollectiveKind, volume: &Volume, members: usize, is_root: bool) -> u64 {
    match (kind, volume) {
        (CollectiveKind::Scatter, _) if !is_root => 0,
        (
            CollectiveKind::Alltoall | CollectiveKind::ReduceScatter | CollectiveKind::Scatter,
            Volume::Uniform(block),
        ) => block.0.saturating_mul(members as u64),
        (_, Volume::Uniform(bytes)) => bytes.0,
        (_, Volume::PerRank(blocks)) => blocks.iter().sum(),
    }
}

/// Members of a group, in order.
fn group(members: Vec<u32>) -> Arc<[Rank]> {
    members.into_iter().map(Rank).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use fairlane_core::units::Bytes;

    #[test]
    fn the_root_of_a_scatter_hands_in_the_blocks_of_all() {
        let handed_in = |kind, root| of_call(kind, &Volume::Uniform(Bytes(100)), 8, root);
        assert_eq!([true, false].map(|root| handed_in(CollectiveKind::Scatter, root)), [800, 0]);
        assert_eq!([true, false].map(|root| handed_in(CollectiveKind::Gather, root)), [100, 100]);
        assert_eq!(handed_in(CollectiveKind::Alltoall, false), 800);
    }
}
