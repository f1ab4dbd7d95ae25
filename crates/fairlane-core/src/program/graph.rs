//! Programs whose operations depend on each other as a graph: several of a rank are under way at once, as of a GPU that computes on
//! one stream and communicates on others.
//!
//! A [`Node`] is ready when all that it depends on has ended ([`After::End`]) or begun ([`After::Begin`]). Nodes that are ready begin
//! one after another, in the order of the completions that made them ready, then of their numbers; work before messages. The CPU of the
//! rank begins them: what becomes ready while it is in a send waits for the overhead of that send. A stream of a rank does one thing
//! after another, work or collectives. Point-to-point messages take their send and receive overheads from the CPU; work and collectives
//! do not.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use thiserror::Error;

use super::{Collective, CollectiveKind, Comm, CommHandle, Op, P2p, Program, RequestId, SendMode, Source, Tag, Volume};
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
    /// A time in which the rank does nothing.
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

    /// The same dependencies between other nodes.
    #[must_use]
    pub fn map_nodes(self, of: impl FnMut(Node) -> Node) -> Self {
        Self { nodes: self.nodes.into_iter().map(of).collect(), edges: self.edges }
    }

    /// The nodes, in the order of their numbers.
    #[must_use]
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
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
    /// Whether a rank begins again when it has ended; each end is a mark of progress.
    pub repeat: bool,
}

impl Graph {
    /// The program of the graph.
    ///
    /// # Errors
    /// A cycle.
    pub fn program(self) -> Result<Program, Cycle> {
        let Self { ranks, groups, repeat } = self;
        let sources = (0..).zip(ranks).map(|(rank, graph)| {
            let plan = Arc::new(Plan::new(rank, graph)?);
            let groups = (FIRST_GROUP..).zip(&groups).filter(|(_, members)| members.contains(&Rank(rank)));
            let define = groups.map(|(new, members)| Op::Comm(Comm::Define { new, members: Arc::clone(members) }));
            Ok(Box::new(GraphSource::new(plan, define.collect(), repeat)) as Box<dyn Source>)
        });
        Ok(Program { ranks: sources.collect::<Result<_, _>>()? })
    }
}

/// So many operations under way are named in an error.
const SHOWN: usize = 8;
/// The handle of the first group; others follow.
const FIRST_GROUP: CommHandle = 2;

/// The graph of a rank as it is executed.
#[derive(Debug)]
struct Plan {
    nodes: Vec<Node>,
    /// By node: on how many beginnings and ends it waits.
    waits: Vec<u32>,
    /// By node: where its dependents begin; those of its beginning, then those of its end.
    first: Vec<[u32; 2]>,
    dependents: Vec<u32>,
}

impl Plan {
    fn new(rank: u32, graph: RankGraph) -> Result<Self, Cycle> {
        let RankGraph { nodes, mut edges } = graph;
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
        let plan = Self { nodes, waits, first, dependents };
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

    /// Nodes of a cycle, if there is one: those that never lose all that they wait for wait for each other.
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
        // Each node that is left depends on another one that is left: who follows these comes to one for the second time.
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

/// A stream of a rank: whether something is under way on it, and what waits.
#[derive(Clone, Debug, Default)]
struct Stream {
    busy: bool,
    queue: VecDeque<u32>,
}

/// Executes the graph of a rank.
#[derive(Clone)]
struct GraphSource {
    plan: Arc<Plan>,
    repeat: bool,
    /// By node: what it still waits for.
    waits: Vec<u32>,
    /// Nodes that may begin.
    ready: VecDeque<u32>,
    streams: HashMap<u32, Stream>,
    /// Streams on which something has ended.
    idle: Vec<u32>,
    /// Nodes under way, by request.
    under_way: Vec<Option<u32>>,
    free: Vec<RequestId>,
    /// Nodes that have not ended.
    left: usize,
    ops: Vec<Op>,
    /// Operations of messages, which come behind those of work.
    messages: Vec<Op>,
    next: usize,
    finished: bool,
}

impl GraphSource {
    fn new(plan: Arc<Plan>, ops: Vec<Op>, repeat: bool) -> Self {
        let mut source = Self {
            waits: Vec::new(),
            ready: VecDeque::new(),
            streams: HashMap::new(),
            idle: Vec::new(),
            under_way: Vec::new(),
            free: Vec::new(),
            left: 0,
            ops,
            messages: Vec::new(),
            next: 0,
            finished: false,
            plan,
            repeat,
        };
        source.restart();
        source
    }

    fn restart(&mut self) {
        self.waits.clone_from(&self.plan.waits);
        self.ready.extend((0..).zip(&self.waits).filter(|(_, waits)| **waits == 0).map(|(node, _): (u32, _)| node));
        self.left = self.plan.nodes.len();
    }

    fn release(&mut self, node: u32, after: After) {
        for &next in self.plan.after(node, after) {
            let waits = &mut self.waits[next as usize];
            *waits -= 1;
            if *waits == 0 {
                self.ready.push_back(next);
            }
        }
    }

    fn end(&mut self, node: u32) {
        self.left -= 1;
        self.release(node, After::End);
    }

    /// A name for the request of a node that begins.
    fn request(&mut self, node: u32) -> RequestId {
        let request = self.free.pop().unwrap_or_else(|| {
            self.under_way.push(None);
            u32::try_from(self.under_way.len() - 1).expect("invariant: fewer than 2^32 nodes of a rank")
        });
        self.under_way[request as usize] = Some(node);
        request
    }

    /// A node is ready: it begins, or takes its place in the queue of its stream.
    fn ready(&mut self, node: u32) {
        match self.plan.nodes[node as usize].stream() {
            Some(stream) => {
                self.streams.entry(stream).or_default().queue.push_back(node);
                self.go_on(stream);
            }
            None => self.begin(node),
        }
    }

    /// Begins what waits for a stream that is idle.
    fn go_on(&mut self, name: u32) {
        while let Some(stream) = self.streams.get_mut(&name).filter(|stream| !stream.busy)
            && let Some(node) = stream.queue.pop_front()
        {
            stream.busy = !self.plan.nodes[node as usize].is_instant();
            self.begin(node);
        }
    }

    fn begin(&mut self, node: u32) {
        let plan = Arc::clone(&self.plan);
        let of = &plan.nodes[node as usize];
        self.release(node, After::Begin);
        if of.is_instant() {
            self.end(node);
            return;
        }
        let request = self.request(node);
        let comm = super::COMM_WORLD;
        let (op, queue) = match *of {
            Node::Work { span, .. } => (Op::Offload(span, request), &mut self.ops),
            Node::Delay(span) => (Op::Delay(span, request), &mut self.ops),
            Node::Send { to, bytes, tag, mode } => {
                (Op::P2p(P2p::Isend { to, bytes, tag, comm, mode, request }), &mut self.messages)
            }
            Node::Recv { from, tag } => (Op::P2p(P2p::Irecv { from, tag, comm, request }), &mut self.ops),
            Node::Collective { kind, group, root, ref volume, .. } => {
                let comm = group.map_or(comm, |group| {
                    FIRST_GROUP + u32::try_from(group).expect("invariant: fewer than 2^32 groups")
                });
                let volume = volume.clone();
                (Op::Collective(Collective::Nonblocking { kind, comm, root, volume, request }), &mut self.messages)
            }
            Node::Join => unreachable!("it takes no time"),
        };
        queue.extend([op, Op::P2p(P2p::Report(request))]);
    }

    /// The operations until something has to be waited for.
    fn advance(&mut self) {
        self.ops.clear();
        self.next = 0;
        for stream in std::mem::take(&mut self.idle) {
            self.go_on(stream);
        }
        while let Some(node) = self.ready.pop_front() {
            self.ready(node);
        }
        self.ops.append(&mut self.messages);
        if self.left > 0 {
            self.ops.push(Op::P2p(P2p::WaitReport));
        } else if !self.finished {
            self.ops.push(Op::MarkProgress);
            self.finished = !self.repeat;
            if self.repeat {
                self.restart();
            }
        }
    }
}

impl Source for GraphSource {
    fn ahead(&mut self) -> Result<&[Op], String> {
        if self.next == self.ops.len() {
            self.advance();
        }
        Ok(&self.ops[self.next..])
    }

    fn pass(&mut self, count: usize) {
        self.next += count;
    }

    fn current(&self) -> Option<&Op> {
        self.ops.get(self.next.checked_sub(1)?)
    }

    fn completed(&mut self, requests: &[RequestId]) {
        for &request in requests {
            let Some(node) = self.under_way[request as usize].take() else { continue };
            self.free.push(request);
            if let Some(name) = self.plan.nodes[node as usize].stream() {
                self.streams.entry(name).or_default().busy = false;
                self.idle.push(name);
            }
            self.end(node);
        }
    }

    fn waits_for(&self) -> Option<String> {
        let mut nodes: Vec<u32> = self.under_way.iter().copied().flatten().collect();
        nodes.sort_unstable();
        let words = |node: &u32| match &self.plan.nodes[*node as usize] {
            Node::Send { to, tag, .. } => format!("send {node} to {to} with tag {tag}"),
            Node::Recv { from, tag } => {
                let from = from.map_or_else(|| "any".to_owned(), |from| from.to_string());
                let tag = tag.map_or_else(|| "any".to_owned(), |tag| tag.to_string());
                format!("receive {node} from {from} with tag {tag}")
            }
            Node::Collective { kind, .. } => format!("{} {node}", kind.name()),
            Node::Work { .. } | Node::Delay(_) | Node::Join => format!("work {node}"),
        };
        let more = if nodes.len() > SHOWN { ", ..." } else { "" };
        let shown: Vec<String> = nodes.iter().take(SHOWN).map(words).collect();
        Some(format!("WaitReport({}{more})", shown.join(", ")))
    }

    fn boxed_clone(&self) -> Box<dyn Source> {
        Box::new(self.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The names of the requests of collectives and work that begin next.
    fn begun(source: &mut dyn Source) -> Vec<RequestId> {
        let ops = source.ahead().unwrap().to_vec();
        source.pass(ops.len());
        let request = |op: &Op| match op {
            Op::Collective(Collective::Nonblocking { request, .. }) | Op::Offload(_, request) => Some(*request),
            _ => None,
        };
        ops.iter().filter_map(request).collect()
    }

    #[test]
    fn a_stream_does_one_thing_after_another_and_a_group_begins_in_order() {
        let volume = Volume::Uniform(Bytes(8));
        let collective = |stream| Node::Collective {
            kind: CollectiveKind::Allreduce,
            group: None,
            root: Rank(0),
            volume: volume.clone(),
            stream,
        };
        for (stream, together) in [(Some(3), 1), (None, 3)] {
            let mut rank = RankGraph::default();
            rank.node(collective(stream));
            rank.node(collective(stream));
            rank.node(Node::Work { stream: 3, span: Picoseconds(5) });
            let graph = Graph { ranks: vec![rank], groups: Vec::new(), repeat: false };
            let mut source = graph.program().unwrap().ranks.remove(0);
            let mut begins = Vec::new();
            loop {
                let requests = begun(&mut *source);
                if requests.is_empty() {
                    break;
                }
                begins.push(requests.len());
                source.completed(&requests);
            }
            assert_eq!((begins[0], begins.iter().sum::<usize>()), (together, 3), "{stream:?}: {begins:?}");
        }
    }
}
