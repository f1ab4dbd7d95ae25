//! Programs whose operations depend on each other as a graph: several of a rank are under way at once, as of a GPU that computes on
//! one stream and communicates on others.
//!
//! A [`Node`] is ready when all that it depends on has ended ([`After::End`]) or begun ([`After::Begin`]). Nodes that are
//! ready begin one after another: work, delays and receives before sends and collectives, each in the order of the
//! completions that made them ready, then of their numbers. The CPU of the rank begins them: what becomes ready while it is
//! in a send waits for the overhead of that send. A stream of a rank does one thing after another, work or collectives.
//! Point-to-point messages take their send and receive overheads from the CPU; work and collectives do not.

mod source;

use std::collections::HashMap;
use std::sync::Arc;

use thiserror::Error;

use source::GraphSource;

use super::{CollectiveKind, Comm, CommHandle, Op, Program, SendMode, Source, Tag, Volume};
use crate::ids::Rank;
use crate::units::{Bytes, Picoseconds};

/// An operation of a rank, at its place among the nodes of the rank.
#[derive(Clone, Debug, PartialEq)]
pub enum Node {
    /// Takes no time: others depend on it.
    Join,
    /// Work of this long on a stream of the rank, any number.
    Work {
        /// The stream.
        stream: u32,
        /// How long it takes.
        span: Picoseconds,
    },
    /// A timer: ends after this time; takes neither the CPU nor a stream.
    Delay(Picoseconds),
    /// A message to a rank of the job.
    Send {
        /// Destination.
        to: Rank,
        /// Payload.
        bytes: Bytes,
        /// Tag.
        tag: Tag,
        /// Completion rule.
        mode: SendMode,
    },
    /// A message from a rank of the job, or from any.
    Recv {
        /// Source, or any.
        from: Option<Rank>,
        /// Tag, or any.
        tag: Option<Tag>,
    },
    /// A collective of a group of ranks. Those of a group begin in the order of their numbers.
    Collective {
        /// Which.
        kind: CollectiveKind,
        /// The group, by its place in [`Graph::groups`]; `None`: all ranks.
        group: Option<usize>,
        /// Root, by its place in the group, where the kind has one.
        root: Rank,
        /// Payload of this rank, as of the MPI operation.
        volume: Volume,
        /// The stream that it takes until it ends, if it is on one.
        stream: Option<u32>,
    },
}

impl Node {
    /// The stream that it takes while it is under way.
    const fn stream(&self) -> Option<u32> {
        match *self {
            Self::Work { stream, .. } => Some(stream),
            Self::Collective { stream, .. } => stream,
            _ => None,
        }
    }

    /// Whether it ends when it begins.
    const fn is_instant(&self) -> bool {
        matches!(self, Self::Join | Self::Work { span: Picoseconds(0), .. } | Self::Delay(Picoseconds(0)))
    }
}

/// The event of a node for which a dependent one waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum After {
    /// Its end.
    End,
    /// Its beginning.
    Begin,
}

/// The operations of one rank.
#[derive(Clone, Debug, Default)]
pub struct RankGraph {
    nodes: Vec<Node>,
    /// (node, the one it depends on, and how).
    edges: Vec<(u32, u32, After)>,
    places: Places,
}

/// Where the nodes of a rank stand in the file that they were read from, for errors.
#[derive(Clone, Debug, Default)]
struct Places {
    /// The word for a number, as line.
    word: &'static str,
    /// By node; empty if they are not known.
    numbers: Vec<u64>,
}

impl Places {
    /// The name of a node.
    fn name(&self, node: u32) -> String {
        self.numbers.get(node as usize).map_or_else(|| node.to_string(), |number| format!("({} {number})", self.word))
    }
}

impl RankGraph {
    /// Adds a node and returns its number.
    pub fn node(&mut self, node: Node) -> u32 {
        self.nodes.push(node);
        u32::try_from(self.nodes.len() - 1).expect("invariant: fewer than 2^32 nodes of a rank")
    }

    /// `node` begins after another one of the rank.
    pub fn depends(&mut self, node: u32, on: u32, after: After) {
        self.edges.push((node, on, after));
    }

    /// Replaces each node and keeps the dependencies.
    #[must_use]
    pub fn map_nodes(self, of: impl FnMut(Node) -> Node) -> Self {
        Self { nodes: self.nodes.into_iter().map(of).collect(), ..self }
    }

    /// Says where its nodes stand in the file that they were read from: a number for each, and the word for it, as line.
    #[must_use]
    pub fn placed(self, word: &'static str, numbers: Vec<u64>) -> Self {
        Self { places: Places { word, numbers }, ..self }
    }

    /// The nodes, in the order of their numbers.
    #[must_use]
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// The dependencies: a node, the one it depends on, and how.
    #[must_use]
    pub fn edges(&self) -> &[(u32, u32, After)] {
        &self.edges
    }
}

/// Nodes of a rank depend on each other in a cycle.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("rank {rank}: a cycle of dependencies: {}", .nodes.iter().map(u32::to_string).collect::<Vec<_>>().join(" after "))]
pub struct Cycle {
    /// The rank.
    pub rank: u32,
    /// Numbers of nodes, each of which depends on the next; the last is the first.
    pub nodes: Vec<u32>,
}

/// The operations of all ranks of a job.
#[derive(Clone, Debug, Default)]
pub struct Graph {
    /// By rank.
    pub ranks: Vec<RankGraph>,
    /// Groups of ranks that have collectives, members in order.
    pub groups: Vec<Arc<[Rank]>>,
    /// The names of the first groups, in the same order.
    pub names: Vec<String>,
    /// Whether a rank begins again when it has ended; each end is a mark of progress.
    pub repeat: bool,
}

impl Graph {
    /// The program of the graph.
    ///
    /// # Errors
    /// A cycle.
    pub fn program(self) -> Result<Program, Cycle> {
        let Self { ranks, groups, names, repeat } = self;
        let names: Vec<Arc<str>> = names.into_iter().map(Arc::from).collect();
        let sources = (0..).zip(ranks).map(|(rank, graph)| {
            let plan = Arc::new(Plan::new(rank, graph)?);
            let groups = (FIRST_GROUP..).zip(&groups).filter(|(_, members)| members.contains(&Rank(rank)));
            let define = groups.flat_map(|(new, members)| {
                let name = names.get((new - FIRST_GROUP) as usize).map(Arc::clone);
                let define = Op::Comm(Comm::Define { new, members: Arc::clone(members) });
                std::iter::once(define).chain(name.map(|name| Op::Comm(Comm::SetName { comm: new, name })))
            });
            Ok(Box::new(GraphSource::new(plan, define.collect(), repeat)) as Box<dyn Source>)
        });
        Ok(Program { ranks: sources.collect::<Result<_, _>>()? })
    }
}

/// The handle of the first group; others follow.
const FIRST_GROUP: CommHandle = 2;

/// The graph of a rank as it is executed.
#[derive(Debug)]
struct Plan {
    nodes: Vec<Node>,
    /// By node: on how many beginnings and ends it waits.
    waits: Vec<u32>,
    /// By node: offsets into `dependents` of those that wait for its beginning, and of those that wait for its end.
    first: Vec<[u32; 2]>,
    dependents: Vec<u32>,
    places: Places,
}

impl Plan {
    fn new(rank: u32, graph: RankGraph) -> Result<Self, Cycle> {
        let RankGraph { nodes, mut edges, places } = graph;
        let mut last: HashMap<Option<usize>, u32> = HashMap::new();
        for (number, node) in (0..).zip(&nodes) {
            let Node::Collective { group, .. } = node else { continue };
            if let Some(before) = last.insert(*group, number) {
                edges.push((number, before, After::Begin));
            }
        }
        edges.sort_by_key(|&(node, on, after)| (on, after == After::End, node));
        edges.dedup();
        let mut waits = vec![0; nodes.len()];
        let mut first = vec![[0; 2]; nodes.len() + 1];
        for &(node, on, after) in &edges {
            waits[node as usize] += 1;
            first[on as usize][usize::from(after == After::End)] += 1;
        }
        let mut sum = 0;
        for counts in &mut first {
            for count in counts {
                sum += std::mem::replace(count, sum);
            }
        }
        let dependents = edges.iter().map(|(node, ..)| *node).collect();
        let plan = Self { nodes, waits, first, dependents, places };
        match plan.cycle() {
            Some(nodes) => Err(Cycle { rank, nodes }),
            None => Ok(plan),
        }
    }

    fn after(&self, node: u32, after: After) -> &[u32] {
        let [begin, end] = self.first[node as usize];
        match after {
            After::Begin => &self.dependents[begin as usize..end as usize],
            After::End => &self.dependents[end as usize..self.first[node as usize + 1][0] as usize],
        }
    }

    /// Returns a cycle, if there is one. Removes ready nodes one after another (topological sort): each node that is left is on a
    /// cycle or downstream of one.
    fn cycle(&self) -> Option<Vec<u32>> {
        let mut waits = self.waits.clone();
        let mut free: Vec<u32> = (0..).zip(&waits).filter(|(_, waits)| **waits == 0).map(|(node, _)| node).collect();
        while let Some(node) = free.pop() {
            for &next in [After::Begin, After::End].iter().flat_map(|after| self.after(node, *after)) {
                waits[next as usize] -= 1;
                if waits[next as usize] == 0 {
                    free.push(next);
                }
            }
        }
        // Each node that is left depends on one that is left, so following these comes to a node twice: that is the cycle.
        let mut on = vec![None; waits.len()];
        for node in (0..).zip(&waits).filter(|(_, waits)| **waits > 0).map(|(node, _): (u32, _)| node) {
            for &next in [After::Begin, After::End].iter().flat_map(|after| self.after(node, *after)) {
                on[next as usize] = Some(node);
            }
        }
        let start = waits.iter().position(|waits| *waits > 0)?;
        let mut path = vec![u32::try_from(start).ok()?];
        let mut place = vec![None; waits.len()];
        loop {
            let node = *path.last()? as usize;
            place[node] = Some(path.len() - 1);
            let next = on[node]?;
            path.push(next);
            if let Some(first) = place[next as usize] {
                return Some(path.split_off(first));
            }
        }
    }
}
