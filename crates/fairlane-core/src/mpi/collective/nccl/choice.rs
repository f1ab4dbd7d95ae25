//! The algorithm and protocol that NCCL takes: the shortest time of its model, `src/graph/tuning.cc` of 2.30.7, with the constants of
//! Hopper and Intel CPUs. Not modelled: limits of single channels, and the corrections for trees of medium sizes.

use super::layout::Layout;
use super::{Algorithm, Protocol, Setup};
use crate::program::CollectiveKind;

/// `baseLatencies` of tree and ring by protocol, us.
const BASE: [[f64; 3]; 2] = [[6.8, 14.0, 8.4], [6.6, 14.0, 8.4]];
/// `hwLatencies` over `NVLink`, us.
const SCALE_UP: [[f64; 3]; 2] = [[0.6, 1.25, 4.0], [0.6, 1.9, 3.4]];
/// `hwLatencies` over the network, us.
const NETWORK: [[f64; 3]; 2] = [[5.0, 8.5, 14.0], [2.7, 4.0, 14.0]];
/// The fabric's part of a network latency, which is simulated, us: the rest is software.
const FABRIC: f64 = 2.0;
/// `hwLatencies` of NVLS over `NVLink`, us: all of a call's.
const NVLS: f64 = 25.0;
/// `llMaxBws` by servers: one, two, more; GB/s.
const LL_MOST: [f64; 3] = [141.0, 39.0, 20.4];
/// Steps of a ring of a long allreduce take longer than those of a short one (`plateau effect`).
const PLATEAU: f64 = 1.4;

const PROTOCOLS: [Protocol; 3] = [Protocol::Ll, Protocol::Ll128, Protocol::Simple];

/// An algorithm and a protocol, neither of them `Auto`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Choice {
    pub algorithm: Algorithm,
    pub protocol: Protocol,
}

impl Choice {
    /// NCCL's choice for a collective of so many bytes: of the whole buffer, as its model counts. All-to-all is point-to-point
    /// messages, which use LL up to 16 KiB (`NCCL_P2P_LL_THRESHOLD`).
    pub fn new(setup: &Setup, layout: &Layout, kind: CollectiveKind, bytes: u64) -> Self {
        let (algorithm, protocol) = (setup.nccl.algorithm, setup.nccl.protocol);
        if kind == CollectiveKind::Alltoall {
            // Its latencies are those of rings, whatever other collectives use.
            let algorithm = Algorithm::Ring;
            let short = bytes / u64::from(layout.size()) <= 16_384;
            let usual = if short { Protocol::Ll } else { Protocol::Simple };
            return Self { algorithm, protocol: if protocol == Protocol::Auto { usual } else { protocol } };
        }
        let reduces_all = kind == CollectiveKind::Allreduce;
        if algorithm == Algorithm::Nvls && reduces_all && layout.servers() == 1 {
            return Self { algorithm, protocol: Protocol::Simple };
        }
        let in_levels = reduces_all || matches!(kind, CollectiveKind::Allgather | CollectiveKind::ReduceScatter);
        let algorithms: &[Algorithm] = match algorithm {
            Algorithm::Hierarchical if in_levels && layout.each().is_some() => &[Algorithm::Hierarchical],
            Algorithm::Auto | Algorithm::Nvls if reduces_all => &[Algorithm::Ring, Algorithm::Tree],
            Algorithm::Tree if reduces_all => &[Algorithm::Tree],
            _ => &[Algorithm::Ring],
        };
        let options =
            algorithms.iter().flat_map(|algorithm| PROTOCOLS.map(|protocol| Self { algorithm: *algorithm, protocol }));
        let allowed = options.filter(|option| protocol == Protocol::Auto || option.protocol == protocol);
        let time = |option: &Self| option.estimate(setup, layout, kind, bytes);
        allowed.min_by(|a, b| time(a).total_cmp(&time(b))).expect("invariant: a protocol is left")
    }

    /// The time of the collective, us.
    fn estimate(self, setup: &Setup, layout: &Layout, kind: CollectiveKind, bytes: u64) -> f64 {
        let [ranks, servers] = [layout.size(), layout.servers()].map(f64::from);
        let steps = match kind {
            CollectiveKind::Allreduce => 2.0 * (ranks - 1.0),
            CollectiveKind::Allgather | CollectiveKind::ReduceScatter => ranks - 1.0,
            _ => ranks,
        };
        let rings = self.algorithm != Algorithm::Tree;
        let (row, protocol) = (usize::from(rings), self.protocol.index());
        let bits = if layout.servers() == 1 {
            setup.nccl.scale_up_bandwidth.0 as f64
        } else {
            setup.adapter_bandwidth.0 as f64 * f64::from(setup.adapters.min(layout.fewest()).max(1))
        };
        let bus = bits / 8e9 * if rings { 1.0 } else { 0.92 };
        let most = LL_MOST[layout.servers().min(3) as usize - 1];
        let bus = match (self.protocol, rings) {
            (Protocol::Ll, true) => most.min(bus * 0.5),
            (Protocol::Ll, false) => most.min(bus / 3.8),
            (Protocol::Ll128, true) => bus * 0.92,
            (Protocol::Ll128, false) => bus * if layout.servers() == 1 { 7.0 / 9.0 } else { 120.0 / 128.0 },
            _ => bus,
        };
        let speed = bus * if rings { ranks / steps } else { 0.5 };
        let within = SCALE_UP[row][protocol];
        let between = NETWORK[if layout.fewest() == 1 { 0 } else { row }][protocol];
        let latency = BASE[row][protocol]
            + match kind {
                CollectiveKind::Bcast | CollectiveKind::Reduce => {
                    if servers > 1.0 {
                        between
                    } else {
                        within
                    }
                }
                _ if rings => {
                    let posting = if servers == 1.0 {
                        0.0
                    } else if protocol == 2 {
                        3.0
                    } else {
                        1.0
                    };
                    let hops = steps * (servers - 1.0) / (ranks - 1.0);
                    (steps - hops) * within.max(posting) + hops * between
                }
                _ => 2.0 * ((ranks / servers - 1.0) * within + f64::from(layout.servers().ilog2()) * between),
            };
        let long = rings
            && kind == CollectiveKind::Allreduce
            && self.protocol == Protocol::Simple
            && servers > 1.0
            && bytes as f64 / (f64::from(setup.channels(layout)) * ranks) >= 64.0;
        latency * if long { PLATEAU } else { 1.0 } + bytes as f64 / (1000.0 * speed)
    }

    /// Time from the call until the first message can be sent, ps, in thousandths.
    pub fn launch(self, thousandths: u32) -> u64 {
        let base = match self.algorithm {
            Algorithm::Nvls => NVLS,
            algorithm => BASE[usize::from(algorithm != Algorithm::Tree)][self.protocol.index()],
        };
        scaled(base, thousandths)
    }

    /// Time after the messages of a step have come until the next can be sent: software only. `network`: one came from another
    /// server.
    pub fn step(self, network: bool, thousandths: u32) -> u64 {
        if self.algorithm == Algorithm::Nvls {
            return 0;
        }
        let row = usize::from(self.algorithm != Algorithm::Tree);
        let protocol = self.protocol.index();
        scaled(if network { NETWORK[row][protocol] - FABRIC } else { SCALE_UP[row][protocol] }, thousandths)
    }
}

/// So many microseconds, in thousandths of them, in picoseconds.
fn scaled(micros: f64, thousandths: u32) -> u64 {
    (micros * 1000.0).round() as u64 * u64::from(thousandths)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::ids::HostId;
    use crate::mpi::collective::nccl::Nccl;
    use crate::units::BitsPerSec;

    #[test]
    fn short_allreduces_use_trees_and_ll_and_long_ones_rings_and_simple() {
        let setup =
            Arc::new(Setup { nccl: Nccl::default(), adapters: 8, adapter_bandwidth: BitsPerSec(400_000_000_000) });
        let layout = Layout::new((0..128).map(|rank| HostId(rank / 8)));
        let of = |bytes| Choice::new(&setup, &layout, CollectiveKind::Allreduce, bytes);
        assert_eq!(of(1024), Choice { algorithm: Algorithm::Tree, protocol: Protocol::Ll });
        assert_eq!(of(1 << 33), Choice { algorithm: Algorithm::Ring, protocol: Protocol::Simple });
        // By hand, ring and Simple: base 8.4 us, 30 hops of 14 us and 224 of 3.4 us, 1.4 times, and 254/128 S at 400 GB/s.
        let ring = Choice { algorithm: Algorithm::Ring, protocol: Protocol::Simple };
        let expected = 1.4 * (8.4 + 30.0 * 14.0 + 224.0 * 3.4) + 4e8 / 400e3 * 254.0 / 128.0;
        let estimate = ring.estimate(&setup, &layout, CollectiveKind::Allreduce, 400_000_000);
        assert!((estimate - expected).abs() < 1e-6 * expected, "{estimate} and not {expected}");
    }

    #[test]
    fn the_algorithm_changes_nothing_of_an_all_to_all() {
        let layout = Layout::new((0..16).map(|rank| HostId(rank / 8)));
        let of = |algorithm| {
            let nccl = Nccl { algorithm, ..Nccl::default() };
            let setup = Setup { nccl, adapters: 8, adapter_bandwidth: BitsPerSec(400_000_000_000) };
            Choice::new(&setup, &layout, CollectiveKind::Alltoall, 16 * 1024)
        };
        let expected = Choice { algorithm: Algorithm::Ring, protocol: Protocol::Ll };
        let algorithms = [Algorithm::Auto, Algorithm::Ring, Algorithm::Tree, Algorithm::Hierarchical];
        assert!(algorithms.into_iter().all(|algorithm| of(algorithm) == expected));
    }
}
