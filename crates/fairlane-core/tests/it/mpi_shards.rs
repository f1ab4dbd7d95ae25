//! Message passing in shards: however hosts are divided among shards, ranks do the same at the same instants. Over a network
//! that is nothing but a latency, so that only message passing is tested here.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use fairlane_core::error::RunError;
use fairlane_core::ids::{HostId, JobId, Rank, ServiceLevel};
use fairlane_core::mpi::collective::nccl::{Nccl, Setup};
use fairlane_core::mpi::{JobSetup, Mail, Mpi, Parameters, RailPolicy, Shards};
use fairlane_core::network::{Delivery, Endpoint, Injection};
use fairlane_core::program::graph::{After, Graph, Node, RankGraph};
use fairlane_core::program::script::{Line, Script};
use fairlane_core::program::{
    COMM_WORLD, Collective, CollectiveKind, Comm, Op, P2p, Program, Rma, RmaKind, SendMode, Volume,
};
use fairlane_core::qos::classes::ClassSpec;
use fairlane_core::qos::levels::{Levels, Sl2Vl, TrafficKind};
use fairlane_core::topology::{self, RailMap, RailsSpec};
use fairlane_core::units::{BitsPerSec, Bytes, Instant, Picoseconds};
use proptest::prelude::*;
use serde_json::json;

const HOSTS: usize = 9;
const WINDOW: u64 = 500_000;
const MTU: u64 = 1000;
/// Bytes that take more than one message of two sides, and one.
const SIZES: [u64; 5] = [0, 64, 900, 5_000, 40_000];

/// A phase that all ranks of a job do together: kind and two numbers that vary it.
type Phase = (usize, u32, usize);

/// How a job goes wrong in the end, or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Well,
    /// A rank receives what nobody sends.
    Stuck,
    /// Ranks call different collectives.
    Mismatch,
    /// A rank calls a collective that the others never do.
    Deserted,
    /// A rank waits for a request that does not exist.
    Misuse,
}

/// The hosts of a job's ranks, what they do, how that ends, and when the job is stopped.
type Work = (Vec<u32>, Vec<Phase>, End, Option<u64>);

#[derive(Clone, Debug)]
struct Case {
    jobs: Vec<Work>,
    /// Messages overtake each other.
    overtaking: bool,
    /// Control messages have a service level of their own.
    kinds_differ: bool,
    /// There are classes of traffic.
    classes: bool,
    /// Service levels change at this window.
    change: Option<u64>,
    policy: RailPolicy,
    salt: usize,
    /// Jobs that end well have several operations under way at once.
    graphs: bool,
}

fn case() -> impl Strategy<Value = Case> {
    let end = prop::sample::select(vec![
        End::Well,
        End::Well,
        End::Well,
        End::Well,
        End::Stuck,
        End::Mismatch,
        End::Deserted,
        End::Misuse,
    ]);
    let hosts = prop::collection::vec(0..u32::try_from(HOSTS).unwrap(), 2..7);
    let phases = prop::collection::vec((0..KINDS, 0..6_u32, 0..SIZES.len()), 1..5);
    let stop = prop::option::weighted(0.2, 1_u64..30_000_000);
    let jobs = prop::collection::vec((hosts, phases, end, stop), 1..3);
    let policy = prop::sample::select(vec![
        RailPolicy::Only { only: 0, to: None },
        RailPolicy::Only { only: 0, to: None },
        RailPolicy::Stripe { above: Bytes(700) },
        RailPolicy::RoundRobin,
    ]);
    let flags = (any::<bool>(), any::<bool>(), prop::option::of(0_u64..40), 0..100_usize, any::<bool>());
    (jobs, policy, flags).prop_map(|(jobs, policy, (overtaking, kinds_differ, change, salt, graphs))| Case {
        jobs,
        overtaking,
        kinds_differ,
        classes: salt.is_multiple_of(3),
        change,
        policy,
        salt,
        graphs,
    })
}

const KINDS: usize = 9;
const ANY: [CollectiveKind; 4] =
    [CollectiveKind::Allreduce, CollectiveKind::Alltoall, CollectiveKind::Bcast, CollectiveKind::Gather];

fn collective(kind: CollectiveKind, comm: u32, bytes: u64) -> Op {
    Op::Collective(Collective::Blocking { kind, comm, root: Rank(0), volume: Volume::Uniform(Bytes(bytes)) })
}

/// The operations of rank `own` of `size` in phase `number`.
fn operations(number: u32, (kind, shift, bytes): Phase, own: u32, size: u32) -> Vec<Op> {
    let (tag, bytes, comm) = (i32::try_from(number).unwrap(), SIZES[bytes], COMM_WORLD);
    let ahead = |by: u32| Rank((own + by) % size);
    let (next, before) = (ahead(1 + shift % size), ahead(size - 1 - shift % size));
    let standard = SendMode::Standard;
    let send = |to, bytes, request| Op::P2p(P2p::Isend { to, bytes: Bytes(bytes), tag, comm, mode: standard, request });
    let receive = |from, request| Op::P2p(P2p::Irecv { from, tag: Some(tag), comm, request });
    let exchange = |any: bool| {
        let all: Arc<[u32]> = Arc::new([0, 1, 2, 3]);
        let from = (!any).then_some(before);
        let first =
            if any { Op::P2p(P2p::WaitAny(Arc::clone(&all))) } else { Op::P2p(P2p::WaitSome(Arc::clone(&all))) };
        vec![
            receive(from, 0),
            send(next, bytes, 1),
            send(next, 10, 2),
            receive(from, 3),
            first,
            Op::P2p(P2p::WaitAll(all)),
        ]
    };
    let communicators = |new: u32| {
        let color = Some(i32::try_from(own % 2).unwrap());
        let members: Arc<[Rank]> = (0..size).rev().map(Rank).collect();
        let defined = new + 2;
        let target = Rank((size - 1 - own + 1) % size);
        vec![
            Op::Comm(Comm::Split { comm, new, color, key: -i32::try_from(own).unwrap() }),
            // Who has named it sends with its class, also if others have not.
            Op::Comm(Comm::SetName { comm: new, name: if own.is_multiple_of(3) { "third" } else { "halves" }.into() }),
            collective(CollectiveKind::Allreduce, new, bytes),
            Op::Comm(Comm::Dup { comm: new, new: new + 1 }),
            collective(CollectiveKind::Barrier, new + 1, 0),
            Op::Comm(Comm::Define { new: defined, members }),
            Op::P2p(P2p::Isend { to: target, bytes: Bytes(bytes), tag, comm: defined, mode: standard, request: 0 }),
            Op::P2p(P2p::Recv { from: None, tag: None, comm: defined }),
            Op::P2p(P2p::Wait(0)),
        ]
    };
    let window = |locked: bool| {
        let (win, exclusive, request) = (number, shift % 2 == 0, None);
        let kinds = [RmaKind::Put, RmaKind::Get, RmaKind::Accumulate, RmaKind::GetAccumulate, RmaKind::CompareAndSwap];
        let mut all = vec![Op::Rma(Rma::Create { comm, win })];
        all.push(if locked {
            Op::Rma(Rma::Lock { win, target: Rank(0), exclusive })
        } else {
            Op::Rma(Rma::LockAll { win })
        });
        let target = if locked { Rank(0) } else { next };
        all.extend(
            kinds.map(|kind| Op::Rma(Rma::Access { kind, win, target, bytes: Bytes(bytes.min(5000)), request })),
        );
        all.push(if locked { Op::Rma(Rma::Unlock { win, target: Rank(0) }) } else { Op::Rma(Rma::UnlockAll { win }) });
        all.extend([Op::Rma(Rma::Fence { win }), Op::Rma(Rma::Free { win })]);
        all
    };
    match kind {
        0 => exchange(false),
        1 => exchange(true),
        2 => vec![
            Op::P2p(P2p::Isend { to: next, bytes: Bytes(bytes), tag, comm, mode: SendMode::Synchronous, request: 0 }),
            Op::P2p(P2p::Probe { from: None, tag: Some(tag), comm }),
            Op::P2p(P2p::Recv { from: Some(before), tag: Some(tag), comm }),
            Op::P2p(P2p::Wait(0)),
        ],
        3 => {
            let (kind, volume) = (ANY[shift as usize % ANY.len()], Volume::Uniform(Bytes(bytes)));
            let mut all =
                vec![Op::Collective(Collective::Nonblocking { kind, comm, root: Rank(0), volume, request: 9 })];
            all.extend(exchange(false));
            all.push(Op::P2p(P2p::Wait(9)));
            all
        }
        4 => communicators(10 + 10 * number),
        5 => window(true),
        6 => window(false),
        7 => vec![Op::P2p(P2p::Datagram { to: next, bytes: Bytes(bytes) }), Op::Compute(Picoseconds(300_000))],
        _ => vec![collective(ANY[shift as usize % ANY.len()], comm, bytes)],
    }
}

/// The phases as a graph: in each a rank sends two messages and receives two, computes and takes part in a collective, all at once;
/// the next phase begins when work and receives have ended.
fn graph(phases: &[Phase], size: u32) -> Program {
    let mut graph = Graph { groups: vec![(0..size).rev().map(Rank).collect()], ..Graph::default() };
    for own in 0..size {
        let mut of_rank = RankGraph::default();
        let mut last: Vec<u32> = Vec::new();
        for (number, &(kind, shift, bytes)) in (0_i32..).zip(phases) {
            let bytes = Bytes(SIZES[bytes]);
            let ahead = |by: u32| Rank((own + by) % size);
            let (to, from) = (ahead(1 + shift % size), Some(ahead(size - 1 - shift % size)));
            let span = Picoseconds(u64::from(own % 3) * 123_456);
            let group = (kind % 2 == 0).then_some(0);
            let (kind, root, volume) = (ANY[shift as usize % ANY.len()], Rank(0), Volume::Uniform(bytes));
            let nodes = [
                Node::Recv { from, tag: Some(2 * number) },
                Node::Recv { from, tag: Some(2 * number + 1) },
                Node::Work { stream: 0, span },
                Node::Send { to, bytes, tag: 2 * number, mode: SendMode::Standard },
                Node::Send { to, bytes: Bytes(10), tag: 2 * number + 1, mode: SendMode::Eager },
                Node::Collective { kind, group, root, volume, stream: Some(0) },
                Node::Work { stream: 0, span },
                Node::Delay(span),
            ]
            .map(|node| of_rank.node(node));
            for &before in &last {
                nodes.iter().for_each(|node| of_rank.depends(*node, before, After::End));
            }
            of_rank.depends(nodes[5], nodes[3], After::Begin);
            last = vec![nodes[0], nodes[1], nodes[2], nodes[6], nodes[7]];
        }
        graph.ranks.push(of_rank);
    }
    graph.program().unwrap()
}

impl Case {
    fn program(hosts: &[u32], phases: &[Phase], end: End) -> Program {
        let size = u32::try_from(hosts.len()).unwrap();
        let source = |own: u32| {
            let mut ops = vec![Op::Compute(Picoseconds(u64::from(own % 3) * 123_456))];
            for (number, phase) in (0..).zip(phases) {
                ops.extend(operations(number, *phase, own, size));
                ops.push(Op::MarkProgress);
            }
            let last = own == size - 1;
            ops.extend(match end {
                End::Stuck if last => {
                    Some(Op::P2p(P2p::Recv { from: Some(Rank(0)), tag: Some(999), comm: COMM_WORLD }))
                }
                End::Mismatch if last => Some(collective(CollectiveKind::Allgather, COMM_WORLD, 8)),
                End::Mismatch => Some(collective(CollectiveKind::Barrier, COMM_WORLD, 0)),
                End::Deserted if own == 0 => Some(collective(CollectiveKind::Bcast, COMM_WORLD, 8)),
                End::Misuse if own == size / 2 => Some(Op::P2p(P2p::Wait(77))),
                _ => None,
            });
            Script::new(ops.into_iter().map(Line::Op).collect()).unwrap().source()
        };
        Program { ranks: (0..size).map(source).collect() }
    }

    fn mpi(&self, shards: usize) -> Mpi {
        let sizes: Vec<u32> = self.jobs.iter().map(|job| u32::try_from(job.0.len()).unwrap()).collect();
        let mut levels = Levels::new(&sizes);
        if self.kinds_differ {
            levels.set_kind(TrafficKind::Control, Some(ServiceLevel(1))).unwrap();
        }
        if self.classes {
            let class = ClassSpec { service_level: Some(1), ..ClassSpec::default() };
            let named = |name: &str| Some(vec![name.to_owned()]);
            let classes = [
                ClassSpec { communicators: named("halves"), ..class.clone() },
                ClassSpec { operations: named("one_sided"), above: Some(100), ..class },
            ];
            levels.define_classes(&classes, &vec![""; sizes.len()]).unwrap();
        }
        let plan = |(number, (hosts, phases, end, stop)): (usize, &Work)| JobSetup {
            name: format!("job {number}"),
            program: match end {
                End::Well if self.graphs => graph(phases, u32::try_from(hosts.len()).unwrap()),
                end => Self::program(hosts, phases, *end),
            },
            hosts: hosts.iter().map(|host| HostId(*host)).collect(),
            rails: self.policy.clone(),
            nccl: (self.salt % 2 == 1).then(|| Setup {
                nccl: Nccl::default(),
                adapters: 2,
                adapter_bandwidth: BitsPerSec(100_000_000_000),
            }),
            start: Instant(number as u64 * 1_300_000),
            stop: stop.map(|stop| Instant(number as u64 * 1_300_000 + stop)),
            marks: true,
        };
        let of_hosts: Vec<usize> = (0..HOSTS).map(|host| (host * 5 + self.salt) % shards).collect();
        let plans = self.jobs.iter().enumerate().map(plan).collect();
        let (parameters, sl2vl) =
            (Parameters { eager_threshold: Bytes(3000), ..Parameters::default() }, Sl2Vl::new(&[0, 1]));
        let shards = Shards { count: shards, of_hosts: &of_hosts };
        let mut mpi = Mpi::new(Bytes(1 << 30), parameters, levels, sl2vl.unwrap(), &two_rails(), &shards, plans);
        mpi.keep_latencies();
        if self.overtaking {
            mpi.expect_overtaking();
        }
        mpi
    }
}

/// Hosts with an adapter in each of two planes.
fn two_rails() -> Arc<RailMap> {
    let params = json!({ "hosts": HOSTS, "levels": 1 });
    let rails: RailsSpec = serde_json::from_value(json!({ "count": 2 })).unwrap();
    let graph = topology::build("fat_tree", &params).unwrap().with_rails(&rails).unwrap();
    Arc::new(RailMap::new(&graph, &BTreeSet::new()))
}

/// A host as the network sees it.
#[derive(Default)]
struct Host {
    /// When it runs by itself.
    wake: Option<u64>,
    deferring: bool,
    /// The arrivals at it: instant, sender, number, whether it cannot be deferred.
    coming: BTreeMap<(u64, u32, u64, bool), Delivery>,
    /// Messages that it has sent.
    sent: u64,
    /// When the last message to each host is there, on each lane and rail.
    last: BTreeMap<(u32, u8, [u8; 2]), u64>,
}

/// A latency between hosts, and shards run one after the other.
struct Run {
    mpi: Mpi,
    hosts: Vec<Host>,
    of_hosts: Vec<usize>,
    overtaking: bool,
    in_flight: u64,
}

impl Run {
    /// A message takes a latency, and a longer one time besides. Messages keep their order unless they may overtake.
    fn send(&mut self, injection: &Injection) {
        let Injection { at, from, to, bytes, vl, rails, token, traffic, stage, urgent, .. } = *injection;
        let jitter = (at.0 / 1000 + bytes.0 * 7 + u64::from(from.0) * 13 + u64::from(to.0) * 29) % 11 * 90_000;
        let mut first = at.0 + 600_000 + if self.overtaking { jitter } else { 0 };
        let host = &mut self.hosts[from.index()];
        let last = host.last.entry((to.0, vl.0, rails)).or_default();
        if !self.overtaking {
            first = first.max(*last);
        }
        let end = if bytes.0 > MTU { first + bytes.0 * 80 } else { first };
        *last = end;
        let mut number = host.sent;
        host.sent += 2;
        for (at, is_first, is_last) in [(first, true, end == first), (end, false, true)] {
            if is_first || end > first {
                let delivery = Delivery { at: Instant(at), token, traffic, stage, first: is_first, last: is_last };
                self.hosts[to.index()].coming.insert((at, from.0, number, urgent), delivery);
                number += 1;
            }
        }
        self.in_flight += 1;
    }

    fn run_host(&mut self, host: usize, until: u64, injections: &mut Vec<Injection>) -> Result<(), RunError> {
        let state = &mut self.hosts[host];
        let due = |at: &u64| *at < until;
        let urgent = state.coming.keys().any(|key| due(&key.0) && (key.3 || !state.deferring));
        if !state.wake.as_ref().is_some_and(due) && !urgent {
            return Ok(());
        }
        let later = state.coming.split_off(&(until, 0, 0, false));
        let deliveries: Vec<Delivery> = std::mem::replace(&mut state.coming, later).into_values().collect();
        self.in_flight -= deliveries.iter().filter(|delivery| delivery.last).count() as u64;
        let id = HostId(u32::try_from(host).unwrap());
        let shard = &mut self.mpi.shards()[self.of_hosts[host]];
        let pause = shard.run(id, Instant(until), &deliveries, injections)?;
        let state = &mut self.hosts[host];
        (state.wake, state.deferring) = (pause.at.map(|at| at.0), pause.deferrable);
        Ok(())
    }

    /// Runs all hosts through a window, shard by shard, and has the shards exchange their mail. Returns whether the run ends.
    fn run_window(&mut self, until: u64) -> Result<bool, RunError> {
        let (mut result, mut all) = (Ok(false), Vec::new());
        let shards = self.mpi.shards().len();
        for shard in (0..shards).rev() {
            for host in (0..HOSTS).filter(|host| self.of_hosts[*host] == shard).collect::<Vec<_>>() {
                let mut injections = Vec::new();
                let ran = self.run_host(host, until, &mut injections);
                all.append(&mut injections);
                if let Err(error) = ran {
                    result = Err(error);
                    break;
                }
            }
        }
        all.iter().for_each(|injection| self.send(injection));
        if result.is_ok() {
            result = Ok(self.end_window(until));
        }
        result
    }

    fn end_window(&mut self, until: u64) -> bool {
        let shards = self.mpi.shards();
        let mut mail: Vec<Vec<Mail>> = vec![vec![Mail::default(); shards.len()]; shards.len()];
        for (from, endpoint) in shards.iter_mut().enumerate() {
            (0..mail.len()).filter(|to| *to != from).for_each(|to| endpoint.post(to, &mut mail[from][to]));
        }
        for (to, endpoint) in shards.iter_mut().enumerate() {
            (0..mail.len()).filter(|from| *from != to).for_each(|from| endpoint.accept(from, &mut mail[from][to]));
        }
        let ends: Vec<bool> = shards.iter_mut().map(|shard| shard.end_window(Instant(until))).collect();
        assert!(ends.iter().all(|end| *end == ends[0]), "all shards see the same: {ends:?}");
        ends[0]
    }

    /// Runs to the end. Returns what was measured, or the error.
    fn run(&mut self, case: &Case) -> String {
        self.mpi.used_hosts().collect::<Vec<_>>().iter().for_each(|host| self.hosts[host.index()].wake = Some(0));
        for window in 1..20_000 {
            let ran = self.run_window(window * WINDOW);
            if ran != Ok(false) {
                return self.mpi.conclude(ran).unwrap_err().to_string();
            }
            self.mpi.check_laws(self.in_flight).unwrap();
            if case.change == Some(window) {
                let mut levels = self.mpi.levels().clone();
                levels.set_job(JobId(0), Some(ServiceLevel(1))).unwrap();
                self.mpi.set_levels(levels);
                self.hosts.iter_mut().for_each(|host| host.deferring = false);
            }
            if window % 16 == 0 {
                self.mpi = self.mpi.clone();
            }
            if self.hosts.iter().all(|host| host.wake.is_none() && host.coming.is_empty()) {
                return self.measured(window * WINDOW);
            }
        }
        panic!("the run does not end");
    }

    fn measured(&self, now: u64) -> String {
        let jobs = (0..self.mpi.jobs()).map(|job| JobId(u16::try_from(job).unwrap()));
        let of_jobs: Vec<_> = jobs
            .map(|job| {
                let records: Vec<_> = self.mpi.records(job).collect();
                let marks: Vec<_> = self.mpi.marks(job).kept().collect();
                let under_way: Vec<_> = self.mpi.under_way(job, Instant(now)).collect();
                format!("{records:?} {marks:?} {under_way:?}")
            })
            .collect();
        let unseen = vec![Vec::new(); self.of_hosts.len()];
        let latencies = self.mpi.latencies(&unseen);
        let latencies: Vec<_> = latencies.histograms().collect();
        format!("{of_jobs:?} {latencies:?} {}", self.mpi.finished())
    }
}

fn outcome(case: &Case, shards: usize) -> String {
    let of_hosts = (0..HOSTS).map(|host| (host * 5 + case.salt) % shards).collect();
    let hosts = (0..HOSTS).map(|_| Host::default()).collect();
    Run { mpi: case.mpi(shards), hosts, of_hosts, overtaking: case.overtaking, in_flight: 0 }.run(case)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, ..ProptestConfig::default() })]

    #[test]
    fn the_number_of_shards_changes_nothing(case in case()) {
        let one = outcome(&case, 1);
        for shards in [2, 3, 7] {
            prop_assert_eq!(&outcome(&case, shards), &one, "{} shards", shards);
        }
    }
}
