//! Process topologies, and the neighborhood collectives over them.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::ids::Rank;

/// The neighborhood collectives (MPI 4.1, section 8.6). [`super::Volume::Uniform`] is the block for every destination,
/// [`super::Volume::PerRank`] has a block for each destination in the order of the topology.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NeighborKind {
    /// MPI_Neighbor_allgather, MPI_Neighbor_allgatherv: the same block to every destination, so always uniform.
    Allgather,
    /// MPI_Neighbor_alltoall, MPI_Neighbor_alltoallv, MPI_Neighbor_alltoallw.
    Alltoall,
}

impl NeighborKind {
    /// Every kind, in the order of declaration.
    pub const ALL: [Self; 2] = [Self::Allgather, Self::Alltoall];

    /// The kind's name in lower case.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Allgather => "neighbor_allgather",
            Self::Alltoall => "neighbor_alltoall",
        }
    }
}

/// Who exchanges with whom on a communicator. Ranks are ranks of the communicator that gets the topology, which are those of
/// its parent: nothing is reordered.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Topology {
    /// A grid, row-major: the last dimension varies fastest. Neighbours are, dimension by dimension, the one before and
    /// the one after; at an end that is not periodic there is none, and its block goes nowhere.
    Cart {
        /// Ranks along each dimension, and whether it is periodic.
        dimensions: Vec<(u32, bool)>,
    },
    /// The neighbours of every rank, known to all of them: sources and destinations at once (MPI_Graph_create).
    Graph {
        /// By rank.
        neighbors: Vec<Vec<Rank>>,
    },
    /// The calling rank's own neighbours (MPI_Dist_graph_create_adjacent).
    Adjacent {
        /// It receives from these.
        sources: Arc<[Rank]>,
        /// It sends to these.
        destinations: Arc<[Rank]>,
    },
}

/// One rank's neighbours in the order of its blocks; `None` where the grid ends.
#[derive(Clone, Debug)]
pub(crate) struct Neighbors {
    pub sources: Vec<Option<Rank>>,
    pub destinations: Vec<Option<Rank>>,
}

impl Topology {
    /// How many ranks it has a place for, on a communicator of `size` ranks.
    pub(crate) fn places(&self, size: u32) -> u64 {
        match self {
            Self::Cart { dimensions } => {
                dimensions.iter().fold(1, |ranks: u64, (side, _)| ranks.saturating_mul(u64::from(*side)))
            }
            Self::Graph { neighbors } => neighbors.len() as u64,
            Self::Adjacent { .. } => u64::from(size),
        }
    }

    /// The neighbours of `rank`, for which there is a place.
    pub(crate) fn neighbors(&self, rank: u32) -> Neighbors {
        match self {
            Self::Cart { dimensions } => {
                let around = cart(dimensions, rank);
                Neighbors { sources: around.clone(), destinations: around }
            }
            Self::Graph { neighbors } => {
                let all: Vec<_> = neighbors[rank as usize].iter().copied().map(Some).collect();
                Neighbors { sources: all.clone(), destinations: all }
            }
            Self::Adjacent { sources, destinations } => {
                let listed = |ranks: &[Rank]| ranks.iter().copied().map(Some).collect();
                Neighbors { sources: listed(sources), destinations: listed(destinations) }
            }
        }
    }
}

/// The neighbours of `rank` in a grid: dimension by dimension, the one before and the one after.
fn cart(dimensions: &[(u32, bool)], rank: u32) -> Vec<Option<Rank>> {
    let mut around = Vec::new();
    for (place, &(side, periodic)) in dimensions.iter().enumerate() {
        let stride: u32 = dimensions[place + 1..].iter().map(|(side, _)| side).product();
        let own = rank / stride % side;
        let at = |other: u32| Some(Rank(rank - own * stride + other * stride));
        around.push(if own > 0 || periodic { at((own + side - 1) % side) } else { None });
        around.push(if own + 1 < side || periodic { at((own + 1) % side) } else { None });
    }
    around
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_grid_is_row_major_and_ends_where_it_is_not_periodic() {
        let grid = Topology::Cart { dimensions: vec![(2, false), (3, true)] };
        assert_eq!(grid.places(9), 6);
        let of = |rank| grid.neighbors(rank).destinations;
        let some = |rank| Some(Rank(rank));
        // 0 1 2
        // 3 4 5
        assert_eq!(of(0), [None, some(3), some(2), some(1)]);
        assert_eq!(of(5), [some(2), None, some(4), some(3)]);
    }
}
