//! The arithmetic representation: a switch whose children are equal consecutive intervals of hosts.

use std::collections::HashMap;

use super::tree::LevelledFabric;
use crate::ids::{HostId, LinkId, SwitchId};
use crate::topology::Vertex;

/// The paths of one switch. The fields are those that a hop needs and no more: one is read at every hop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::routing) struct Span {
    /// The first host below.
    first: u32,
    /// How many hosts are below.
    hosts: u32,
    /// How many hosts are below each child; the last may have fewer.
    child: u32,
    /// The divisor of destinations.
    stride: u32,
    /// The first link down; those to one child stand side by side.
    down: LinkId,
    /// The first link up.
    up: LinkId,
    /// Links to each child.
    trunk: u16,
    /// Links up.
    ups: u16,
}

impl Span {
    /// The links that lead one step along a shortest path to a host: the first of them and how many they are; and which of
    /// them D-mod-K takes.
    #[inline]
    pub fn candidates(&self, to: HostId) -> (LinkId, u32, u32) {
        let below = to.0.wrapping_sub(self.first);
        let quotient = to.0 / self.stride;
        if below >= self.hosts {
            let ups = u32::from(self.ups);
            return (self.up, ups, quotient % ups);
        }
        let trunk = u32::from(self.trunk);
        (LinkId(self.down.0 + below / self.child * trunk), trunk, quotient % trunk)
    }

    #[inline]
    pub fn link(&self, to: HostId) -> LinkId {
        let below = to.0.wrapping_sub(self.first);
        let quotient = if self.stride == 1 { to.0 } else { to.0 / self.stride };
        if below >= self.hosts {
            return LinkId(self.up.0 + quotient % u32::from(self.ups));
        }
        let child = if self.child == 1 { below } else { below / self.child };
        if self.trunk == 1 {
            return LinkId(self.down.0 + child);
        }
        let trunk = u32::from(self.trunk);
        LinkId(self.down.0 + child * trunk + quotient % trunk)
    }
}

/// A switch as seen from below: its own interval of hosts, and the same of all that is above it.
#[derive(PartialEq, Eq, Hash)]
struct Outline {
    first: u32,
    hosts: u32,
    /// The outline that all its parents share; none at the top.
    above: Option<usize>,
}

/// The span of every switch that has one.
///
/// A switch has a span if all paths that the rule lets it choose from are equally long, and numbered by arithmetic: its
/// links down are consecutive and lead, child by child, to consecutive intervals; its links up are consecutive, and
/// the switches they lead to look alike, that is, have spans of the same hosts and parents that look alike. A switch
/// without links up must have all hosts below it.
pub(super) fn of_switches(tree: &LevelledFabric) -> Vec<Option<Span>> {
    let mut spans: Vec<Option<Span>> = vec![None; tree.graph.switches()];
    for &switch in &tree.bottom_up {
        spans[switch.index()] = below(tree, switch, &spans);
    }
    let mut numbers: HashMap<Outline, usize> = HashMap::new();
    let mut outlines: Vec<Option<usize>> = vec![None; spans.len()];
    for &switch in tree.bottom_up.iter().rev() {
        let Some(span) = spans[switch.index()] else { continue };
        let Some(above) = shared_outline(tree, switch, &outlines, &span) else {
            spans[switch.index()] = None;
            continue;
        };
        let next = numbers.len();
        let outline = Outline { first: span.first, hosts: span.hosts, above };
        outlines[switch.index()] = Some(*numbers.entry(outline).or_insert(next));
    }
    spans
}

/// The span of a switch as far as its links and what is below it tell.
fn below(tree: &LevelledFabric, switch: SwitchId, spans: &[Option<Span>]) -> Option<Span> {
    let ports = &tree.ports[switch.index()];
    let consecutive = |links: &[LinkId]| links.windows(2).all(|pair| pair[0].0 + 1 == pair[1].0);
    if !consecutive(&ports.down) || !consecutive(&ports.up) {
        return None;
    }
    let down = *ports.down.first()?;
    let end = |link: &LinkId| tree.graph.link(*link).to;
    let trunk = ports.down.iter().take_while(|link| end(link) == end(&down)).count();
    let interval = |child: Vertex| match child {
        Vertex::Host(host) => (tree.graph.level(switch) == 1).then_some((host.0, 1)),
        Vertex::Switch(child) if tree.graph.level(child) + 1 != tree.graph.level(switch) => None,
        Vertex::Switch(child) => spans[child.index()].map(|span| (span.first, span.hosts)),
    };
    let (first, child) = interval(end(&down))?;
    let mut hosts = 0;
    for links in ports.down.chunks(trunk) {
        let (start, size) = interval(end(&links[0]))?;
        let alike = links.len() == trunk && links.iter().all(|link| end(link) == end(&links[0]));
        let full_so_far = hosts % child == 0;
        if !alike || !full_so_far || start != first + hosts || size > child {
            return None;
        }
        hosts += size;
    }
    Some(Span {
        first,
        hosts,
        child,
        stride: tree.stride(switch),
        down,
        up: ports.up.first().copied().unwrap_or_default(),
        trunk: u16::try_from(trunk).ok()?,
        ups: u16::try_from(ports.up.len()).ok()?,
    })
}

/// The outline that all parents share, `Some(None)` at a top that has every host below it; `None` if they differ.
fn shared_outline(
    tree: &LevelledFabric,
    switch: SwitchId,
    outlines: &[Option<usize>],
    span: &Span,
) -> Option<Option<usize>> {
    let level = tree.graph.level(switch);
    let mut above = tree.ports[switch.index()].up.iter().map(|link| match tree.graph.link(*link).to {
        Vertex::Switch(parent) if tree.graph.level(parent) == level + 1 => outlines[parent.index()],
        _ => None,
    });
    match above.next() {
        None => (span.hosts as usize == tree.graph.hosts()).then_some(None),
        Some(first) => above.all(|other| other == first).then_some(first).filter(Option::is_some),
    }
}
