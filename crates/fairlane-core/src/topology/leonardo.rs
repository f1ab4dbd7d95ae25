//! Leonardo at CINECA: 4,992 compute nodes on a Dragonfly+ of InfiniBand HDR, with its node names and leaf switches.
//!
//! **Published.** 23 cells (19 of the Booster, 2 of the CPU partition DCGP, one of both, one of service nodes), every two of
//! them joined by 18 cables; NVIDIA QM8700 switches of 40 ports of 200 Gb/s; 18 spines of a cell, each with 22 ports to other
//! cells; 18 leaves of 10 nodes in a cell of the Booster, 16 leaves and 624 nodes in one of DCGP; a leaf has a cable to each
//! spine (CINECA's user guide of Leonardo, docs.hpc.cineca.it; M. Turisini et al., arXiv 2307.16885; D. De Sensi et al., SC
//! 2024, arXiv 2408.14090). A Booster node has two dual-port HDR100 adapters, 400 Gb/s in all; a node of DCGP one HDR100 port
//! (leonardo-supercomputer.cineca.eu/hpc-system). Names, cells and leaf switches of all nodes: the node list of HLC-Lab/CRAB at
//! 46b21b8d (MIT). `ib_send_lat` of 8 bytes takes 0.98 us within a switch, 1.36 us within a cell, 1.68 us between cells.
//!
//! **Assumed.** A host is one rank's share of a Booster node: 200 Gb/s, two of its four ports. Global cables join spines of one
//! number, one cable each. Cells 21 and 22 have two leaves without hosts, so that all cells have equally many switches: they can
//! carry non-minimal traffic within the cell only. The cell of service nodes is left out, as is the port of each spine to it.
//! Latencies of cables follow from `ib_send_lat` if a switch takes 130 ns.

use serde_json::{Value, json};

/// Nodes of a unit by leaf, counted from 1: first and last of each range.
type Unit = &'static [&'static [(u32, u32)]];

const BOOSTER: Unit = &[&[(1, 8), (13, 14)], &[(15, 16), (21, 28)], &[(9, 12), (17, 20), (29, 30)]];
const BOOSTER_OF_CELL_20: Unit = &[&[(1, 8), (13, 14)], &[(15, 16)], &[(9, 12), (17, 18)]];
const CPU_OF_CELL_20: Unit = &[CPU_FIRST, &[(27, 27), (30, 30), (33, 33), (36, 37), (40, 40), (43, 43), (46, 46)]];
const CPU: Unit = &[CPU_FIRST, &[(27, 27), (30, 30), (33, 33), (36, 37), (40, 40), (43, 43), (46, 46), (49, 78)]];
const CPU_FIRST: &[(u32, u32)] = &[(1, 26), (28, 29), (31, 32), (34, 35), (38, 39), (41, 42), (44, 45), (47, 48)];

const CELLS: u32 = 22;
const HDR: u64 = 200_000_000_000;
const HDR100: u64 = 100_000_000_000;

/// The units of a cell with the number of the first, which is in the names of their leaf switches, and the row of racks.
fn units(cell: u32) -> (u32, u32, Vec<Unit>) {
    match cell {
        20 => (11, 1, [vec![BOOSTER_OF_CELL_20; 2], vec![CPU_OF_CELL_20; 6]].concat()),
        21.. => (cell - 9, 1, vec![CPU; 8]),
        _ => (cell.div_ceil(2), if cell % 2 == 1 { 1 } else { 7 }, vec![BOOSTER; 6]),
    }
}

/// Parameters of the Dragonfly+. Nodes are numbered unit by unit, hosts leaf by leaf.
pub(super) fn params() -> Value {
    let (mut hosts, mut bandwidths, mut leaves, mut names) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let mut before = 0;
    for cell in 1..=CELLS {
        let (row, first, units) = units(cell);
        let (mut counts, mut speeds, mut switches) = (Vec::new(), Vec::new(), Vec::new());
        for (number, unit) in (first..).zip(units) {
            for (leaf, ranges) in unit.iter().enumerate() {
                let nodes: Vec<u32> = ranges.iter().flat_map(|(first, last)| *first..=*last).collect();
                counts.push(nodes.len());
                speeds.push(if unit.len() == BOOSTER.len() { HDR } else { HDR100 });
                switches.push(format!("{row}{number:02}{:02}", 2 * leaf));
                names.extend(nodes.iter().map(|node| format!("lrdn{:04}", before + node)));
            }
            before += unit.iter().flat_map(|ranges| *ranges).map(|(_, last)| *last).max().unwrap_or(0);
        }
        hosts.push(counts);
        bandwidths.push(speeds);
        leaves.push(switches);
    }
    json!({
        "groups": CELLS, "leaves": 18, "spines": 18, "global_links": CELLS - 1, "arrangement": "palm_tree",
        "hosts_per_leaf": hosts, "host_bandwidth": bandwidths, "host_names": names, "leaf_names": leaves,
        "bandwidth": HDR, "latency": 60_000, "global_latency": 185_000,
    })
}
