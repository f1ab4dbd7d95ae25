//! Routing: from a switch, which link and which virtual channel a packet takes next.
//!
//! A routing is one file that exports an [`Entry`]; [`TABLE`] lists them. A deterministic routing sees the topology only,
//! and a packet's hops are looked up ahead, several at once. An adaptive one is asked at each switch, when the packet is
//! there, and sees [`Loads`].

mod adaptive;
mod choices;
mod coverage;
mod d_mod_k;
mod dimension_order;
mod ecmp;
mod equal_cost;
mod healing;
mod loads;
mod minimal;
mod non_minimal;
mod parts;
mod paths;
mod per_lane;
mod progressive;
mod renumbered;
mod rotation;
mod shortest;
mod tables;
mod ugal_g;
mod ugal_l;
mod up_down;
mod valiant;

use std::borrow::Cow;

use serde_json::json;

use crate::error::BuildError;
use crate::ids::{HostId, LinkId, SwitchId};
use crate::kernel::NONE;
use crate::table::{Item, Kind, NoParams, Table};
use crate::topology::{Graph, Size};
pub use coverage::{Coverage, coverage};
pub use equal_cost::{EqualCost, Selection};
pub use healing::{Healed, heal};
pub use loads::{LaneLoads, Loads, PortLoads, Visit};
pub use non_minimal::{Next, Path, Paths, paths_of};
pub use paths::{PathError, forwarding, link_loads, path};
use renumbered::{ByEndpoint, OnPlanes, Renumbered};

/// One hop of a packet's path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hop {
    /// The link it takes.
    pub link: LinkId,
    /// The virtual channel it takes on that link, below [`Routing::virtual_channels`].
    pub channel: u8,
}

/// A routing has so many virtual channels at most: a [`Step`] has no room for more.
pub const MAX_CHANNELS: usize = 32;

/// A [`Hop`] in four bytes: 27 bits of link, 5 of channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step(u32);

impl Step {
    /// No hop.
    pub const NONE: Self = Self(NONE);
    const LINK_BITS: u32 = Size::MAX_LINKS.ilog2();

    /// Packs a hop.
    #[inline]
    #[must_use]
    pub fn new(hop: Hop) -> Self {
        debug_assert!(
            hop.link.0 < 1 << Self::LINK_BITS && usize::from(hop.channel) < MAX_CHANNELS,
            "{hop:?} does not fit a step"
        );
        Self(hop.link.0 | u32::from(hop.channel) << Self::LINK_BITS)
    }

    /// Its link.
    #[inline]
    #[must_use]
    pub const fn link(self) -> LinkId {
        LinkId(self.0 & ((1 << Self::LINK_BITS) - 1))
    }

    /// Its virtual channel.
    #[inline]
    #[must_use]
    #[allow(clippy::cast_possible_truncation, reason = "five bits")]
    pub const fn channel(self) -> u8 {
        (self.0 >> Self::LINK_BITS) as u8
    }

    /// The hop.
    #[inline]
    #[must_use]
    pub const fn hop(self) -> Hop {
        Hop { link: self.link(), channel: self.channel() }
    }
}

/// A routing of one fabric, with everything precomputed that it needs.
pub trait Routing: Send + Sync {
    /// How many virtual channels it needs so that no cycle of channel dependencies exists.
    fn virtual_channels(&self) -> u8 {
        1
    }

    /// How many of them packets of a virtual lane need.
    fn channels_of(&self, _vl: u8) -> u8 {
        self.virtual_channels()
    }

    /// The next hop of a packet that stands at `at`, came over `previous`, and goes to `to`; with an adaptive routing where
    /// nothing waits anywhere.
    ///
    /// Called at most once for each hop; must be a pure function of its arguments. `previous` is the hop that led here; for
    /// a packet fresh from a host it is the host's link, on channel 0.
    fn next_hop(&self, at: SwitchId, previous: Hop, to: HostId) -> Hop;

    /// Whether a packet at `at` can be routed to a host: false only where parts of a fabric are joined through hosts alone.
    fn reaches(&self, _at: SwitchId, _to: HostId) -> bool {
        true
    }

    /// How many virtual lanes are routed each in its own way; those that follow are routed as the last.
    fn routed_lanes(&self) -> u8 {
        1
    }

    /// Whether hops depend on loads or on what is noted in the packet: then [`Routing::choose`] is asked, at each switch.
    fn adaptive(&self) -> bool {
        false
    }

    /// Whether [`Routing::choose`] looks at the loads of single lanes ([`Loads::on_lane`]), which are kept only then.
    fn sees_lanes(&self) -> bool {
        false
    }

    /// Whether [`Routing::choose`] asks how many packets wait at ports ([`Loads::waiting`]), which are counted only then.
    fn sees_waiting(&self) -> bool {
        false
    }

    /// Whether [`Routing::choose`] looks at the loads of the switch's own ports only, so that switches can run in parallel.
    /// Without adaptive routing, nothing is looked at.
    fn sees_own_ports_only(&self) -> bool {
        !self.adaptive()
    }

    /// Whether it computes paths from the entropies that transports set, which are in [`Visit::note`] when a packet comes from
    /// its host: one more than the entropy.
    fn takes_entropies(&self) -> bool {
        false
    }

    /// The next hop of a packet at `at`; may note something in the packet for the switches to come.
    fn choose(&self, at: SwitchId, visit: &mut Visit, _loads: &Loads) -> Hop {
        self.next_hop(at, visit.previous, visit.to)
    }

    /// Every hop that [`Routing::choose`] may return for a packet, whatever the loads, its flow and the random number, with what it
    /// would note: what the proof goes by that nothing can deadlock.
    fn options(&self, at: SwitchId, visit: &Visit) -> Vec<(Hop, u32)> {
        vec![(self.next_hop(at, visit.previous, visit.to), visit.note)]
    }
}

/// Prepares a routing for a fabric, from parameters that follow its schema. The table is for those that are made of others.
pub type Build = fn(&Graph, &serde_json::Value, &Table<Routings>) -> Result<Box<dyn Routing>, BuildError>;

/// The kind of entry that routings are.
#[derive(Debug)]
pub enum Routings {}

/// A routing that can be named in a scenario.
pub type Entry = Item<Routings>;

/// The built-in routings.
pub const TABLE: &[Entry] = &[
    adaptive::ENTRY,
    d_mod_k::ENTRY,
    dimension_order::ENTRY,
    ecmp::ENTRY,
    minimal::ENTRY,
    per_lane::ENTRY,
    progressive::ENTRY,
    rotation::ENTRY,
    tables::ENTRY,
    ugal_g::ENTRY,
    ugal_l::ENTRY,
    up_down::ENTRY,
    valiant::ENTRY,
];

impl Kind for Routings {
    const KIND: &'static str = "routing";
    const PATH: &'static str = "fabric.routing";
    const BUILT_IN: &'static [Entry] = TABLE;
    type Given<'a> = &'a Graph;
    type Built = Box<dyn Routing>;
    type Build = Build;

    /// Where the routing does not fit the fabric, the error names the topology, the routing that usually goes with it, and
    /// others that fit.
    fn build(
        entry: &'static Entry,
        table: &Table<Routings>,
        params: &serde_json::Value,
        graph: &Graph,
    ) -> Result<Box<dyn Routing>, BuildError> {
        if !graph.is_joined() {
            return Err(BuildError::value(Self::PATH, entry.name, "needs a connected fabric"));
        }
        let plane = graph.plane();
        let (base, numbers) = plane.map_or_else(|| graph.by_endpoint(), |(plane, _)| (Cow::Borrowed(plane), None));
        let inner = (entry.build)(&base, params, table).map_err(|error| {
            // A routing that others are made of does not know the name of the one that is built.
            let error = error.of(Self::PATH, Self::PATH, entry.name);
            match graph.topology() {
                // The routing that does not fit has named them already if it is one that this one is made of.
                Some(topology) if !error.to_string().contains(USUALLY) => {
                    let others = table.others(&base, [entry.name, topology.routing()]);
                    error.and(&format!("topology {}{USUALLY}{}{others}", topology.name, topology.routing()))
                }
                _ => error,
            }
        })?;
        Ok(match plane {
            Some((_, planes)) => Box::new(Renumbered::new(vec![inner], OnPlanes { planes, rails: graph.rails() })),
            None => by_endpoint(inner, numbers),
        })
    }
}

/// The routing of a fabric by endpoint, for destinations that are endpoints; see [`Graph::by_endpoint`].
fn by_endpoint(inner: Box<dyn Routing>, numbers: Option<Vec<u32>>) -> Box<dyn Routing> {
    match numbers {
        Some(numbers) => Box::new(Renumbered::new(vec![inner], ByEndpoint(numbers))),
        None => inner,
    }
}

impl Table<Routings> {
    /// The routings that take this fabric without parameters, but for some, in words; none are named of a large fabric.
    fn others(&self, graph: &Graph, but: [&str; 2]) -> String {
        let takes = |entry: &&Entry| {
            let is_tried = graph.links().len() <= TRIED_LINKS && !but.contains(&entry.name);
            is_tried && (entry.build)(graph, &json!({}), self).is_ok()
        };
        let others: Vec<&str> = self.entries().filter(takes).map(|entry| entry.name).collect();
        if others.is_empty() { String::new() } else { format!(" (others that fit: {})", others.join(", ")) }
    }
}

/// Up to so many links all routings are tried for an error.
const TRIED_LINKS: usize = 1 << 15;
const USUALLY: &str = " is usually routed by ";

/// Prepares a built-in routing; see [`Table::build`].
///
/// # Errors
/// [`BuildError`] when the name or a parameter is wrong or the routing does not fit the fabric.
pub fn build(name: &str, params: &serde_json::Value, graph: &Graph) -> Result<Box<dyn Routing>, BuildError> {
    Table::<Routings>::default().build(name, params, graph)
}
