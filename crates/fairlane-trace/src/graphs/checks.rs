//! What a graph must have so that it can end: partners of messages, and members of collectives that agree.

use std::collections::{BTreeMap, BTreeSet};

use fairlane_core::ids::Rank;
use fairlane_core::program::Volume;
use fairlane_core::program::graph::Node;

use super::Recorded;
use crate::TraceError;

/// By rank: the collectives of a group, with their numbers among the nodes.
type Calls<'n> = BTreeMap<u32, Vec<(usize, &'n Node)>>;

/// How many messages there are, and the first of them as rank and node.
type Seen = (u64, Option<(u32, usize)>);

fn words(node: &Node) -> String {
    match node {
        Node::Collective { kind, root, volume: Volume::Uniform(bytes), .. } => {
            format!("{} of {} bytes, root {root}", kind.name(), bytes.0)
        }
        _ => "another operation".to_owned(),
    }
}

impl Recorded {
    /// Checks that sends match receives, and that collectives agree on all ranks.
    pub(super) fn check(&self) -> Result<(), TraceError> {
        self.check_messages()?;
        let mut calls: BTreeMap<Option<usize>, Calls<'_>> = BTreeMap::new();
        for (rank, number, node) in self.nodes() {
            if let Node::Collective { group, .. } = node {
                calls.entry(*group).or_default().entry(rank).or_default().push((number, node));
            }
        }
        calls.iter().try_for_each(|(group, calls)| self.check_collectives(*group, calls))
    }

    /// The ranks that receive from anyone or with any tag.
    pub(super) fn with_wildcards(&self) -> BTreeSet<u32> {
        let any = |node: &Node| matches!(node, Node::Recv { from, tag } if from.is_none() || tag.is_none());
        self.nodes().filter(|(.., node)| any(node)).map(|(rank, ..)| rank).collect()
    }

    fn check_messages(&self) -> Result<(), TraceError> {
        let size = self.graph.ranks.len();
        let any = self.with_wildcards();
        // By receiver, and by sender and tag if none of its receives has a wildcard: sends and receives, and the first of each.
        let mut messages: BTreeMap<_, [Seen; 2]> = BTreeMap::new();
        for (rank, number, node) in self.nodes() {
            let (side, to, from, tag) = match *node {
                Node::Send { to, tag, .. } => (0, to.0, Some(Rank(rank)), Some(tag)),
                Node::Recv { from, tag } => (1, rank, from, tag),
                _ => continue,
            };
            let partner = if side == 0 { Some(Rank(to)) } else { from };
            if let Some(partner) = partner.filter(|partner| partner.0 as usize >= size) {
                return Err(self.wrong(rank, number, format!("rank {} of {size} ranks, 0 to {}", partner.0, size - 1)));
            }
            let key = if any.contains(&to) { (to, None) } else { (to, from.zip(tag)) };
            let (count, first) = &mut messages.entry(key).or_default()[side];
            *count += 1;
            first.get_or_insert((rank, number));
        }
        for ((to, named), [(sent, send), (received, receive)]) in messages {
            if sent == received {
                continue;
            }
            let Some((rank, node)) = (if sent > received { send } else { receive }) else { continue };
            let of = named.map_or_else(String::new, |(from, tag)| format!(" from rank {from} with tag {tag}"));
            let problem = format!("messages to rank {to}{of}: {sent} sent, {received} received");
            return Err(self.wrong(rank, node, problem));
        }
        Ok(())
    }

    fn check_collectives(&self, group: Option<usize>, calls: &Calls<'_>) -> Result<(), TraceError> {
        let members: Vec<u32> = match group {
            Some(group) => self.graph.groups[group].iter().map(|rank| rank.0).collect(),
            None => (0..u32::try_from(self.graph.ranks.len()).unwrap_or(u32::MAX)).collect(),
        };
        let name = group.map_or_else(|| "all ranks".to_owned(), |group| format!("group {}", self.groups[group]));
        if let Some((rank, of)) = calls.iter().find(|(rank, _)| group.is_some() && !members.contains(rank)) {
            return Err(self.wrong(*rank, of[0].0, format!("a collective of {name}, which the rank is not in")));
        }
        let calls = |rank: u32| calls.get(&rank).map_or(&[][..], Vec::as_slice);
        let Some((&first, others)) = members.split_first() else { return Ok(()) };
        let of_first = calls(first);
        for &rank in others {
            let own = calls(rank);
            for (number, (one, other)) in (1..).zip(of_first.iter().zip(own)) {
                if words(one.1) != words(other.1) {
                    let (said, says) = (words(one.1), words(other.1));
                    let problem = format!("collective {number} of {name} is {says}, and on rank {first} it is {said}");
                    return Err(self.wrong(rank, other.0, problem));
                }
            }
            if own.len() != of_first.len() {
                let problem =
                    format!("{name}: {} collectives on rank {first} and {} on rank {rank}", of_first.len(), own.len());
                let (of, calls) = if own.len() > of_first.len() { (rank, own) } else { (first, of_first) };
                return Err(self.wrong(of, calls[own.len().min(of_first.len())].0, problem));
            }
        }
        Ok(())
    }
}
