//! Cases in which the engine's shortcuts would show: credits whose instant is not kept, and ranks that are not run for what
//! comes to them while they compute.

use fairlane_core::ids::{HostId, JobId, LinkId, Rank, ServiceLevel};
use fairlane_core::mpi;
use fairlane_core::network;
use fairlane_core::observe;
use fairlane_core::program::script::{Line, Script};
use fairlane_core::program::{COMM_WORLD, Op, P2p, Program, SendMode};
use fairlane_core::simulation::{FabricSpec, JobSpec, QosSpec, Simulation, Spec};
use fairlane_core::units::{Bytes, Instant, Picoseconds};
use serde_json::{Value, json};

pub(super) const END: Instant = Instant(u64::MAX >> 1);

/// Two ranks of one job, on hosts 0 and 1.
pub(super) fn simulation(fabric: Value, network: network::Parameters, eager: u64, ranks: [Vec<Op>; 2]) -> Simulation {
    simulation_on([HostId(0), HostId(1)], fabric, network, eager, ranks)
}

/// Two ranks of one job on these hosts; of two service levels, each has a virtual lane of its own.
fn simulation_on(
    hosts: [HostId; 2],
    fabric: Value,
    network: network::Parameters,
    eager: u64,
    ranks: [Vec<Op>; 2],
) -> Simulation {
    let job = JobSpec { name: "job".into(), hosts: hosts.into(), ..Default::default() };
    let spec = Spec {
        fabric: FabricSpec {
            topology: "fat_tree".into(),
            params: fabric,
            routing: "d_mod_k".into(),
            routing_params: json!({}),
            rails: None,
        },
        network,
        qos: QosSpec { sl2vl: vec![0, 1], ..Default::default() },
        mpi: mpi::Parameters { eager_threshold: Bytes(eager), ..Default::default() },
        jobs: vec![job],
        faults: Vec::new(),
        observe: observe::Parameters { departures: true, ..Default::default() },
    };
    let source = |ops: Vec<Op>| Script::new(ops.into_iter().map(Line::Op).collect()).unwrap().source();
    Simulation::new(spec, vec![Program { ranks: ranks.map(source).into() }]).unwrap()
}

/// When each rank has finished, in picoseconds.
fn ends(simulation: &Simulation) -> Vec<u64> {
    simulation.mpi().records(JobId(0)).map(|(_, record)| record.finished.unwrap().0).collect()
}

/// A link is never short of credits if the buffer behind it holds what the link carries until they come back: one packet's
/// wire time and two flights for a host. Then packets follow each other without a gap.
#[test]
fn a_stream_with_a_buffer_for_a_round_trip_has_no_gaps() {
    const RATE: u64 = 400_000_000_000;
    let comm = COMM_WORLD;
    for (latency, host_latency) in
        [(100, 100), (1_000, 1_000), (100, 1_000), (10, 500), (10, 1_000)].map(|(a, b)| (a * 1_000, b * 1_000))
    {
        let fabric = json!({
            "hosts": 8, "levels": 2, "radix": 8, "bandwidth": RATE, "latency": latency, "host_latency": host_latency,
        });
        let round_trip = 2 * host_latency * RATE / 8 / 1_000_000_000_000;
        for buffer in [round_trip + 3 * 4_200, round_trip + 20 * 4_200, 1 << 20] {
            let network =
                network::Parameters { buffer: Bytes(buffer), switch_latency: Picoseconds::ZERO, ..Default::default() };
            let send =
                Op::P2p(P2p::Send { to: Rank(1), bytes: Bytes(8 << 20), tag: 0, comm, mode: SendMode::Standard });
            let receive = Op::P2p(P2p::Recv { from: None, tag: None, comm });
            let mut simulation = simulation(fabric.clone(), network, 1 << 30, [vec![send], vec![receive]]);
            simulation.run_until(END, u64::MAX).unwrap();
            simulation.check_laws().unwrap();
            let network = simulation.network();
            let case = format!("{latency} ps, {host_latency} ps to hosts, buffer of {buffer} bytes");
            for link in (0..).map(LinkId).take(network.graph().links().len()) {
                assert_eq!(network.counters(link, 0).stalled, Picoseconds::ZERO, "{case}: {link}");
            }
            let departures = network.departures();
            let of_first = |link| departures.iter().filter(move |departure| departure.link == link);
            let times: Vec<u64> = of_first(departures[0].link).map(|departure| departure.time).collect();
            assert!(times.windows(3).all(|three| three[1] - three[0] == three[2] - three[1]), "{case}");
        }
    }
}

/// Service levels change while eager messages are in flight, and a rendezvous overtakes them: it goes on when the last of them
/// has come, although the receiver computes on for long.
#[test]
fn a_rendezvous_that_waits_for_its_turn_goes_on_while_the_receiver_computes() {
    const EAGER: u32 = 100;
    let comm = COMM_WORLD;
    let isend =
        |request, bytes, mode| Op::P2p(P2p::Isend { to: Rank(1), bytes: Bytes(bytes), tag: 0, comm, mode, request });
    let mut sender: Vec<Op> = (0..EAGER).map(|request| isend(request, 4_000, SendMode::Standard)).collect();
    sender.push(Op::Compute(Picoseconds(50_000_000)));
    sender.push(isend(EAGER, 10, SendMode::Synchronous));
    sender.push(Op::P2p(P2p::WaitAll((0..=EAGER).collect())));
    let post = |request| Op::P2p(P2p::Irecv { from: Some(Rank(0)), tag: Some(0), comm, request });
    let mut receiver: Vec<Op> = (0..=EAGER).map(post).collect();
    receiver.push(Op::Compute(Picoseconds(10_000_000_000)));
    receiver.push(Op::P2p(P2p::WaitAll((0..=EAGER).collect())));
    let fabric = json!({ "hosts": 4, "levels": 1, "radix": 4, "bandwidth": 10_000_000_000_u64 });
    let mut simulation = simulation(fabric, network::Parameters::default(), 8_000, [sender, receiver]);
    simulation.run_until(Instant(30_000_000), u64::MAX).unwrap();
    simulation.change_levels(|levels| levels.set_job(JobId(0), Some(ServiceLevel(1)))).unwrap();
    simulation.run_until(END, u64::MAX).unwrap();
    simulation.check_laws().unwrap();
    let [sent, received] = ends(&simulation)[..] else { panic!("two ranks") };
    // The eager messages take 100 wire times of 3.2 us; the control messages of the rendezvous little more.
    let wires = u64::from(EAGER) * 3_200_000;
    assert!((wires..wires + 20_000_000).contains(&sent), "{sent} ps");
    assert!(received > 10_000_000_000, "{received} ps");
}

/// Through memory a short message overtakes a long one and is held back; that service levels change meanwhile, so that the
/// network's messages are numbered from then on, leaves the order of those as it is.
#[test]
fn messages_through_memory_keep_their_turns_when_service_levels_change() {
    let (comm, long) = (COMM_WORLD, Bytes(10 << 20));
    let isend =
        |request, bytes| Op::P2p(P2p::Isend { to: Rank(1), bytes, tag: 0, comm, mode: SendMode::Standard, request });
    let compute = |microseconds: u64| Op::Compute(Picoseconds(microseconds * 1_000_000));
    let empty = Bytes(0);
    let sender =
        vec![isend(0, long), isend(1, empty), compute(100), isend(2, empty), Op::P2p(P2p::WaitAll((0..3).collect()))];
    let receiver = vec![Op::P2p(P2p::Recv { from: None, tag: None, comm }); 3];
    let fabric = json!({ "hosts": 4, "levels": 1, "radix": 4 });
    let host = [HostId(0); 2];
    let mut simulation = simulation_on(host, fabric, network::Parameters::default(), long.0, [sender, receiver]);
    simulation.run_until(Instant(50_000_000), u64::MAX).unwrap();
    simulation.change_levels(|levels| levels.set_job(JobId(0), Some(ServiceLevel(1)))).unwrap();
    simulation.run_until(END, u64::MAX).unwrap();
    simulation.check_laws().unwrap();
    let [sent, received] = ends(&simulation)[..] else { panic!("two ranks") };
    // Eager sends end at once; all three messages are received when the long one has come.
    let copied = mpi::Parameters::default().memory_bandwidth.serialization(long).0;
    assert!((100_000_000..110_000_000).contains(&sent), "{sent} ps");
    assert!((copied..copied + 10_000_000).contains(&received), "{received} ps, copied in {copied} ps");
}
