//! How much is waiting at ports: all that an adaptive routing sees of the network.

use crate::ids::{HostId, LinkId};

use super::Hop;

/// A packet at a switch that decides where it goes on.
#[derive(Clone, Copy, Debug)]
pub struct Visit {
    /// The hop that led here; for a packet fresh from a host the host's link, on channel 0.
    pub previous: Hop,
    /// Its destination.
    pub to: HostId,
    /// Its virtual lane.
    pub vl: u8,
    /// What the routing has noted in the packet at the switches before; zero at first.
    pub note: u32,
    /// A random number of this packet at this switch, for choices and ties.
    pub random: u32,
}

/// The loads of ports, in bytes.
///
/// The load of a link is what its port has yet to send plus what the port has sent and not got credits back for, over all
/// lanes. A switch knows its own ports' loads as they were when the window opened in which the packet comes, with the
/// packets that it has routed since; other switches' as they were at the opening.
#[derive(Clone, Copy, Debug)]
pub struct Loads<'a> {
    /// Bytes that have been routed to each port and have not started, at the opening.
    pub queued: &'a [u32],
    /// Bytes sent and not given back, at the opening.
    pub used: &'a [u32],
    /// Bytes routed to each port since.
    pub routed: &'a [u32],
}

impl Loads<'_> {
    /// The load of a link of the switch that decides.
    #[must_use]
    #[inline]
    pub fn here(&self, link: LinkId) -> u32 {
        self.afar(link).saturating_add(self.routed[link.index()])
    }

    /// The load of a link of another switch.
    #[must_use]
    #[inline]
    pub fn afar(&self, link: LinkId) -> u32 {
        self.queued[link.index()].saturating_add(self.used[link.index()])
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
        let loads = Loads { queued: &[9, 5, 5, 5], used: &[0, 0, 0, 4], routed: &[0, 0, 0, 0] };
        let lightest = |start| loads.lightest(LinkId(0), 4, start).0;
        assert_eq!([0, 1, 2, 3, 4, 6].map(lightest), [1, 1, 2, 1, 1, 2]);
        let routed = Loads { routed: &[0, 1, 0, 0], ..loads };
        assert_eq!(routed.lightest(LinkId(0), 4, 1), LinkId(2));
        assert_eq!((routed.here(LinkId(1)), routed.afar(LinkId(1))), (6, 5));
    }
}
