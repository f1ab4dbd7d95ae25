//! Laws of all lanes of a collective together: everybody hears of everybody whose data it needs, and the bytes are those of the
//! closed forms.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::layout::Layout;
use super::schedule::Schedule;
use super::{Algorithm, Nccl, Protocol, Setup};
use crate::ids::HostId;
use crate::mpi::collective::algorithms::trial::{Outcome, play, uniform};
use crate::program::CollectiveKind::{self, Allgather, Allreduce, Alltoall, Bcast, Reduce, ReduceScatter};
use crate::units::BitsPerSec;

fn lanes(nccl: &Nccl, (servers, each): (u32, u32), kind: CollectiveKind, root: u32, bytes: u64) -> Vec<Outcome> {
    let bandwidth = BitsPerSec(400_000_000_000);
    let setup = Arc::new(Setup { nccl: nccl.clone(), adapters: each, adapter_bandwidth: bandwidth });
    let size = servers * each;
    let layout = Arc::new(Layout::new((0..size).map(|rank| HostId(rank / each))));
    let calls = uniform(kind, size, root, bytes);
    let schedules: Vec<Schedule> = calls.iter().map(|call| setup.schedule(call, &layout).unwrap()).collect();
    assert!(schedules.iter().all(|schedule| schedule.lanes() == schedules[0].lanes()));
    let lane = |lane| {
        let of_ranks: Vec<Schedule> = schedules.iter().map(|schedule| schedule.in_lane(lane)).collect();
        play(size, &|rank, k, phase| of_ranks[rank as usize].phase(k, phase))
    };
    (0..schedules[0].lanes()).map(lane).collect()
}

fn sum(lanes: &[Outcome], of: impl Fn(&Outcome) -> &Vec<u64>) -> Vec<u64> {
    let size = of(&lanes[0]).len();
    (0..size).map(|rank| lanes.iter().map(|lane| of(lane)[rank]).sum()).collect()
}

const SHAPES: [(u32, u32); 8] = [(1, 2), (1, 8), (2, 1), (7, 1), (2, 8), (3, 4), (4, 2), (16, 1)];
const SIZES: [u64; 5] = [1, 1000, 1 << 20, 10_000_019, 300 << 20];

#[test]
fn every_rank_hears_of_all_that_it_needs() {
    for algorithm in [Algorithm::Auto, Algorithm::Ring, Algorithm::Tree, Algorithm::Hierarchical, Algorithm::Nvls] {
        for (shape, pxn) in SHAPES.into_iter().flat_map(|shape| [(shape, false), (shape, true)]) {
            let nccl = Nccl { algorithm, pxn, ..Nccl::default() };
            for kind in [Bcast, Reduce, Allreduce, Allgather, ReduceScatter, Alltoall] {
                for bytes in [64, 1 << 20] {
                    let size = shape.0 * shape.1;
                    let root = if matches!(kind, Bcast | Reduce) { size - 1 } else { 0 };
                    let lanes = lanes(&nccl, shape, kind, root, bytes);
                    for rank in 0..size {
                        let needed = |from: u32| match kind {
                            Bcast => from == root,
                            Reduce => rank == root,
                            _ => true,
                        };
                        let heard = |from| lanes.iter().any(|lane| lane.heard[rank as usize].contains(from));
                        assert!((0..size).filter(|from| needed(*from)).all(heard), "{algorithm:?} {shape:?} {kind:?}");
                    }
                }
            }
        }
    }
}

#[test]
fn bytes_are_those_of_the_closed_forms() {
    for (servers, each) in SHAPES {
        let size = servers * each;
        let n = u64::from(size);
        for bytes in SIZES {
            for algorithm in [Algorithm::Ring, Algorithm::Hierarchical] {
                let nccl = Nccl { algorithm, protocol: Protocol::Simple, ..Nccl::default() };
                let sent = |kind, bytes| sum(&lanes(&nccl, (servers, each), kind, 0, bytes), |lane| &lane.sent);
                let all = sent(Allreduce, bytes);
                assert_eq!(all.iter().sum::<u64>(), 2 * (n - 1) * bytes, "{algorithm:?} {servers} {each}");
                if bytes < 1 << 24 {
                    assert!(sent(Allgather, bytes).iter().all(|sent| *sent == (n - 1) * bytes));
                    assert!(sent(ReduceScatter, bytes).iter().all(|sent| *sent == (n - 1) * bytes));
                }
            }
            let simple = Nccl { algorithm: Algorithm::Tree, protocol: Protocol::Simple, ..Nccl::default() };
            let outcome = lanes(&simple, (servers, each), Allreduce, 0, bytes);
            assert_eq!(sum(&outcome, |lane| &lane.sent).iter().sum::<u64>(), 2 * (n - 1) * bytes);
            let chain = lanes(&simple, (servers, each), Bcast, size / 2, bytes);
            let sent = sum(&chain, |lane| &lane.sent);
            assert_eq!(sent.iter().sum::<u64>(), (n - 1) * bytes);
            assert!(sum(&chain, |lane| &lane.received)[(size / 2) as usize] == 0);
        }
    }
}

#[test]
fn with_nvls_the_buffer_and_one_part_of_it_leave_and_enter_every_gpu() {
    for gpus in [2, 3, 8] {
        for bytes in SIZES {
            let nccl = Nccl { algorithm: Algorithm::Nvls, ..Nccl::default() };
            let outcome = lanes(&nccl, (1, gpus), Allreduce, 0, bytes);
            let (sent, received) = (sum(&outcome, |lane| &lane.sent), sum(&outcome, |lane| &lane.received));
            assert_eq!(sent.iter().sum::<u64>(), (u64::from(gpus) + 1) * bytes);
            let each = bytes + bytes / u64::from(gpus);
            // The parts of each piece are whole bytes, and so are the messages.
            let most = (bytes / (16 * 131_072 * u64::from(gpus)) + 4) * u64::from(gpus);
            assert!(sent.iter().chain(&received).all(|bytes| bytes.abs_diff(each) <= most), "{gpus} {bytes} {sent:?}");
        }
    }
}

#[test]
fn flags_double_ll_and_add_a_fifteenth_to_ll128() {
    let total = |protocol| {
        let nccl = Nccl { protocol, algorithm: Algorithm::Ring, ..Nccl::default() };
        sum(&lanes(&nccl, (2, 2), Allgather, 0, 120 * 64 * 8), |lane| &lane.sent)[0]
    };
    let data = total(Protocol::Simple);
    assert_eq!((total(Protocol::Ll), total(Protocol::Ll128)), (2 * data, data * 128 / 120));
}

#[test]
fn between_servers_levels_send_least_and_rings_share_adapters() {
    let (servers, each, bytes) = (4, 8, 64 << 20);
    let network = |algorithm| {
        let nccl = Nccl { algorithm, protocol: Protocol::Simple, ..Nccl::default() };
        let mut by_sender = BTreeMap::new();
        for lane in lanes(&nccl, (servers, each), Allreduce, 0, bytes) {
            for ((from, to), bytes) in lane.pairs {
                *by_sender.entry(from).or_insert(0) += if from / each == to / each { 0 } else { bytes };
            }
        }
        by_sender
    };
    // By hand: a ring sends 2 (n - 1) / n of the buffer over one hop, in eight rings each over another adapter; in levels each GPU
    // sends 2 (servers - 1) / servers of its eighth.
    let ring = 2 * bytes / 8 / 32 * 31;
    assert!(network(Algorithm::Ring).values().all(|sent| sent.abs_diff(ring) < 4096));
    let levels = 2 * bytes / 8 / 4 * 3;
    assert!(network(Algorithm::Hierarchical).values().all(|sent| *sent == levels));
    // Both trees together: every server sends up once and down to its children, twice in all but at the roots.
    let tree: u64 = network(Algorithm::Tree).values().sum();
    assert_eq!(tree, 2 * 3 * bytes);
}

#[test]
fn with_pxn_messages_between_servers_stay_in_their_rail() {
    let nccl = Nccl { pxn: true, ..Nccl::default() };
    let outcome = lanes(&nccl, (3, 4), Alltoall, 0, 1 << 16);
    let mut between = 0;
    for ((from, to), bytes) in outcome.iter().flat_map(|lane| &lane.pairs) {
        assert!(from / 4 == to / 4 || from % 4 == to % 4, "{from} {to}");
        between += if from / 4 == to / 4 { 0 } else { *bytes };
    }
    assert_eq!(between, 12 * 8 * (1 << 16));
}
