//! The members of a communicator that share a server, and the orders in which NCCL visits them: rings and trees.

use crate::ids::HostId;

/// The members of a communicator by server, in the order of their ranks.
#[derive(Debug)]
pub(in crate::mpi) struct Layout {
    /// Ranks of the communicator on each server.
    servers: Vec<Vec<u32>>,
    /// By rank: its server and its number there.
    places: Vec<(u32, u32)>,
    /// By server: how many members the servers before it have.
    before: Vec<u32>,
}

/// A rank's place in a ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RingPlace {
    /// Its position, from 0.
    pub position: u32,
    /// The rank after it.
    pub next: u32,
    /// The rank before it.
    pub previous: u32,
}

/// A rank's place in a tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TreePlace {
    /// The rank above it; the root has none.
    pub parent: Option<u32>,
    /// The ranks below it, at most three.
    pub children: Vec<u32>,
    /// How many ranks are above it.
    pub depth: u32,
}

impl Layout {
    /// The layout of members on these hosts, in the order of their ranks.
    pub fn new(hosts: impl Iterator<Item = HostId>) -> Self {
        let mut numbers = std::collections::BTreeMap::new();
        let mut layout = Self { servers: Vec::new(), places: Vec::new(), before: Vec::new() };
        for (rank, host) in (0..).zip(hosts) {
            let server = *numbers.entry(host).or_insert_with(|| {
                layout.servers.push(Vec::new());
                layout.servers.len() - 1
            });
            layout.places.push((server as u32, layout.servers[server].len() as u32));
            layout.servers[server].push(rank);
        }
        let sizes = layout.servers.iter().map(|members| members.len() as u32);
        layout.before = sizes.scan(0, |sum, size| Some(std::mem::replace(sum, *sum + size))).collect();
        layout
    }

    /// Number of members.
    pub fn size(&self) -> u32 {
        self.places.len() as u32
    }

    /// Number of servers.
    pub fn servers(&self) -> u32 {
        self.servers.len() as u32
    }

    /// Server of a rank, and its number there.
    pub fn place(&self, rank: u32) -> (u32, u32) {
        self.places[rank as usize]
    }

    /// The rank of this number on a server.
    pub fn rank(&self, server: u32, number: u32) -> u32 {
        self.servers[server as usize][number as usize]
    }

    /// Members on the server that has the fewest.
    pub fn fewest(&self) -> u32 {
        self.servers.iter().map(Vec::len).min().unwrap_or(0) as u32
    }

    /// Members on each server, if it is the same number.
    pub fn each(&self) -> Option<u32> {
        let fewest = self.fewest();
        self.servers.iter().all(|members| members.len() == fewest as usize).then_some(fewest)
    }

    /// The `index`-th rank that ring `channel` visits on a server. A ring enters an even server at GPU `channel` and leaves it at
    /// the next; an odd one the other way round. So both ends of a hop between servers have the same number, and on rail-optimised
    /// fabrics the hop stays within a rail, as with `NCCL_CROSS_NIC=2`.
    fn visited(&self, channel: u32, server: u32, index: u32) -> u32 {
        let members = &self.servers[server as usize];
        let size = members.len() as u32;
        let number = if server.is_multiple_of(2) { channel % size + size - index } else { channel % size + 1 + index };
        members[(number % size) as usize]
    }

    /// The rank at this position of a ring.
    fn at(&self, channel: u32, position: u32) -> u32 {
        let server = self.before.partition_point(|before| *before <= position) - 1;
        self.visited(channel, server as u32, position - self.before[server])
    }

    /// The place of a rank in ring `channel`.
    pub(super) fn ring(&self, channel: u32, rank: u32) -> RingPlace {
        let (server, _) = self.place(rank);
        let members = self.servers[server as usize].len() as u32;
        let index = (0..members).find(|index| self.visited(channel, server, *index) == rank);
        let position = self.before[server as usize] + index.expect("invariant: a ring visits every member");
        let size = self.size();
        let [next, previous] = [(position + 1) % size, (position + size - 1) % size];
        RingPlace { position, next: self.at(channel, next), previous: self.at(channel, previous) }
    }

    /// The place of a rank in tree `tree` (0 or 1) of `channel`: a chain on each server, whose head, GPU `channel`, is in the
    /// binary tree of servers.
    pub(super) fn tree(&self, channel: u32, tree: u32, rank: u32) -> TreePlace {
        let (server, number) = self.place(rank);
        let members = &self.servers[server as usize];
        let size = members.len() as u32;
        let behind = (number + size - channel % size) % size;
        let head = |server: u32| {
            let members = &self.servers[server as usize];
            members[(channel as usize) % members.len()]
        };
        let mut children = Vec::new();
        if behind + 1 < size {
            children.push(members[((number + 1) % size) as usize]);
        }
        let depth = servers_above(self.servers(), tree, server) + behind;
        if behind > 0 {
            return TreePlace { parent: Some(members[((number + size - 1) % size) as usize]), children, depth };
        }
        let (parent, below) = double_tree(self.servers(), tree, server);
        children.extend(below.into_iter().flatten().map(head));
        TreePlace { parent: parent.map(head), children, depth }
    }
}

/// Parent and children of a server in one of the two trees, of NCCL 2.30.7, `src/graph/trees.cc`: the second is the mirror image
/// of the first, or shifted by one if the number is odd, so that a server has children in one of them at most, but for a few.
fn double_tree(servers: u32, tree: u32, server: u32) -> (Option<u32>, [Option<u32>; 2]) {
    if tree == 0 {
        return binary_tree(servers, server);
    }
    let odd = servers % 2 == 1;
    let own = if odd { (server + servers - 1) % servers } else { servers - 1 - server };
    let (parent, children) = binary_tree(servers, own);
    let named = |other: u32| if odd { (other + 1) % servers } else { servers - 1 - other };
    (parent.map(named), children.map(|child| child.map(named)))
}

/// `ncclGetBtree`: leaves are the odd numbers, and the lowest set bit of a number is the height of its subtree.
fn binary_tree(servers: u32, server: u32) -> (Option<u32>, [Option<u32>; 2]) {
    if server == 0 {
        let top = servers.next_power_of_two() / 2;
        return (None, [None, (servers > 1).then_some(top)]);
    }
    let bit = 1 << server.trailing_zeros();
    let right = (server ^ bit) | (bit << 1);
    let parent = if right >= servers { server ^ bit } else { right };
    let mut low = bit >> 1;
    if low == 0 {
        return (Some(parent), [None; 2]);
    }
    let first = server - low;
    while low > 0 && server + low >= servers {
        low >>= 1;
    }
    (Some(parent), [Some(first), (low > 0).then(|| server + low)])
}

fn servers_above(servers: u32, tree: u32, server: u32) -> u32 {
    std::iter::successors(Some(server), |server| double_tree(servers, tree, *server).0).count() as u32 - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(servers: u32, each: u32) -> Layout {
        Layout::new((0..servers * each).map(|rank| HostId(rank / each)))
    }

    #[test]
    fn a_ring_visits_every_rank_once_and_stays_in_its_rail_between_servers() {
        for (servers, each) in [(1, 1), (1, 8), (2, 8), (4, 8), (3, 1), (5, 3), (6, 2)] {
            let layout = layout(servers, each);
            for channel in 0..2 * each {
                let mut rank = layout.at(channel, 0);
                for position in 0..layout.size() {
                    let place = layout.ring(channel, rank);
                    assert_eq!((place.position, layout.ring(channel, place.next).previous), (position, rank));
                    let (from, to) = (layout.place(rank), layout.place(place.next));
                    let wraps = servers % 2 == 1 && position + 1 == layout.size();
                    assert!(from.0 == to.0 || from.1 == to.1 || wraps, "{servers} {each} {channel}: {from:?} {to:?}");
                    rank = place.next;
                }
            }
        }
    }

    #[test]
    fn both_trees_span_all_ranks_in_logarithmic_depth() {
        for (servers, each) in [(1, 4), (2, 1), (3, 2), (8, 1), (13, 1), (14, 2), (64, 1), (100, 1)] {
            let layout = layout(servers, each);
            for tree in 0..2 {
                let places: Vec<TreePlace> = (0..layout.size()).map(|rank| layout.tree(1, tree, rank)).collect();
                let limit = servers.next_power_of_two().trailing_zeros() + each;
                for (rank, place) in (0..).zip(&places) {
                    assert!(place.depth <= limit);
                    let above = place.parent.map(|parent| &places[parent as usize]);
                    assert!(above.is_none_or(|above| above.children.contains(&rank) && above.depth + 1 == place.depth));
                    assert!(place.children.iter().all(|child| places[*child as usize].parent == Some(rank)));
                }
                assert_eq!(places.iter().filter(|place| place.parent.is_none()).count(), 1);
            }
        }
    }
}
