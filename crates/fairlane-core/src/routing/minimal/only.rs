//! The one link between two switches, where there is no choice.
//!
//! Most pairs of switches have but one: what a packet takes then is a look into a table, and the branches of the search, which no
//! processor can foresee, are spared. Fabrics of more than a thousand switches have no table.

use crate::ids::{LinkId, SwitchId};
use crate::topology::{Graph, Vertex};

/// The table of so many switches is a megabyte; a larger one takes as long as to search.
pub const MOST_SWITCHES: usize = 1024;

/// There is a choice, or nothing to choose.
const SEARCH: u8 = u8::MAX;

#[derive(Default)]
pub struct OnlyLinks {
    /// The first link of each switch; empty if there is no table.
    first: Vec<LinkId>,
    /// By switch and target: the link's place among those of the switch, or [`SEARCH`].
    places: Vec<u8>,
}

impl OnlyLinks {
    /// Asks `only` for the link of every pair of different switches.
    pub fn new(graph: &Graph, only: impl Fn(SwitchId, SwitchId) -> Option<LinkId>) -> Self {
        let switches = || (0..).take(graph.switches()).map(SwitchId);
        if graph.switches() > MOST_SWITCHES {
            return Self::default();
        }
        let first: Vec<LinkId> =
            switches().map(|at| graph.ports(Vertex::Switch(at)).next().unwrap_or(LinkId(0))).collect();
        let place = |at: SwitchId, target| {
            let link = if at == target { None } else { only(at, target) };
            link.and_then(|link| u8::try_from(link.0 - first[at.index()].0).ok()).unwrap_or(SEARCH)
        };
        let places = switches().flat_map(|at| switches().map(move |target| (at, target)));
        let places = places.map(|(at, target)| place(at, target)).collect();
        Self { first, places }
    }

    /// The only link from `at` towards `target`, if it is known.
    #[inline]
    pub fn get(&self, at: SwitchId, target: SwitchId) -> Option<LinkId> {
        let first = self.first.get(at.index())?;
        let place = self.places[at.index() * self.first.len() + target.index()];
        (place != SEARCH).then(|| LinkId(first.0 + u32::from(place)))
    }
}
