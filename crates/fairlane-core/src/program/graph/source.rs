//! Executes the graph of a rank.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use super::{After, FIRST_GROUP, Node, Plan};
use crate::program::{COMM_WORLD, Collective, GraphOp, Op, P2p, RequestId, Source, names_in};
use crate::units::Instant;

/// So many operations under way are named in an error.
const SHOWN: usize = 8;

/// A stream of a rank: whether something is under way on it, and what waits.
#[derive(Clone, Debug, Default)]
struct Stream {
    busy: bool,
    queue: VecDeque<u32>,
}

/// Executes the graph of a rank.
#[derive(Clone)]
pub(super) struct GraphSource {
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
    /// Sends and collectives, which come behind work, delays and receives.
    messages: Vec<Op>,
    next: usize,
    finished: bool,
}

impl GraphSource {
    pub fn new(plan: Arc<Plan>, ops: Vec<Op>, repeat: bool) -> Self {
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
        let comm = COMM_WORLD;
        let (op, queue) = match *of {
            Node::Work { span, .. } => (Op::Graph(GraphOp::Offload(span, request)), &mut self.ops),
            Node::Delay(span) => (Op::Graph(GraphOp::Delay(span, request)), &mut self.ops),
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
        queue.extend([op, Op::Graph(GraphOp::Report(request))]);
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
            self.ops.push(Op::Graph(GraphOp::WaitReport));
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

    fn completed(&mut self, requests: &[RequestId], _: Instant) -> bool {
        for &request in requests {
            let Some(node) = self.under_way[request as usize].take() else { continue };
            self.free.push(request);
            if let Some(name) = self.plan.nodes[node as usize].stream() {
                self.streams.entry(name).or_default().busy = false;
                self.idle.push(name);
            }
            self.end(node);
        }
        false
    }

    fn waits_for(&self) -> Option<String> {
        let mut nodes: Vec<u32> = self.under_way.iter().copied().flatten().collect();
        nodes.sort_unstable();
        let name = |node: &u32| self.plan.places.name(*node);
        let words = |node: &u32| match &self.plan.nodes[*node as usize] {
            Node::Send { to, tag, .. } => format!("send {} to {to} with tag {tag}", name(node)),
            Node::Recv { from, tag } => {
                let from = from.map_or_else(|| "any".to_owned(), |from| from.to_string());
                let tag = tag.map_or_else(|| "any".to_owned(), |tag| tag.to_string());
                format!("receive {} from {from} with tag {tag}", name(node))
            }
            Node::Collective { kind, .. } => format!("{} {}", kind.name(), name(node)),
            Node::Work { .. } | Node::Delay(_) | Node::Join => format!("work {}", name(node)),
        };
        let more = if nodes.len() > SHOWN { ", ..." } else { "" };
        let shown: Vec<String> = nodes.iter().take(SHOWN).map(words).collect();
        Some(format!("WaitReport({}{more})", shown.join(", ")))
    }

    fn communicators(&self) -> Vec<Arc<str>> {
        names_in(&self.ops)
    }

    fn boxed_clone(&self) -> Box<dyn Source> {
        Box::new(self.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::Rank;
    use crate::program::graph::{Graph, RankGraph};
    use crate::program::{CollectiveKind, Volume};
    use crate::units::{Bytes, Picoseconds};

    /// The names of the requests of collectives and work that begin next.
    fn begun(source: &mut dyn Source) -> Vec<RequestId> {
        let ops = source.ahead().unwrap().to_vec();
        source.pass(ops.len());
        let request = |op: &Op| match op {
            Op::Collective(Collective::Nonblocking { request, .. }) | Op::Graph(GraphOp::Offload(_, request)) => {
                Some(*request)
            }
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
            let graph = Graph { ranks: vec![rank], ..Graph::default() };
            let mut source = graph.program().unwrap().ranks.remove(0);
            let mut begins = Vec::new();
            loop {
                let requests = begun(&mut *source);
                if requests.is_empty() {
                    break;
                }
                begins.push(requests.len());
                source.completed(&requests, Instant::ZERO);
            }
            assert_eq!((begins[0], begins.iter().sum::<usize>()), (together, 3), "{stream:?}: {begins:?}");
        }
    }
}
