//! A levelled fabric seen from its switches: what is below, what is above, and each level's stride.

use crate::error::BuildError;
use crate::ids::{LinkId, SwitchId};
use crate::topology::{Graph, Vertex};

/// The ports of one switch that a packet may take, in order of port number. Links between switches of one level are
/// never taken.
#[derive(Clone, Debug, Default)]
pub(super) struct Ports {
    /// Links to hosts and to switches of lower levels.
    pub down: Vec<LinkId>,
    /// Links to switches of higher levels.
    pub up: Vec<LinkId>,
}

/// The levelled fabric.
pub(super) struct LevelledFabric<'g> {
    pub graph: &'g Graph,
    /// Ports by switch.
    pub ports: Vec<Ports>,
    /// Switches, lowest level first.
    pub bottom_up: Vec<SwitchId>,
    /// By level: the product of the numbers of parents of the switches of the levels below, the largest where the
    /// switches of a level differ.
    strides: Vec<u32>,
}

impl<'g> LevelledFabric<'g> {
    /// Sorts the ports of a fabric into up and down.
    pub fn new(graph: &'g Graph) -> Result<Self, BuildError> {
        let mut bottom_up: Vec<SwitchId> = (0..).take(graph.switches()).map(SwitchId).collect();
        if let Some(flat) = bottom_up.iter().find(|switch| graph.level(**switch) == 0) {
            let allowed =
                format!("needs a fabric whose switches have levels, and {:?} has none", graph.switch_name(*flat));
            return Err(BuildError::value("fabric.routing", "d_mod_k", allowed));
        }
        bottom_up.sort_by_key(|switch| graph.level(*switch));
        let mut ports = vec![Ports::default(); graph.switches()];
        let top = bottom_up.last().map_or(0, |switch| graph.level(*switch));
        let mut parents = vec![1_u32; usize::from(top) + 1];
        for &switch in &bottom_up {
            let level = graph.level(switch);
            let ports = &mut ports[switch.index()];
            for link in graph.ports(Vertex::Switch(switch)) {
                match graph.link(link).to {
                    Vertex::Switch(other) if graph.level(other) > level => ports.up.push(link),
                    Vertex::Switch(other) if graph.level(other) == level => {}
                    _ => ports.down.push(link),
                }
            }
            let mut above: Vec<Vertex> = ports.up.iter().map(|link| graph.link(*link).to).collect();
            above.sort_unstable();
            above.dedup();
            let distinct = u32::try_from(above.len()).expect("invariant: fewer than 2^32 ports");
            parents[usize::from(level)] = parents[usize::from(level)].max(distinct);
        }
        let strides = std::iter::once(1).chain(parents.iter().skip(1).scan(1_u32, |stride, parents| {
            let this = *stride;
            *stride = stride.saturating_mul(*parents);
            Some(this)
        }));
        Ok(Self { graph, ports, bottom_up, strides: strides.collect() })
    }

    /// The divisor of destinations at `switch`.
    pub fn stride(&self, switch: SwitchId) -> u32 {
        self.strides[usize::from(self.graph.level(switch))]
    }

    /// The link of the switch's first port.
    pub fn first_link(&self, switch: SwitchId) -> LinkId {
        self.graph.ports(Vertex::Switch(switch)).next().unwrap_or_default()
    }
}
