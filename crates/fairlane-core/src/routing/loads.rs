//! The information that an adaptive routing decides by: the packet, and how much is waiting at ports.

use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;

use crate::ids::{HostId, JobId, LinkId};

use super::Hop;
use super::choices::scatter;

/// A packet at a switch that decides where it goes on.
#[derive(Clone, Copy, Debug)]
pub struct Visit {
    /// The hop that led here; for a packet fresh from a host the host's link, on channel 0.
    pub previous: Hop,
    /// Its destination.
    pub to: HostId,
    /// The host that sent it.
    pub source: HostId,
    /// The job that its message belongs to.
    pub job: JobId,
    /// Its virtual lane.
    pub vl: u8,
    /// The routing's note in the packet, from the switches before; zero at first.
    pub note: u32,
    /// A random number of this packet at this switch, for choices and ties.
    pub random: u32,
}

impl Visit {
    /// A packet to `to` that came by `previous`, with zeros for all else.
    #[must_use]
    pub const fn new(previous: Hop, to: HostId) -> Self {
        Self { previous, to, source: HostId(0), job: JobId(0), vl: 0, note: 0, random: 0 }
    }

    /// The packet's flow, as a number that is spread over all of `u32`: the same at every switch for all packets of one job
    /// from one host to one destination on one virtual lane. Ranks of a job that share a host share its flows.
    #[must_use]
    #[inline]
    pub fn flow(&self) -> u32 {
        let class = u32::from(self.job.0) << 8 | u32::from(self.vl);
        scatter(scatter(scatter(self.source.0) ^ self.to.0) ^ class)
    }
}

/// The loads of ports, in bytes.
///
/// The load of a link is what its port has yet to send plus what the port has sent and not got credits back for, over all
/// lanes. A switch knows its own ports' loads as they were when the window opened in which the packet comes, with the
/// packets that it has routed since; other switches' as they were at the opening.
#[derive(Clone, Copy, Debug)]
pub struct Loads<'a> {
    /// The link of the first port; the following ports are of the following links. All links, from 0 on, or those of the
    /// switch that decides (see [`Routing::sees_own_ports_only`](super::Routing::sees_own_ports_only)).
    pub first: LinkId,
    /// The loads of ports.
    pub ports: &'a PortLoads,
    /// The same by lane, for a routing that [asks for it](super::Routing::sees_lanes).
    pub by_lane: Option<LaneLoads<'a>>,
    /// The ids of links by the numbers that the routing has for them; empty if those are the ids.
    pub ids: &'a [LinkId],
}

/// The loads of ports, as [`Loads`], by port.
#[derive(Debug, Default)]
pub struct PortLoads {
    /// The load of each port, in it what has been routed to the port since the opening.
    pub all: Vec<u32>,
    /// Bytes routed to each port since the opening; empty for a routing that looks at its own switch's ports only.
    pub routed: Vec<u32>,
    /// Packets that wait at each port, for a routing that [asks for it](super::Routing::sees_waiting): routed to it and not started.
    pub waiting: Vec<u32>,
    /// Bytes of a full packet on the wire.
    pub full: u32,
    /// How many packets have taken their turn at a list of links, by the port of its first ([`Loads::turn`]).
    pub turns: Vec<AtomicU32>,
}

impl Clone for PortLoads {
    fn clone(&self) -> Self {
        let Self { all, routed, waiting, full, turns } = self;
        let turns = turns.iter().map(|turns| AtomicU32::new(turns.load(Relaxed))).collect();
        Self { all: all.clone(), routed: routed.clone(), waiting: waiting.clone(), full: *full, turns }
    }
}

/// The loads of the lanes of ports, in bytes: as [`Loads`], by port and then lane.
#[derive(Clone, Copy, Debug)]
pub struct LaneLoads<'a> {
    /// The load of each lane, in it what has been routed to it since the opening.
    pub all: &'a [u32],
    /// The first lane of each virtual lane, and the number of lanes at the end.
    pub first_lane: &'a [u8],
}

impl LaneLoads<'_> {
    /// The place in the tables of a lane of the port in place `port`.
    fn place(&self, port: usize, vl: u8, channel: u8) -> usize {
        let lanes = usize::from(self.first_lane[self.first_lane.len() - 1]);
        port * lanes + usize::from(self.first_lane[usize::from(vl)] + channel)
    }
}

impl<'a> Loads<'a> {
    /// The loads of the ports of all links, from 0 on.
    #[must_use]
    pub const fn of(ports: &'a PortLoads) -> Self {
        Self { first: LinkId(0), ports, by_lane: None, ids: &[] }
    }

    /// The load of a link of the switch that decides.
    #[must_use]
    #[inline]
    pub fn here(&self, link: LinkId) -> u32 {
        self.ports.all[self.place(link)]
    }

    /// The load of a link of another switch.
    #[must_use]
    #[inline]
    pub fn afar(&self, link: LinkId) -> u32 {
        let place = self.place(link);
        self.ports.all[place] - self.ports.routed.get(place).copied().unwrap_or(0)
    }

    /// The bytes of the packets that wait at a port of the switch that decides, each counted as a full one.
    ///
    /// # Panics
    /// Unless the routing [asks for it](super::Routing::sees_waiting).
    #[must_use]
    #[inline]
    pub fn waiting(&self, link: LinkId) -> u64 {
        u64::from(self.ports.waiting[self.place(link)]) * u64::from(self.ports.full)
    }

    #[inline]
    fn place(&self, link: LinkId) -> usize {
        let id = self.ids.get(link.index()).copied().unwrap_or(link);
        id.0.wrapping_sub(self.first.0) as usize
    }

    /// The load of one lane of a link of the switch that decides: of a virtual lane and a virtual channel.
    ///
    /// # Panics
    /// Unless the routing [asks for it](super::Routing::sees_lanes).
    #[must_use]
    pub fn on_lane(&self, link: LinkId, vl: u8, channel: u8) -> u32 {
        let lanes = self.by_lane.as_ref().expect("invariant: the routing sees lanes");
        lanes.all[lanes.place(self.place(link), vl, channel)]
    }

    /// How many packets the switch that decides has routed to one of several links, of which `first` is the first, before this
    /// one; modulo 2^32. Counts this one.
    #[inline]
    pub fn turn(&self, first: LinkId) -> u32 {
        let Some(turns) = self.ports.turns.get(self.place(first)) else { return 0 };
        let turn = turns.load(Relaxed);
        turns.store(turn.wrapping_add(1), Relaxed);
        turn
    }

    /// The same, where the number of each link is less by `shift`.
    pub(super) const fn shifted(&self, shift: u32) -> Self {
        Self { first: LinkId(self.first.0.wrapping_sub(shift)), ..*self }
    }

    /// The link with the least load among `links` of the switch that decides. Of several any is as likely as the others, if
    /// `random` is: it is number `random` of them, in order and modulo their number.
    #[must_use]
    #[inline]
    pub fn any_lightest(&self, links: impl Iterator<Item = LinkId> + Clone, random: u32) -> Option<LinkId> {
        let (mut least, mut count) = (u32::MAX, 0);
        for link in links.clone() {
            let load = self.here(link);
            count = if load < least { 1 } else { count + u32::from(load == least) };
            least = least.min(load);
        }
        let chosen = if count > 1 { random % count } else { 0 };
        links.filter(|link| self.here(*link) == least).nth(chosen as usize)
    }

    /// The link with the least load among `count` consecutive ones from `first` on, all of the switch that decides. Of
    /// several it is the first from the `start`-th on, going round; `start` is taken modulo `count`.
    #[must_use]
    pub fn lightest(&self, first: LinkId, count: u32, start: u32) -> LinkId {
        let start = start % count;
        let (low, high) = (first.0 + start, first.0 + count);
        let best = (low..high).chain(first.0..low).map(LinkId).min_by_key(|link| self.here(*link));
        best.unwrap_or(first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lightest_link_is_found_and_ties_go_round() {
        let ports = |all: [u32; 4], routed: [u32; 4]| PortLoads {
            all: all.into(),
            routed: routed.into(),
            ..Default::default()
        };
        let ports = [
            ports([9, 5, 5, 9], [0; 4]),
            ports([7; 4], [0; 4]),
            ports([u32::MAX; 4], [0; 4]),
            ports([9, 6, 5, 9], [0, 1, 0, 0]),
        ];
        let [loads, all_equal, full, routed] = ports.each_ref().map(Loads::of);
        let lightest = |start| loads.lightest(LinkId(0), 4, start).0;
        assert_eq!([0, 1, 2, 3, 4, 6].map(lightest), [1, 1, 2, 1, 1, 2]);
        let links = || (0..4).map(LinkId);
        let any = |random| loads.any_lightest(links(), random).unwrap().0;
        assert_eq!([0, 1, 2, 3].map(any), [1, 2, 1, 2]);
        assert_eq!([0, 1, 2, 3, 6].map(|random| all_equal.any_lightest(links(), random).unwrap().0), [0, 1, 2, 3, 2]);
        assert_eq!(full.any_lightest(links(), 5), Some(LinkId(1)));
        assert_eq!(routed.lightest(LinkId(0), 4, 1), LinkId(2));
        assert_eq!((routed.here(LinkId(1)), routed.afar(LinkId(1))), (6, 5));
    }

    #[test]
    fn turns_are_counted_by_first_link() {
        let ports = PortLoads { turns: [const { AtomicU32::new(0) }; 3].into(), ..Default::default() };
        let loads = Loads { first: LinkId(7), ..Loads::of(&ports) };
        assert_eq!([7, 7, 9, 7, 9].map(|link| loads.turn(LinkId(link))), [0, 1, 0, 2, 1]);
        assert_eq!(loads.shifted(7).turn(LinkId(1)), 0);
    }

    #[test]
    fn lanes_are_found_by_virtual_lane_and_channel() {
        // Two ports of three lanes: virtual lane 0 has two channels, virtual lane 1 has one.
        let by_lane = LaneLoads { all: &[0, 1, 2, 1110, 2220, 3330], first_lane: &[0, 2, 3] };
        let ports = PortLoads { all: vec![3, 6660], ..Default::default() };
        let loads = Loads { by_lane: Some(by_lane), ..Loads::of(&ports) };
        let at = |loads: Loads, link| [(0, 0), (0, 1), (1, 0)].map(|(vl, channel)| loads.on_lane(link, vl, channel));
        assert_eq!((at(loads, LinkId(0)), at(loads, LinkId(1))), ([0, 1, 2], [1110, 2220, 3330]));
        assert_eq!(at(loads.shifted(1), LinkId(0)), [1110, 2220, 3330]);
        assert_eq!(loads.shifted(1).here(LinkId(0)), 6660);
    }

    #[test]
    fn a_flow_is_of_source_destination_job_and_lane() {
        let visit = Visit::new(Hop { link: LinkId(3), channel: 0 }, HostId(5));
        let same = Visit { previous: Hop { link: LinkId(4), channel: 1 }, note: 7, random: 9, ..visit };
        assert_eq!(visit.flow(), same.flow());
        let others = [
            Visit { to: HostId(6), ..visit },
            Visit { source: HostId(1), ..visit },
            Visit { source: HostId(5), to: HostId(0), ..visit },
            Visit { job: JobId(1), ..visit },
            Visit { vl: 1, ..visit },
        ];
        assert!(others.iter().all(|other| other.flow() != visit.flow()));
    }

    #[test]
    fn flows_are_spread_evenly() {
        let mut load = [0_u32; 8];
        for pair in 0..8000 {
            let visit = Visit {
                source: HostId(pair / 100),
                ..Visit::new(Hop { link: LinkId(0), channel: 0 }, HostId(pair % 100))
            };
            load[(visit.flow() >> 29) as usize] += 1;
        }
        // Four times the standard deviation of a fair choice, sqrt(8000 x 1/8 x 7/8) = 30.
        assert!(load.iter().all(|load| load.abs_diff(1000) < 120), "{load:?}");
    }
}
