//! Operations of several ranks that wait for each other, whatever the network does: a receive cannot end before its send begins, nor a
//! collective in which every member needs all others before all of them have begun.
//!
//! A message is known by its ranks and its tag: those of which there are several, and those to a rank that receives from anyone or with
//! any tag, are left to the run.

use std::collections::HashMap;

use fairlane_core::ids::Rank;
use fairlane_core::program::graph::{After, Node};
use fairlane_core::program::{CollectiveKind, SendMode};

use super::{Recorded, SHOWN};
use crate::TraceError;

/// From an event to one that comes after it. Operation `n` begins with event `2 n` and ends with `2 n + 1`; others are those of
/// collectives that all members have begun.
type Edge = (u32, u32);

/// The events of sends and receives of a rank, a partner and a tag: how many, and the beginning of the last.
type Messages = HashMap<(u32, u32, i32), [(u32, u32); 2]>;

impl Recorded {
    /// Checks that the operations can be put into an order. Cycles within a rank are named elsewhere.
    pub(super) fn check_waits(&self) -> Result<(), TraceError> {
        let mut first = vec![0_usize];
        first.extend(self.graph.ranks.iter().scan(0, |sum, rank| {
            *sum += rank.nodes().len();
            Some(*sum)
        }));
        let operations = first.last().copied().unwrap_or(0);
        let reads = self.nodes().any(|(.., node)| matches!(node, Node::Recv { .. } | Node::Collective { .. }));
        // An event has a number of 32 bits, and a collective has one more than an operation.
        if !reads || u32::try_from(3 * operations).is_err() {
            return Ok(());
        }
        let (edges, events) = self.edges(&first, operations);
        let Some(cycle) = cycle(&edges, events) else { return Ok(()) };
        let place = |event: &u32| {
            let operation = (*event / 2) as usize;
            let rank = first.partition_point(|first| *first <= operation) - 1;
            (operation < operations).then(|| (u32::try_from(rank).unwrap_or(u32::MAX), operation - first[rank]))
        };
        let mut places: Vec<(u32, usize)> = cycle.iter().filter_map(place).collect();
        places.dedup();
        if places.iter().all(|(rank, _)| *rank == places[0].0) {
            return Ok(());
        }
        let named = |(rank, node): &(u32, usize)| {
            format!("{} {} of rank {rank}", self.place, self.places[*rank as usize][*node])
        };
        let mut shown: Vec<String> = places.iter().take(SHOWN).map(named).collect();
        if places.len() > SHOWN {
            shown.push(format!("... ({} in all)", places.len() - 1));
        }
        let (rank, node) = places[0];
        Err(self.wrong(rank, node, format!("ranks wait for each other: {}", shown.join(" after "))))
    }

    /// The events that come after others, and how many events there are.
    #[allow(clippy::cast_possible_truncation, reason = "three times the operations fit 32 bits")]
    fn edges(&self, first: &[usize], operations: usize) -> (Vec<Edge>, usize) {
        let begin = |rank: usize, node: u32| 2 * (first[rank] as u32 + node);
        let mut edges: Vec<Edge> = (0..operations as u32).map(|operation| (2 * operation, 2 * operation + 1)).collect();
        for (rank, graph) in self.graph.ranks.iter().enumerate() {
            let after = |&(node, on, after): &(u32, u32, After)| {
                (begin(rank, on) + u32::from(after == After::End), begin(rank, node))
            };
            edges.extend(graph.edges().iter().map(after));
        }
        let any = self.with_wildcards();
        let mut messages = Messages::new();
        let mut numbers: HashMap<(u32, Option<usize>), u32> = HashMap::new();
        let mut collectives: HashMap<(Option<usize>, u32), u32> = HashMap::new();
        let mut events = 2 * operations as u32;
        for (rank, node, operation) in self.nodes() {
            let at = begin(rank as usize, node as u32);
            match *operation {
                Node::Send { to: Rank(to), tag, mode, .. } => {
                    let [(sends, last), _] = messages.entry((rank, to, tag)).or_default();
                    (*sends, *last) = (*sends + 1, at + u32::from(mode == SendMode::Synchronous));
                }
                Node::Recv { from: Some(Rank(from)), tag: Some(tag) } if !any.contains(&rank) => {
                    let [_, (receives, last)] = messages.entry((from, rank, tag)).or_default();
                    (*receives, *last) = (*receives + 1, at);
                }
                Node::Collective { kind, group, .. } if all_to_all(kind) => {
                    let number = numbers.entry((rank, group)).or_default();
                    *number += 1;
                    let begun = *collectives.entry((group, *number)).or_insert_with(|| {
                        events += 1;
                        events - 1
                    });
                    edges.extend([(at, begun), (begun, at + 1)]);
                }
                _ => {}
            }
        }
        for [(sends, send), (receives, receive)] in messages.into_values() {
            if (sends, receives) == (1, 1) {
                let (send, synchronous) = (send & !1, send & 1 == 1);
                edges.push((send, receive + 1));
                edges.extend(synchronous.then_some((receive, send + 1)));
            }
        }
        (edges, events as usize)
    }
}

/// Whether every member of a collective needs what every other has.
const fn all_to_all(kind: CollectiveKind) -> bool {
    use CollectiveKind::{Allgather, Allreduce, Alltoall, Barrier, ReduceScatter};
    matches!(kind, Allgather | Allreduce | Alltoall | Barrier | ReduceScatter)
}

/// Events each of which comes after the next, and the first after the last, if there are any.
fn cycle(edges: &[Edge], events: usize) -> Option<Vec<u32>> {
    let (mut starts, mut waits) = (vec![0_u32; events + 1], vec![0_u32; events]);
    for &(from, to) in edges {
        starts[from as usize] += 1;
        waits[to as usize] += 1;
    }
    let mut sum = 0;
    for start in &mut starts {
        sum += std::mem::replace(start, sum);
    }
    let (mut targets, mut next) = (vec![0_u32; edges.len()], starts.clone());
    for &(from, to) in edges {
        targets[next[from as usize] as usize] = to;
        next[from as usize] += 1;
    }
    let mut ready: Vec<usize> = (0..events).filter(|event| waits[*event] == 0).collect();
    while let Some(event) = ready.pop() {
        for target in &targets[starts[event] as usize..starts[event + 1] as usize] {
            waits[*target as usize] -= 1;
            if waits[*target as usize] == 0 {
                ready.push(*target as usize);
            }
        }
    }
    // Each event that is left waits for one that is left.
    let mut event = u32::try_from(waits.iter().position(|waits| *waits > 0)?).ok()?;
    let left = edges.iter().filter(|(from, to)| waits[*from as usize] > 0 && waits[*to as usize] > 0);
    let before: HashMap<u32, u32> = left.map(|&(from, to)| (to, from)).collect();
    let mut path = Vec::new();
    let mut places = HashMap::new();
    loop {
        if let Some(start) = places.insert(event, path.len()) {
            path.push(event);
            return Some(path.split_off(start));
        }
        path.push(event);
        event = *before.get(&event)?;
    }
}
