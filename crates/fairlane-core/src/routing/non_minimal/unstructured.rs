//! Paths through any graph: a shortest path to a random switch, and a shortest path from there.
//!
//! **Virtual channels** rise along both in one, by the rule of [`Shortest`]: where switches have no levels a packet is on channel `h` at
//! its `h`-th link between switches, so there are up to twice as many channels as on minimal paths. Minimal paths begin at channel 0, too.

use super::grid::{draw_but, far_switches};
use super::{Next, Path, Paths};
use crate::error::BuildError;
use crate::ids::{HostId, LinkId, SwitchId};
use crate::routing::shortest::{Shortest, Targets};
use crate::routing::{Hop, Routing};
use crate::topology::Graph;

pub(super) struct Unstructured {
    paths: Shortest,
    /// The switches of each part of the fabric, in ascending order.
    members: Vec<Vec<SwitchId>>,
    /// By switch: its place among the members of its part.
    places: Vec<u32>,
    /// By link: the switch that it leads to, if any.
    far: Vec<Option<SwitchId>>,
}

impl Unstructured {
    pub fn new(graph: &Graph, routing: &'static str) -> Result<Self, BuildError> {
        let paths = Shortest::new(graph, routing, Targets::Intermediates)?;
        let mut members: Vec<Vec<SwitchId>> = Vec::new();
        let mut places = Vec::with_capacity(graph.switches());
        for (at, part) in (0..).map(SwitchId).zip(&paths.ends.parts) {
            let part = *part as usize;
            members.resize(members.len().max(part + 1), Vec::new());
            places.push(u32::try_from(members[part].len()).expect("invariant: fewer than 2^32 switches"));
            members[part].push(at);
        }
        Ok(Self { paths, members, places, far: far_switches(graph) })
    }

    /// The switches of the part of `at`.
    #[inline]
    fn around(&self, at: SwitchId) -> &[SwitchId] {
        &self.members[self.paths.ends.parts[at.index()] as usize]
    }
}

impl Paths for Unstructured {
    fn channels(&self) -> u8 {
        self.paths.virtual_channels()
    }

    fn reaches(&self, at: SwitchId, to: HostId) -> bool {
        self.paths.reaches(at, to)
    }

    #[inline]
    fn step(&self, at: SwitchId, previous: Hop, path: Path, to: HostId) -> (Hop, Path) {
        if let Next::Switch(via) = path.next()
            && via != at
        {
            return (self.paths.hop(previous, self.paths.link(at, via, to)), path);
        }
        (self.paths.next_hop(at, previous, to), Path::MINIMAL)
    }

    fn length(&self, at: SwitchId, path: Path, to: HostId) -> u32 {
        let (target, _) = self.paths.ends.of(to);
        match path.next() {
            Next::Switch(via) => self.paths.length(at, via) + self.paths.length(via, target),
            _ => self.paths.length(at, target),
        }
    }

    #[inline]
    fn draw(&self, at: SwitchId, to: HostId, random: u32) -> Option<Path> {
        let (target, _) = self.paths.ends.of(to);
        let around = self.around(at);
        let count = u32::try_from(around.len()).expect("invariant: fewer than 2^32 switches");
        let [here, there] = [at, target].map(|switch| self.places[switch.index()]);
        let via = draw_but(count, here, there, random).filter(|_| at != target);
        via.map(|via| Path::through(around[via as usize]))
    }

    fn all(&self, at: SwitchId, to: HostId) -> Vec<Path> {
        let (target, _) = self.paths.ends.of(to);
        let others = self.around(at).iter().copied();
        others.filter(|via| at != target && *via != at && *via != target).map(Path::through).collect()
    }

    #[inline]
    fn far(&self, link: LinkId) -> Option<SwitchId> {
        self.far[link.index()]
    }
}
