//! End-to-end congestion control: two flows into one host converge to half of its link each, and a flow that shares a
//! trunk with an incast, but not its destination, keeps its rate. That results do not depend on shards, and forks, is
//! in `shards`.

use std::sync::Arc;

use fairlane_core::error::RunError;
use fairlane_core::ids::{HostId, JobId, LinkId, Rank, TrafficId, VirtualLane};
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
/// Bytes of a full packet on the wire.
const FULL: u64 = 4122;
/// Bandwidth of the hosts' links, bit/s, unless a scheme has another.
const BANDWIDTH: u64 = 100_000_000_000;

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
    ) -> Result<Pause, Box<RunError>> {
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
                rails: [0, 0],
                vl: VirtualLane(0),
                job: JobId(*job),
                traffic: TrafficId(*job),
                kind: TrafficKind::Bulk,
                sender: Rank(0),
                receiver: Rank(0),
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
    Table::<transport::Transports>::default().build(name, params, ()).unwrap().into()
}

/// Two switches and a trunk of four times the bandwidth of hosts. Hosts 0 to 2, and 3 with half the bandwidth, are at
/// the first switch; 4 and 5 at the second.
fn dumbbell(bandwidth: u64) -> Arc<Graph> {
    let link = |a: &str, b: &str, bandwidth: u64| json!({ "ends": [a, b], "bandwidth": bandwidth });
    let params = json!({
        "hosts": ["a", "b", "c", "v", "d", "w"],
        "links": [
            link("a", "s0", bandwidth), link("b", "s0", bandwidth), link("c", "s0", bandwidth),
            link("v", "s0", bandwidth / 2),
            link("d", "s1", bandwidth), link("w", "s1", bandwidth),
            link("s0", "s1", 4 * bandwidth),
        ],
    });
    Arc::new(topology::build("imported", &params).unwrap())
}

impl Scheme {
    fn build(&self) -> Arc<dyn Transport> {
        build(self.name, &serde_json::from_str(self.params).unwrap())
    }
}

struct Run {
    network: Network,
    flows: Flows,
}

impl Run {
    fn new(transports: [Arc<dyn Transport>; 2], buffer: u64, flows: &[(u32, u32, u16, u64)]) -> Self {
        Self::with_links(BANDWIDTH, transports, buffer, flows)
    }

    fn with_links(
        bandwidth: u64,
        transports: [Arc<dyn Transport>; 2],
        buffer: u64,
        flows: &[(u32, u32, u16, u64)],
    ) -> Self {
        let graph = dumbbell(bandwidth);
        let [transport, of_job_1] = transports;
        let plan = Plan {
            routing: routing::build("up_down", &json!({}), &graph).unwrap().into(),
            arbiter: arbiter::build("weighted_round_robin", &json!({}), 1).unwrap(),
            graph: Arc::clone(&graph),
            transport,
            job_transports: vec![(JobId(1), of_job_1)],
            virtual_lanes: 1,
            lossy: Vec::new(),
            trim_vl: None,
            jobs: 2,
            traffic: Vec::new(),
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
        (0..6).map(|host| self.network.counters(LinkId(link(host).0), 0).bytes).collect()
    }
}

/// A scheme with its parameters, and when it has converged to equal shares of two flows, as follows from its
/// equations.
#[derive(Clone)]
struct Scheme {
    name: &'static str,
    params: &'static str,
    /// Of a lane: what the scheme is meant for.
    buffer: u64,
    /// Of the hosts' links, bit/s: what the default parameters are meant for.
    bandwidth: u64,
    /// From when on the queue at the root is controlled, us.
    controlled: u64,
    /// From when on shares are equal on average, us.
    converged: u64,
    /// For how long they are averaged, us.
    measured: u64,
}

/// Of shares that fluctuate around one half with this deviation, and forget what they were within the time `memory`:
/// the time over which their average is within 5% of the link with three standard deviations.
fn averaging(deviation: f64, memory: f64) -> f64 {
    2.0 * memory * (3.0 * deviation / 0.05).powi(2)
}

/// From a packet's start to the arrival of its notice, us: less than 2 us without queues (three links and two switches,
/// the same back), and the time that a buffer of 64 KiB takes at 100 Gb/s.
const ROUND_TRIP: f64 = 2.0 + 65.536 * 0.08;

/// The first acknowledgement with a mark sets the final window, which is the same for both flows. It comes one round
/// trip after the threshold of 8 KiB is exceeded, with 100 Gb/s more than the link carries. Nothing is random from then
/// on.
fn endpoint_cc() -> Scheme {
    let converged = (8.192 * 0.08 + ROUND_TRIP).ceil() as u64;
    Scheme {
        name: "endpoint_cc",
        params: "{}",
        buffer: 65_536,
        bandwidth: BANDWIDTH,
        controlled: converged,
        converged,
        measured: 1_000,
    }
}

/// At index i a flow has the part r(i) = 1 / (1 + i^2/128) of the link: one half at i = sqrt(128), where the slope is
/// -i/256.
///
/// In the steady state each period of the timer takes one from both indices, and two BECN restore them, each of which
/// goes to one of the flows with a probability that is its part of the link. Which packets are marked is not random,
/// but depends on the phases of the flows as if it were. Let D be the difference of the indices: the parts differ by
/// slope * D, so D falls by 2 * slope * D in a period, and forgets what it was in period / (2 * slope). Each BECN
/// changes D by one, up or down: its variance grows by 2 in a period, and is 1 / (2 * slope) in balance with that fall.
/// A share deviates from one half by slope * D / 2.
///
/// Before, the indices may have grown up to their limit of 127. They fall by one in a period, which ends at sqrt(128)
/// at the latest. Then D falls to a twentieth in three times.
fn ib_cc() -> Scheme {
    let (period, limit, half) = (150.0 * 1.024, 127.0, 128_f64.sqrt());
    let slope = half / 256.0;
    let memory = period / (2.0 * slope);
    let deviation = slope / 2.0 * (1.0 / (2.0 * slope)).sqrt();
    let controlled = (limit - half) * period;
    Scheme {
        name: "ib_cc",
        params: "{}",
        buffer: 65_536,
        bandwidth: BANDWIDTH,
        controlled: controlled as u64,
        converged: (controlled + 3.0 * memory) as u64,
        measured: averaging(deviation, memory) as u64,
    }
}

/// A window of 64 packets at first, the largest. If the delay is above the targets of both flows, the windows shrink by
/// up to one half, at most once in a round trip. Below both they grow by one packet in a round trip. In between, the
/// larger one shrinks, since it has the lower target, and the smaller one grows by one packet in a round trip. Round
/// trips of the first kind never increase their difference, those of the second keep it, and those of the third take at
/// least a packet from it: 64 of these suffice. Allowed are as many of the others.
fn swift() -> Scheme {
    let round_trips = 2.0 * 64.0;
    let converged = (round_trips * ROUND_TRIP) as u64;
    Scheme {
        name: "swift",
        params: "{}",
        buffer: 65_536,
        bandwidth: BANDWIDTH,
        controlled: converged,
        converged,
        measured: 1_000,
    }
}

/// The mean change of a flow's target rate, and the mean of its square, per second, if the flow has the rate `rate`,
/// bit/s, and `marks` marked packets in a second. See the module of the scheme.
fn dcqcn_change(rate: f64, marks: f64) -> (f64, f64) {
    let (gap, alpha_timer, timer, rai) = (50e-6, 55e-6, 55e-6, 40e6);
    // The probability that no CNP has followed a CNP after this time: none can within `gap`.
    let unmarked = |time: f64| (-marks * (time - gap).max(0.0)).exp();
    // As much increases alpha by CNPs as decreases it by its timer.
    let alpha = 1.0 / (1.0 + (1..4000).map(|count| unmarked(f64::from(count) * alpha_timer)).sum::<f64>());
    let (mut mean, mut square) = (0.0, 0.0);
    for steps in 0..4000 {
        let exactly = unmarked(f64::from(steps) * timer) - unmarked(f64::from(steps + 1) * timer);
        let beyond = (steps - 5).max(0);
        // With the next CNP the target becomes the current rate. That is below the target by the decrease, halved by
        // each step, and by half the last increase of the target, a quarter of the one before, and so on.
        let below = rate * alpha / 2.0 * 0.5_f64.powi(steps) + rai * (1.0 - 0.5_f64.powi(beyond));
        let change = rai * f64::from(beyond) - below;
        mean += exactly * change;
        square += exactly * change * change;
    }
    let cnps = 1.0 / (gap + 1.0 / marks);
    (cnps * mean, cnps * square)
}

/// In balance, the mean change of the target rate is zero, which gives the frequency of marks. If a flow is faster, it
/// has proportionally more marks, and its target falls: the derivative by the rate is the inverse of the time in which
/// a difference is forgotten. Fluctuations come from single CNPs.
///
/// Before, the rates may have fallen to nothing. The target grows by `rai` in 55 us, until both flows have one half. A
/// difference of at most the whole link then falls to a twenty-fifth of a half in ln(25) times. All for links of 40
/// Gb/s.
fn dcqcn() -> Scheme {
    let bandwidth = 40e9;
    let rate = bandwidth / 2.0;
    let (mut low, mut high) = (1.0_f64, 1e5_f64);
    for _ in 0..60 {
        let middle = (low * high).sqrt();
        *(if dcqcn_change(rate, middle).0 > 0.0 { &mut low } else { &mut high }) = middle;
    }
    let change = |factor: f64| dcqcn_change(rate * factor, low * factor);
    let fall = (change(0.999).0 - change(1.001).0) / (0.002 * rate);
    // The variance of the difference of two flows is twice the noise over twice the fall. A share deviates from one half
    // by a quarter of the difference over the rate.
    let deviation = (change(1.0).1 / fall).sqrt() / (4.0 * rate);
    let memory = 1e6 / fall;
    Scheme {
        name: "dcqcn",
        params: "{}",
        buffer: 2 << 20,
        bandwidth: bandwidth as u64,
        // CNPs are 50 us apart, and of the first ones each halves the rates: the queue has drained long before.
        controlled: 10_000,
        converged: (rate / 40e6 * 55.0 + 25_f64.ln() * memory) as u64,
        measured: averaging(deviation, memory) as u64,
    }
}

/// Shares are not tested here, where windows are of few packets: steps that are small in comparison equalise them slowly.
fn hpcc() -> Scheme {
    Scheme {
        name: "hpcc",
        params: r#"{ "flows": 10, "max_stage": 0 }"#,
        buffer: 65_536,
        bandwidth: BANDWIDTH,
        // Windows of at most 2 us each have been in flight for that many round trips, in which the estimate follows the load.
        controlled: 100,
        converged: 100,
        measured: 1_000,
    }
}

fn schemes() -> [Scheme; 5] {
    [endpoint_cc(), hpcc(), ib_cc(), swift(), dcqcn()]
}

#[test]
fn two_flows_into_one_host_converge_to_half_of_its_link() {
    // At the same time, and 1 ms later, when the first flow has the whole link.
    let fair = schemes().into_iter().filter(|scheme| scheme.name != "hpcc");
    for (scheme, later) in fair.flat_map(|scheme| [(scheme.clone(), 0), (scheme, 1_000)]) {
        let (transport, Scheme { name, buffer, bandwidth, converged, measured, .. }) = (scheme.build(), scheme);
        let flows = [(0, 4, 0, 0), (1, 4, 0, later * MICROSECOND)];
        let mut run = Run::with_links(bandwidth, [Arc::clone(&transport), transport], buffer, &flows);
        let rates = run.rates(later + converged, later + converged + measured);
        println!("{name}: {rates:?} {converged} us after {later} us, for {measured} us; {:?}", run.network.totals());
        let sum = rates[0] + rates[1];
        // An overload lasts for a round trip, in which ib_cc marks each packet; the timer needs a period to undo each mark.
        let used = if name == "ib_cc" { 0.85 } else { 0.99 };
        assert!((used..=1.001).contains(&(sum * 1e9 / bandwidth as f64)), "{name}: {rates:?}");
        assert!(rates[..2].iter().all(|rate| (0.45..=0.55).contains(&(rate / sum))), "{name}: {rates:?}");
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
    for scheme in schemes() {
        let (transport, Scheme { name, buffer, controlled, .. }) = (scheme.build(), scheme);
        let mut run = Run::new([Arc::clone(&transport), Arc::clone(&transport)], buffer, &incast);
        let rates = run.rates(controlled, controlled + 5_000);
        println!("{name}: {rates:?} from {controlled} us; {:?}", run.network.totals());
        assert!(rates[3] > 0.9 * alone, "{name}: {rates:?}");
        assert!(rates[..3].iter().sum::<f64>() > 75.0, "{name}: {rates:?}");
        // By job: the incast alone is controlled.
        let jobs: Vec<_> = incast.iter().map(|&(from, to, _, start)| (from, to, u16::from(from < 3), start)).collect();
        let mut run = Run::new([Arc::clone(&credits), transport], buffer, &jobs);
        let rates = run.rates(controlled, controlled + 5_000);
        println!("{name} for the incast: {rates:?}");
        assert!(rates[3] > 0.9 * alone, "{name} for the incast: {rates:?}");
    }
}

/// Additive steps of `(1 - eta) B T / flows` by each flow and a multiplicative step to `eta` cancel at the utilisation
/// `eta + senders (1 - eta) / flows`. The queue is that of paced packets that come at the same time: less than one. Swift keeps 4 us of
/// queue, 12 packets.
#[test]
fn hpcc_keeps_its_utilisation_and_an_empty_queue() {
    let mean_queue = |name: &str, params: &Value, senders: u32, from: u64| {
        let transport = build(name, params);
        let flows: Vec<_> = (0..senders).map(|host| (host, 4, 0, 0)).collect();
        let mut run = Run::new([Arc::clone(&transport), transport], 1 << 20, &flows);
        let ejection = run.network.graph().ports(fairlane_core::topology::Vertex::Host(HostId(4))).next().unwrap();
        let ejection = run.network.graph().link(LinkId(ejection.0)).reverse;
        run.run_to(from);
        let before = run.network.counters(ejection, 0);
        let (start, link) = (run.network.now(), run.rates(from, from + 1_000));
        let after = run.network.counters(ejection, 0);
        let span = (run.network.now().0 - start.0) as f64;
        ((after.waiting.0 - before.waiting.0) as f64 / span, link.iter().take(3).sum::<f64>() / 100.0)
    };
    for (senders, flows) in [(1, 100), (2, 100), (3, 100), (1, 10), (2, 10), (3, 10)] {
        let (queue, used) = mean_queue("hpcc", &json!({ "flows": flows, "max_stage": 0 }), senders, 2_000);
        let expected = 0.95 + 0.05 * f64::from(senders) / f64::from(flows);
        assert!((used - expected).abs() < 0.01, "{senders} senders, flows {flows}: {used}, not {expected}");
        assert!(queue < 1.0, "{senders} senders, flows {flows}: {queue}");
    }
    let (queue, _) = mean_queue("swift", &json!({}), 3, 2_000);
    assert!(queue > 6.0, "{queue}");
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
    for scheme in schemes() {
        let (transport, credits) = (scheme.build(), build("credits_only", &json!({})));
        let Scheme { name, buffer, .. } = scheme;
        let flows = [(0, 4, 0, 0), (1, 4, 0, 0)];
        let mut run = Run::new([Arc::clone(&transport), Arc::clone(&transport)], buffer, &flows);
        run.run_to(200);
        let totals = run.network.totals();
        assert!(totals.control_packets > 0 && totals.control_packets_received <= totals.control_packets, "{totals:?}");
        assert_eq!(totals.packets_marked > 0, !["swift", "hpcc"].contains(&name), "{totals:?}");
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
        let (buffer, buffer_key) = (Bytes(65_536), "network.buffer");
        let given = Surroundings { buffer, buffer_key, virtual_lanes, input_queued, takes_entropies: false };
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
    let error = refused("hpcc", json!({}), 1, true);
    assert!(error.starts_with("jobs[2].transport = hpcc: switches write telemetry of their output"), "{error}");
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
        ("hpcc", json!({ "eta": 1.01 }), "network.transport.eta = 1.01: 0.1 to 1"),
        ("hpcc", json!({ "flows": 0 }), "network.transport.flows = 0: 1 to 65536"),
        ("hpcc", json!({ "w_ai": 0 }), "network.transport.w_ai = 0: 1 byte to 1 TiB"),
        ("hpcc", json!({ "base_rtt": 999 }), "network.transport.base_rtt = 999 ps: 1 ns to 1 s"),
        ("endpoint_cc", json!({ "window": 0 }), "network.transport.window = 0: at least 1 byte"),
        ("endpoint_cc", json!({ "windw": 1 }), "network.transport: unknown field `windw`"),
    ] {
        let error = Table::<transport::Transports>::default().build(name, &params, ()).err().unwrap().to_string();
        assert!(error.starts_with(words), "{name}: {error}");
    }
}
