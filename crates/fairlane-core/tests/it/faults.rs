//! Faults: what a degraded cable does to a stream, by a closed form; overlapping, added under way, on both directions; and
//! what is refused.

use fairlane_core::fault::FaultSpec;
use fairlane_core::ids::{HostId, LinkId, Rank};
use fairlane_core::network;
use fairlane_core::observe;
use fairlane_core::program::script::{Line, Script};
use fairlane_core::program::{COMM_WORLD, Op, Program, SendMode};
use fairlane_core::simulation::{FabricSpec, JobSpec, Named, QosSpec, Simulation, Spec};
use fairlane_core::topology::Vertex;
use fairlane_core::units::{Bytes, Instant, Picoseconds};
use serde_json::json;

const FAR: Instant = Instant(u64::MAX >> 1);
/// Of 1000 bytes at 8 Gbit/s, ps.
const PACKET: u64 = 1_000_000;
const LATENCY: u64 = 100_000;
const PACKETS: u64 = 200;
/// The link that leaves host 0.
const FIRST: &str = "host0 port 1 to switch0";

fn degraded(link: &str, lanes: u8, at: u64, until: Option<u64>) -> FaultSpec {
    let params = json!({ "link": link, "lanes": lanes });
    FaultSpec {
        fault: Named { name: "degraded_link".into(), params },
        at: Picoseconds(at),
        until: until.map(Picoseconds),
    }
}

fn spec(faults: Vec<FaultSpec>) -> Spec {
    let job = JobSpec {
        name: "job".into(),
        hosts: vec![HostId(0), HostId(1)],
        service_level: None,
        ranks: Default::default(),
        rails: None,
        start: Picoseconds::ZERO,
        stop: None,
        marks: false,
        transport: None,
    };
    let params = json!({
        "hosts": 4, "levels": 1, "radix": 4, "bandwidth": 8_000_000_000_u64, "latency": LATENCY, "host_latency": LATENCY,
    });
    Spec {
        fabric: FabricSpec {
            topology: "fat_tree".into(),
            params,
            routing: "d_mod_k".into(),
            routing_params: json!({}),
            rails: None,
        },
        network: network::Parameters { mtu: Bytes(1000), header: Bytes(0), ..Default::default() },
        qos: QosSpec {
            lanes: None,
            sl2vl: vec![0],
            arbiter: Named::new("weighted_round_robin"),
            default: 0,
            kinds: Default::default(),
        },
        mpi: fairlane_core::mpi::Parameters { eager_threshold: Bytes(1 << 30), ..Default::default() },
        jobs: vec![job],
        faults,
        observe: observe::Parameters { departures: true, ..Default::default() },
    }
}

/// One message of [`PACKETS`] packets from host 0 to host 1.
fn stream(faults: Vec<FaultSpec>) -> Simulation {
    let send =
        Op::Send { to: Rank(1), bytes: Bytes(1000 * PACKETS), tag: 0, comm: COMM_WORLD, mode: SendMode::Standard };
    let receive = Op::Recv { from: None, tag: None, comm: COMM_WORLD };
    let source = |op| Script::new(vec![Line::Op(op)]).unwrap().source();
    Simulation::new(spec(faults), vec![Program { ranks: vec![source(send), source(receive)] }]).unwrap()
}

/// The link that leaves host 0.
fn first(simulation: &Simulation) -> LinkId {
    simulation.network().graph().ports(Vertex::Host(HostId(0))).next().unwrap()
}

/// When packets start on the link that leaves host 0.
fn starts(simulation: &Simulation) -> Vec<u64> {
    let link = first(simulation);
    let departures = simulation.network().departures();
    departures.iter().filter(|departure| departure.link == link.0).map(|departure| departure.time).collect()
}

/// A stream keeps the link busy, so a packet starts when the one before has been sent, which takes `4 / lanes` times as long if
/// that started in the fault's time. Faults begin and end at the end of a window, which is at most one latency.
#[test]
fn packets_take_as_long_as_the_lanes_that_are_left_need() {
    for (lanes, factor) in [(1, 4), (2, 2), (4, 1)] {
        let (at, until) = (50 * PACKET + 7, 120 * PACKET + 11);
        let mut simulation = stream(vec![degraded(FIRST, lanes, at, Some(until))]);
        assert!(simulation.run_until(FAR, u64::MAX).unwrap());
        simulation.check_laws().unwrap();
        let starts = starts(&simulation);
        assert_eq!(starts.len() as u64, PACKETS);
        for pair in starts.windows(2) {
            let took = pair[1] - pair[0];
            let clearly = |instant: u64| pair[0] < instant || pair[0] > instant + LATENCY;
            if clearly(at) && clearly(until) {
                let expected = if pair[0] > at && pair[0] < until { factor * PACKET } else { PACKET };
                assert_eq!(took, expected, "{lanes} lanes, start {}", pair[0]);
            } else {
                assert!(took == PACKET || took == factor * PACKET);
            }
        }
    }
}

/// The slower of two faults counts while both last, and each ends by itself.
#[test]
fn faults_overlap() {
    let back = "switch0 port 1";
    let faults =
        vec![degraded(FIRST, 2, 20 * PACKET, Some(80 * PACKET)), degraded(back, 1, 40 * PACKET, Some(60 * PACKET))];
    let mut simulation = stream(faults);
    simulation.run_until(FAR, u64::MAX).unwrap();
    let starts = starts(&simulation);
    let factor = |from: u64, to: u64| {
        let inside = starts.windows(2).filter(|pair| pair[0] > from * PACKET + LATENCY && pair[0] < to * PACKET);
        inside.map(|pair| (pair[1] - pair[0]) / PACKET).collect::<std::collections::BTreeSet<_>>()
    };
    assert_eq!(
        [(0, 20), (20, 40), (40, 60), (60, 80), (80, 500)].map(|(from, to)| factor(from, to)),
        [[1].into(), [2].into(), [4].into(), [2].into(), [1].into(),]
    );
}

/// One that is added under way is the same as one of the specification; one whose time has passed begins at once.
#[test]
fn a_fault_can_be_added_to_a_run() {
    let fault = degraded(FIRST, 1, 50 * PACKET, None);
    let mut given = stream(vec![fault.clone()]);
    given.run_until(FAR, u64::MAX).unwrap();
    let mut added = stream(Vec::new());
    added.run_until(Instant(30 * PACKET), u64::MAX).unwrap();
    let mut fork = added.clone();
    added.add_fault(&fault).unwrap();
    added.run_until(FAR, u64::MAX).unwrap();
    assert_eq!(given.digest(), added.digest());
    assert_eq!(starts(&given), starts(&added));
    fork.add_fault(&degraded(FIRST, 1, 0, None)).unwrap();
    fork.run_until(FAR, u64::MAX).unwrap();
    let late = starts(&fork);
    assert!(
        late.windows(2).all(|pair| pair[1] - pair[0] == if pair[0] > 30 * PACKET + LATENCY { 4 } else { 1 } * PACKET
            || pair[0].abs_diff(30 * PACKET) <= LATENCY)
    );
}

#[test]
fn wrong_faults_are_refused_with_their_place() {
    let unknown = FaultSpec { fault: Named::new("degraded_lnk"), at: Picoseconds(0), until: None };
    let wrong = [
        (
            degraded("host9 port 1", 1, 0, None),
            "fault[1].link = \"host9 port 1\": no host and no switch is called \"host9\"; did you",
        ),
        (degraded("switch0 port 9", 1, 0, None), "ports of switch0 with a cable: 1, 2, 3, 4"),
        (degraded("host0 port 1 to host1", 1, 0, None), "that port leads to switch0"),
        (degraded("host0", 1, 0, None), "a link by its sending end, as \"leaf4 port 7"),
        (degraded(FIRST, 5, 0, None), "fault[1].lanes = 5: 1 to 4, the lanes of the cable"),
        (degraded(FIRST, 0, 0, None), "fault[1].lanes = 0: 1 to 4"),
        (degraded(FIRST, 1, 10, Some(10)), "fault[1].until = 10: after fault[1].at (10 ps)"),
        (unknown, "did you mean \"degraded_link\"?"),
    ];
    for (fault, words) in wrong {
        let spec = spec(vec![degraded(FIRST, 1, 0, None), fault]);
        let source = || Script::new(Vec::new()).unwrap().source();
        let error = Simulation::new(spec, vec![Program { ranks: vec![source(), source()] }]).err().unwrap().to_string();
        assert!(error.contains(words), "{error}");
    }
}
