//! End-to-end congestion control: two flows into one host converge to half of its link each, and a flow that shares a trunk
//! with an incast, but not its destination, keeps its rate. That results do not depend on shards, and forks, is in `shards`.

use std::sync::Arc;

use fairlane_core::error::RunError;
use fairlane_core::ids::{HostId, JobId, LinkId, VirtualLane};
use fairlane_core::network::transport::{self, Surroundings, Transport};
use fairlane_core::network::{
    Architecture, Delivery, Endpoint, Injection, Network, Parameters, Partition, Pause, Plan, Prefetch,
};
use fairlane_core::qos::levels::TrafficKind;
use fairlane_core::table::Table;
use fairlane_core::topology::Graph;
use fairlane_core::units::{Bytes, Instant};
use fairlane_core::{observe, qos::arbiter, routing, topology};
use serde_json::{Value, json};

/// Picoseconds.
const MICROSECOND: u64 = 1_000_000;
/// Bytes of a full packet on the wire, and its wire time at 100 Gb/s.
const FULL: u64 = 4122;
const WIRE: u64 = 329_760;

/// Flows that never end: from, to, job, and when each begins, ps.
#[derive(Clone)]
struct Flows(Vec<(u32, u32, u16, u64)>);

impl Endpoint for Flows {
    type Mail = ();

    fn run(
        &mut self,
        host: HostId,
        until: Instant,
        _deliveries: &[Delivery],
        injections: &mut Vec<Injection>,
    ) -> Result<Pause, RunError> {
        let mut next = None;
        for (from, to, job, start) in &mut self.0 {
            if *from != host.0 || *start == u64::MAX {
                continue;
            }
            if *start >= until.0 {
                next = Some(Instant(*start));
                continue;
            }
            injections.push(Injection {
                at: Instant(*start),
                from: host,
                to: HostId(*to),
                bytes: Bytes(1 << 32),
                rail: 0,
                vl: VirtualLane(0),
                job: JobId(*job),
                kind: TrafficKind::Bulk,
                token: 0,
                stage: 0,
                urgent: false,
            });
            *start = u64::MAX;
        }
        Ok(Pause { at: next, deferrable: false })
    }

    fn post(&mut self, _shard: usize, _mail: &mut ()) {}

    fn accept(&mut self, _shard: usize, _mail: &mut ()) {}

    fn end_window(&mut self, _until: Instant) -> bool {
        false
    }
}

impl Prefetch for Flows {}

fn build(name: &str, params: &Value) -> Arc<dyn Transport> {
    Table::<transport::Entry>::default().build(name, params, ()).unwrap().into()
}

/// Two switches and a trunk of 400 Gb/s. Hosts 0 to 2, and 3 at 50 Gb/s, are at the first; 4 and 5 at the second.
fn dumbbell() -> Arc<Graph> {
    let host = |name: &str, switch: &str| json!({ "ends": [name, switch] });
    let params = json!({
        "hosts": ["a", "b", "c", "v", "d", "w"],
        "links": [
            host("a", "s0"), host("b", "s0"), host("c", "s0"),
            { "ends": ["v", "s0"], "bandwidth": 50_000_000_000_u64 },
            host("d", "s1"), host("w", "s1"),
            { "ends": ["s0", "s1"], "bandwidth": 400_000_000_000_u64 },
        ],
    });
    Arc::new(topology::build("imported", &params).unwrap())
}

struct Run {
    network: Network,
    flows: Flows,
}

impl Run {
    fn new(transports: [Arc<dyn Transport>; 2], buffer: u64, flows: &[(u32, u32, u16, u64)]) -> Self {
        let graph = dumbbell();
        let [transport, of_job_1] = transports;
        let plan = Plan {
            routing: routing::build("up_down", &json!({}), &graph).unwrap().into(),
            arbiter: arbiter::build("weighted_round_robin", &json!({}), 1).unwrap().into(),
            graph: Arc::clone(&graph),
            transport,
            job_transports: vec![(JobId(1), of_job_1)],
            virtual_lanes: 1,
            lossy: Vec::new(),
            trim_vl: None,
            jobs: 2,
            architecture: Architecture::OutputQueued,
            parameters: Parameters { buffer: Bytes(buffer), ..Parameters::default() },
            observe: observe::Parameters::default(),
        };
        let mut network = Network::new(&plan, Partition::new(&graph, 1));
        flows.iter().for_each(|(from, ..)| network.wake(HostId(*from), Instant::ZERO));
        Self { network, flows: Flows(flows.to_vec()) }
    }

    fn run_to(&mut self, micros: u64) {
        let end = Instant(micros * MICROSECOND);
        self.network.run_until(end, u64::MAX, std::slice::from_mut(&mut self.flows)).unwrap();
        self.network.check_laws().unwrap();
    }

    /// Gb/s that hosts have sent from one time to another, in microseconds.
    fn rates(&mut self, from: u64, to: u64) -> Vec<f64> {
        self.run_to(from);
        let (begin, before) = (self.network.now(), self.sent());
        self.run_to(to);
        let span = (self.network.now().0 - begin.0) as f64;
        self.sent().iter().zip(before).map(|(now, before)| (now - before) as f64 * 8000.0 / span).collect()
    }

    /// Bytes that each host has sent.
    fn sent(&self) -> Vec<u64> {
        let graph = self.network.graph();
        let link = |host: u32| graph.ports(fairlane_core::topology::Vertex::Host(HostId(host))).next().unwrap();
        (0..6).map(|host| self.network.counters(LinkId(link(host).0), VirtualLane(0)).bytes).collect()
    }
}

/// A transport, its parameters, the buffer it is meant for, and when it has converged, in microseconds: twice the bound that
/// the comments derive, but for DCQCN.
fn schemes() -> Vec<(&'static str, Value, u64, u64)> {
    // From a packet's start to the arrival of its notice, without queues: a full packet over two hops to the ejection port and
    // over it, latencies of three links and two switches, the same back for a notice. Below 2 us; twice that with 64 KiB queued.
    let round_trip = 2 * MICROSECOND + 64 * 1024 * 80;
    let micros = |time: u64| time.div_ceil(MICROSECOND);
    vec![
        // The first acknowledgement with a mark sets the final window, one round trip after the threshold is exceeded at the rate
        // that the link lacks: 8 KiB at 100 Gb/s.
        ("endpoint_cc", json!({}), 65_536, 2 * micros(round_trip + 8192 * 80)),
        // A quarter of the buffer fills at 100 Gb/s. The delay after a packet is its wire time when the index is 12, for which
        // each flow needs 12 BECN. It gets one each eight packets of the ejection port, of which a quarter is marked; the index
        // overshoots for another round trip, so by (round trip / 8 wire times). From then on each flow gets one BECN each 15.36
        // us on average, in proportion to its rate 1 / (1 + i^2/128), whose slope at 11.3, where it is a half, is -0.044: of
        // two indices that differ by D, the difference falls by 2 * 0.044 * D each time, to a tenth in 26 times.
        (
            "ib_cc",
            json!({ "marking_rate": 3, "ccti_timer": 15 }),
            65_536,
            2 * micros(16_384 * 80 + 96 * WIRE + round_trip + (round_trip / (8 * WIRE) + 26) * 15_360_000),
        ),
        // Windows of 64 packets each begin to halve once a round trip, which is that of all the windows at first: 3 of 64 packets
        // at 100 Gb/s, then half of it, and so on; the sum is twice the first. Then one packet each round trip brings the shares
        // together: the difference of the windows halves with each decrease, which comes after at most max_cwnd round trips.
        ("swift", json!({}), 65_536, 2 * micros(2 * 3 * 64 * WIRE + 8 * 8 * round_trip)),
        // The queue reaches kmax at 100 Gb/s, and the first CNP halves the rates, as alpha is one. Alpha then falls to g within
        // ln(256)/g times its timer; the rates have been each other's middle for as many CNPs.
        ("dcqcn", json!({}), 2 << 20, micros(200_000 * 80 + round_trip + 256 * 6 * 55 * MICROSECOND / 8)),
    ]
}

#[test]
fn two_flows_into_one_host_converge_to_half_of_its_link() {
    for (name, params, buffer, converged) in schemes() {
        let transport = build(name, &params);
        let flows = [(0, 4, 0, 0), (1, 4, 0, 0)];
        let mut run = Run::new([Arc::clone(&transport), transport], buffer, &flows);
        let rates = run.rates(converged, 2 * converged + 30_000);
        println!("{name}: {rates:?} after {converged} us; {:?}", run.network.totals());
        let sum = rates[0] + rates[1];
        assert!((80.0..=100.1).contains(&sum), "{name}: {rates:?}");
        assert!(rates[..2].iter().all(|rate| (0.4..=0.6).contains(&(rate / sum))), "{name}: {rates:?}");
    }
}

#[test]
fn a_victim_of_an_incast_keeps_its_rate() {
    let incast: Vec<_> = vec![(0, 4, 0, 0), (1, 4, 0, 0), (2, 4, 0, 0), (3, 5, 0, 0)];
    let credits = build("credits_only", &json!({}));
    let alone = Run::new([Arc::clone(&credits), Arc::clone(&credits)], 65_536, &incast[3..]).rates(500, 1500)[3];
    assert!(alone > 49.0, "{alone}");
    let rates = Run::new([Arc::clone(&credits), Arc::clone(&credits)], 65_536, &incast).rates(500, 1500);
    println!("credits_only: {rates:?}");
    assert!(rates[3] < 0.75 * alone, "{rates:?}");
    for (name, params, buffer, converged) in schemes() {
        let transport = build(name, &params);
        let mut run = Run::new([Arc::clone(&transport), Arc::clone(&transport)], buffer, &incast);
        let rates = run.rates(converged, 2 * converged + 2_000);
        println!("{name}: {rates:?}; {:?}", run.network.totals());
        assert!(rates[3] > 0.9 * alone, "{name}: {rates:?}");
        assert!(rates[..3].iter().sum::<f64>() > 75.0, "{name}: {rates:?}");
        // By job: the incast alone is controlled.
        let jobs: Vec<_> = incast.iter().map(|&(from, to, _, start)| (from, to, u16::from(from < 3), start)).collect();
        let rates = Run::new([Arc::clone(&credits), transport], buffer, &jobs).rates(converged, 2 * converged + 2_000);
        println!("{name} for the incast: {rates:?}");
        assert!(rates[3] > 0.9 * alone, "{name} for the incast: {rates:?}");
    }
}

/// A trunk that waits for credits marks the victim's packets too, see the module of the transport.
#[test]
fn dcqcn_needs_deep_buffers() {
    let incast = [(0, 4, 0, 0), (1, 4, 0, 0), (2, 4, 0, 0), (3, 5, 0, 0)];
    let transport = build("dcqcn", &json!({ "kmax": 50_000 }));
    let rates = Run::new([Arc::clone(&transport), transport], 65_536, &incast).rates(10_000, 20_000);
    println!("dcqcn with small buffers: {rates:?}");
    assert!(rates[3] < 45.0, "{rates:?}");
}

#[test]
fn credits_alone_need_no_control_packets_and_schemes_count_theirs() {
    for (name, params, buffer, _) in schemes() {
        let (transport, credits) = (build(name, &params), build("credits_only", &json!({})));
        let flows = [(0, 4, 0, 0), (1, 4, 0, 0)];
        let mut run = Run::new([Arc::clone(&transport), Arc::clone(&transport)], buffer, &flows);
        run.run_to(200);
        let totals = run.network.totals();
        assert!(totals.control_packets > 0 && totals.control_packets_received <= totals.control_packets, "{totals:?}");
        assert_eq!(totals.packets_marked > 0, name != "swift", "{totals:?}");
        // Receivers send nothing but notices.
        let notice = totals.control_bytes / totals.control_packets + 26;
        assert_eq!(run.sent()[4] % notice, 0, "{name}");
        let mut run = Run::new([credits, transport], buffer, &flows);
        run.run_to(200);
        let totals = run.network.totals();
        assert_eq!((totals.control_packets, totals.packets_marked), (0, 0), "{name} of a job that sends nothing");
        assert!(run.sent()[0] > FULL * 100);
    }
}

#[test]
fn feedback_that_cannot_be_is_refused() {
    let refused = |name: &str, params: Value, virtual_lanes: u8, input_queued: bool| {
        let given = Surroundings { buffer: Bytes(65_536), buffer_key: "network.buffer", virtual_lanes, input_queued };
        let feedback = build(name, &params).feedback().unwrap();
        feedback.check("jobs[2].transport", name, &given).unwrap_err().to_string()
    };
    let error = refused("dcqcn", json!({}), 1, false);
    assert_eq!(error, "jobs[2].transport.kmax = 200000: at most the buffer of a lane, 65536 bytes (network.buffer)");
    let error = refused("endpoint_cc", json!({ "threshold": 65_537 }), 1, false);
    assert!(error.starts_with("jobs[2].transport.threshold = 65537: at most the buffer"), "{error}");
    let error = refused("swift", json!({ "notice_vl": 2 }), 2, false);
    assert!(error.starts_with("jobs[2].transport.notice_vl = 2: a virtual lane in use"), "{error}");
    let error = refused("ib_cc", json!({}), 1, true);
    assert!(error.starts_with("jobs[2].transport = ib_cc: switches mark packets for it"), "{error}");
}

#[test]
fn wrong_parameters_are_named() {
    for (name, params, words) in [
        ("ib_cc", json!({ "threshold": 16 }), "network.transport.threshold = 16: 0 to 15"),
        ("ib_cc", json!({ "ccti_min": 200 }), "network.transport.ccti_min = 200: at most ccti_limit"),
        ("ib_cc", json!({ "ccti_timer": 0 }), "network.transport.ccti_timer = 0: 1 to 65535"),
        ("ib_cc", json!({ "cct": [0, 1] }), "network.transport.cct = 2: 128 entries"),
        (
            "ib_cc",
            json!({ "virtual_lanes": [{ "vl": 32 }] }),
            "network.transport.virtual_lanes.vl = 32: a virtual lane",
        ),
        ("dcqcn", json!({ "kmin": 300_000 }), "network.transport.kmin = 300000: at most kmax (200000 bytes)"),
        ("dcqcn", json!({ "pmax": 1.5 }), "network.transport.pmax = 1.5: 0 to 1"),
        ("dcqcn", json!({ "alpha_timer": 0 }), "network.transport.alpha_timer = 0 ps: at least 1 us"),
        ("swift", json!({ "beta": 0.0 }), "network.transport.beta = 0: 0.001 to 1"),
        ("swift", json!({ "fs_min_cwnd": 200.0 }), "network.transport.fs_min_cwnd = 200: below fs_max_cwnd (100)"),
        ("endpoint_cc", json!({ "window": 0 }), "network.transport.window = 0: at least 1 byte"),
        ("endpoint_cc", json!({ "windw": 1 }), "network.transport: unknown field `windw`"),
    ] {
        let error = Table::<transport::Entry>::default().build(name, &params, ()).err().unwrap().to_string();
        assert!(error.starts_with(words), "{name}: {error}");
    }
}
