//! Paths that are not the shortest: through an intermediate place, drawn at random (L. G. Valiant, "A scheme for fast parallel
//! communication", SIAM J. Computing 11, 1982).
//!
//! A packet that is about to leave its first switch takes the **minimal** path, that of minimal or dimension-order routing, or
//! a **non-minimal** path: minimal to an intermediate switch, and minimal from there. What it has chosen is noted in it.

mod grid;
mod groups;
mod rule;
mod source;
mod unstructured;

pub(super) use self::groups::{Channels, Groups, Revise};
pub(super) use self::rule::{BIAS, EqualCosts, LinksOf, LoadOf, LocalParams, Rule, SAMPLES, UgalParams};
pub(super) use self::source::Ugal;
use super::{Hop, Visit};
use crate::error::BuildError;
use crate::ids::{HostId, LinkId, SwitchId};
use crate::topology::{Graph, Layout};

/// The paths of a fabric: of groups, as a dragonfly; of a grid; or of any other graph. Routings of plug-ins are made of them, too:
///
/// ```
/// use fairlane_core::ids::SwitchId;
/// use fairlane_core::routing::{Hop, Loads, Path, Paths, Routing, Visit, paths_of};
/// use fairlane_core::{ids::HostId, topology};
///
/// /// Packets of job 0 take minimal paths, others those through a random group.
/// struct Aside(Box<dyn Paths>);
///
/// impl Routing for Aside {
///     fn virtual_channels(&self) -> u8 {
///         self.0.channels()
///     }
///
///     fn next_hop(&self, at: SwitchId, previous: Hop, to: HostId) -> Hop {
///         self.0.step(at, previous, Path::MINIMAL, to).0
///     }
///
///     fn adaptive(&self) -> bool {
///         true
///     }
///
///     fn choose(&self, at: SwitchId, visit: &mut Visit, _loads: &Loads) -> Hop {
///         let path = match Path::noted(visit.note) {
///             Path::UNDECIDED if visit.job.0 > 0 => self.0.draw(at, visit.to, visit.random).unwrap_or(Path::MINIMAL),
///             Path::UNDECIDED => Path::MINIMAL,
///             decided => decided,
///         };
///         self.0.go(at, visit, path)
///     }
///
///     fn options(&self, at: SwitchId, visit: &Visit) -> Vec<(Hop, u32)> {
///         match Path::noted(visit.note) {
///             Path::UNDECIDED => self.0.hops(at, visit, self.0.all(at, visit.to).into_iter().chain([Path::MINIMAL])),
///             decided => self.0.hops(at, visit, [decided]),
///         }
///     }
/// }
///
/// let graph = topology::build("dragonfly", &serde_json::json!({ "preset": "wilke2020" }))?;
/// let routing = Aside(paths_of(&graph, "aside")?);
/// assert_eq!(routing.virtual_channels(), 3);
/// # Ok::<(), fairlane_core::error::BuildError>(())
/// ```
pub trait Paths: Send + Sync {
    /// Virtual channels of all paths.
    fn channels(&self) -> u8;

    /// The next hop on a path, and what is left of the path.
    fn step(&self, at: SwitchId, previous: Hop, path: Path, to: HostId) -> (Hop, Path);

    /// Links between switches on a path.
    fn length(&self, at: SwitchId, path: Path, to: HostId) -> u32;

    /// Links between switches on the longest path of its kind: minimal or not, within a group or to another.
    fn longest(&self, at: SwitchId, path: Path, to: HostId) -> u32 {
        self.length(at, path, to)
    }

    /// A non-minimal path, by a random number; none if there is none.
    fn draw(&self, at: SwitchId, to: HostId, random: u32) -> Option<Path>;

    /// Every non-minimal path that can be drawn.
    fn all(&self, at: SwitchId, to: HostId) -> Vec<Path>;

    /// Whether a packet at `at` can be routed to a host; see [`super::Routing::reaches`].
    fn reaches(&self, _at: SwitchId, _to: HostId) -> bool {
        true
    }

    /// The switch that a link leads to, if any.
    fn far(&self, link: LinkId) -> Option<SwitchId>;
}

/// The paths of a fabric, for packets that decide at their first switch; `routing` is for the error.
///
/// # Errors
/// [`BuildError`] if the fabric does not have what its layout promises, or needs too many virtual channels.
pub fn paths_of(graph: &Graph, routing: &'static str) -> Result<Box<dyn Paths>, BuildError> {
    match graph.layout() {
        Layout::Groups { .. } => Ok(Box::new(Groups::new(graph, routing, None)?)),
        Layout::Grid(_) => Ok(Box::new(grid::Grid::new(graph, routing)?)),
        Layout::Free => Ok(Box::new(unstructured::Unstructured::new(graph, routing)?)),
    }
}

/// Where a packet goes: a word that is noted in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Path(u32);

/// The next place on a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// The destination.
    Destination,
    /// A link, and from its far end the destination.
    Link(LinkId),
    /// A switch, and from there the destination.
    Switch(SwitchId),
}

impl Path {
    /// The minimal path, which may still be left: that of a packet that comes to its first switch.
    pub const UNDECIDED: Self = Self(0);
    /// The minimal path.
    pub const MINIMAL: Self = Self(1);

    /// The note of a packet.
    #[inline]
    #[must_use]
    pub const fn noted(note: u32) -> Self {
        Self(note)
    }

    /// The word to note.
    #[inline]
    #[must_use]
    pub const fn note(self) -> u32 {
        self.0
    }

    /// Over a link.
    #[inline]
    #[must_use]
    pub const fn over(link: LinkId) -> Self {
        Self(link.0 << 2 | 2)
    }

    /// Through a switch.
    #[inline]
    #[must_use]
    pub const fn through(switch: SwitchId) -> Self {
        Self(switch.0 << 2 | 3)
    }

    /// Where it goes next.
    #[inline]
    #[must_use]
    pub const fn next(self) -> Next {
        match self.0 & 3 {
            2 => Next::Link(LinkId(self.0 >> 2)),
            3 => Next::Switch(SwitchId(self.0 >> 2)),
            _ => Next::Destination,
        }
    }
}

impl dyn Paths + '_ {
    /// The next hop of a packet that takes `path`, which is noted in it.
    #[inline]
    pub fn go(&self, at: SwitchId, visit: &mut Visit, path: Path) -> Hop {
        let (hop, left) = self.step(at, visit.previous, path, visit.to);
        visit.note = left.note();
        hop
    }

    /// The hops of a packet that takes one of these paths, with what would be noted: for [`super::Routing::options`].
    pub fn hops(&self, at: SwitchId, visit: &Visit, paths: impl IntoIterator<Item = Path>) -> Vec<(Hop, u32)> {
        let hop = |path| {
            let (hop, left) = self.step(at, visit.previous, path, visit.to);
            (hop, left.note())
        };
        paths.into_iter().map(hop).collect()
    }

    /// Links on a path, that to the host included.
    pub fn links(&self, at: SwitchId, previous: Hop, path: Path, to: HostId) -> impl Iterator<Item = LinkId> {
        let mut standing = Some((at, previous, path));
        std::iter::from_fn(move || {
            let (at, previous, path) = standing?;
            let (hop, left) = self.step(at, previous, path, to);
            standing = self.far(hop.link).map(|next| (next, hop, left));
            Some(hop.link)
        })
    }
}
