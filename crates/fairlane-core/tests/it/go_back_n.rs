//! Go-back-N: the goodput of a connection over a link on which packets are lost, by a closed form; lost last packets; and what is refused.

use fairlane_core::error::BuildError;
use fairlane_core::fault::FaultSpec;
use fairlane_core::ids::{HostId, LinkId, Rank};
use fairlane_core::mpi;
use fairlane_core::network::{Parameters, Retransmission};
use fairlane_core::observe;
use fairlane_core::program::script::{Line, Script};
use fairlane_core::program::{COMM_WORLD, Op, P2p, Program, SendMode};
use fairlane_core::simulation::{FabricSpec, JobSpec, Named, QosSpec, Simulation, Spec};
use fairlane_core::topology::Vertex;
use fairlane_core::units::{Bytes, Instant, Picoseconds};
use serde_json::{Value, json};

const FAR: Instant = Instant(u64::MAX >> 1);
const MICROSECOND: u64 = 1_000_000;
/// Time on the wire of a packet of 1000 bytes at 8 Gbit/s, us.
const PACKET: f64 = 1.0;
/// Of each of the two links, us.
const LATENCY: f64 = 1.0;
/// Of the switch between them, us.
const SWITCH: f64 = 0.1;
/// Time on the wire of a NAK, us.
const NAK: f64 = 0.004;
const TIMEOUT: f64 = 20.5;

/// Host 0 sends so many packets to host 1, over one switch.
fn spec(retransmission: Retransmission, fault: Value) -> Spec {
    let Value::Object(mut params) = fault else { unreachable!() };
    params.insert("link".into(), "host0 port 1 to switch0".into());
    let name = params.remove("kind").unwrap().as_str().unwrap().to_owned();
    let until = params.remove("until").map(|until| Picoseconds(until.as_u64().unwrap() * MICROSECOND));
    let fault = FaultSpec { fault: Named { name, params: params.into() }, at: Picoseconds(0), until };
    let latency = (LATENCY * MICROSECOND as f64) as u64;
    let fabric = json!({
        "hosts": 4, "levels": 1, "radix": 4, "bandwidth": 8_000_000_000_u64, "latency": latency, "host_latency": latency,
    });
    Spec {
        fabric: FabricSpec {
            topology: "fat_tree".into(),
            params: fabric,
            routing: "d_mod_k".into(),
            routing_params: json!({}),
            rails: None,
        },
        network: Parameters {
            mtu: Bytes(1000),
            header: Bytes(0),
            retransmission,
            retransmission_timeout: Picoseconds((TIMEOUT * MICROSECOND as f64) as u64),
            ..Default::default()
        },
        qos: QosSpec::default(),
        mpi: mpi::Parameters { eager_threshold: Bytes(1 << 30), ..Default::default() },
        jobs: vec![JobSpec {
            name: "job".into(),
            hosts: vec![HostId(0), HostId(1)],
            start: Picoseconds(5 * MICROSECOND),
            ..Default::default()
        }],
        faults: vec![fault],
        observe: observe::Parameters { departures: true, ..Default::default() },
    }
}

fn build(spec: Spec, packets: u64) -> Result<Simulation, BuildError> {
    let (bytes, comm) = (Bytes(1000 * packets), COMM_WORLD);
    let send = Op::P2p(P2p::Send { to: Rank(1), bytes, tag: 0, comm, mode: SendMode::Standard });
    let receive = Op::P2p(P2p::Recv { from: None, tag: None, comm });
    Simulation::new(
        spec,
        vec![Program { ranks: [send, receive].map(|op| Script::new(vec![Line::Op(op)]).unwrap().source()).into() }],
    )
}

/// The simulation at its end, and when packets started at the sender, us.
fn run(spec: Spec, packets: u64) -> (Simulation, Vec<f64>) {
    let mut simulation = build(spec, packets).unwrap();
    assert!(simulation.run_until(FAR, u64::MAX).unwrap() && simulation.finished());
    simulation.check_laws().unwrap();
    let link: LinkId = simulation.network().graph().ports(Vertex::Host(HostId(0))).next().unwrap();
    let departures = simulation.network().departures();
    let first = departures.iter().filter(|departure| departure.link == link.0);
    let starts = first.map(|departure| departure.time as f64 / MICROSECOND as f64).collect();
    (simulation, starts)
}

/// A sender that always sends uses a slot of the link for each packet. If a packet is lost, with probability `p`, the first that follows
/// and comes is answered with a NAK, and the sender goes back when it arrives: after `W` slots from the start of the lost packet, and one
/// more for each further packet that is lost, `p / (1 - p)` on average. If the packet is lost again, no NAK comes, and the sender goes
/// back `T` slots later, when its timeout has passed; and so on each further time. A packet takes `1 + p (W + p / (1 - p) (1 + T))` slots:
/// with `T = W - 1` that is the textbook's goodput, `(1 - p) / (1 + (W - 1) p)`. Selective retransmission takes `1 / (1 - p)` slots.
#[test]
fn the_goodput_of_both_schemes_is_their_closed_form() {
    let packets = 20_000;
    let one_way = PACKET + 2.0 * LATENCY + SWITCH;
    let window = (PACKET + one_way + NAK + 2.0 * LATENCY + SWITCH).ceil();
    let timeout = (PACKET + LATENCY + TIMEOUT).ceil();
    assert_eq!([window, timeout], [7.0, 23.0]);
    for rate in [2.5e-7_f64, 1e-6, 4e-6] {
        let fault = json!({ "kind": "bit_errors", "rate": rate, "retry": false });
        let p = 1.0 - (1.0 - rate).powi(8000);
        let (simulation, starts) = run(spec(Retransmission::GoBackN, fault.clone()), packets);
        let totals = simulation.network().totals();
        let slots = 1.0 + p * (window + p / (1.0 - p) * (1.0 + timeout));
        let measured = starts.len() as f64 / packets as f64;
        // Lost packets are counted: with so many, their number is within three standard deviations.
        let tolerance = 3.0 * (slots - 1.0) / (p * packets as f64).sqrt();
        assert!((measured - slots).abs() < tolerance, "{p}: {measured}, not {slots}");
        // The sender has never waited: packets came back before it was their turn.
        assert!((starts[starts.len() - 1] - (starts.len() - 1) as f64 * PACKET - starts[0]).abs() < TIMEOUT + 3.0);
        // Few NAKs of 4 bytes are lost, too.
        assert_eq!(starts.len() as u64, packets + totals.bytes_retransmitted / 1000);
        assert_eq!(totals.packets_retransmitted, totals.packets_lost + totals.packets_discarded);
        assert_eq!(totals.bytes_delivered, 1000 * packets);
        assert!(totals.control_packets <= totals.packets_lost);
        let (simulation, starts) = run(spec(Retransmission::Selective, fault), packets);
        let totals = simulation.network().totals();
        let measured = packets as f64 / starts.len() as f64;
        let tolerance = 3.0 * p / (p * packets as f64).sqrt();
        assert!((measured - (1.0 - p)).abs() < tolerance, "{p}: {measured}");
        assert_eq!((totals.packets_discarded, totals.control_packets), (0, 0));
        assert_eq!(starts.len() as u64, packets + totals.packets_lost);
    }
}

/// The link is down for 30 us: three packets are lost at once, and again after the timeout of the first. Nobody sends a NAK. After another
/// timeout they are sent in order.
#[test]
fn a_lost_last_packet_is_found_by_its_timeout() {
    let fault = json!({ "kind": "link_down", "until": 30 });
    let (simulation, starts) = run(spec(Retransmission::GoBackN, fault), 3);
    let totals = simulation.network().totals();
    assert_eq!((totals.packets_lost, totals.packets_retransmitted, totals.packets_discarded), (6, 6, 0));
    assert_eq!(totals.control_packets, 0);
    let first = starts[0];
    assert!((5.0 + 2.0 * TIMEOUT..7.0 + 2.0 * TIMEOUT).contains(&first), "{starts:?}");
    assert_eq!(starts, [first, first + PACKET, first + 2.0 * PACKET]);
}

#[test]
fn a_routing_that_lets_packets_overtake_is_refused() {
    let mut spec = spec(Retransmission::GoBackN, json!({ "kind": "link_down" }));
    spec.fabric.routing = "adaptive".into();
    let error = build(spec, 1).err().unwrap().to_string();
    assert!(error.starts_with("network.retransmission = go_back_n: only with a routing that keeps"), "{error}");
}
