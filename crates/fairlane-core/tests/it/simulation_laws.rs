//! Laws of a whole simulation, on random fabrics, parameters and programs: everything sent is received, nothing is lost,
//! credits and waiting times balance, and neither slicing, forking nor repeating changes a bit.

use std::sync::Arc;

use fairlane_core::ids::{JobId, LinkId, Rank, ServiceLevel};
use fairlane_core::network::LaneCounters;
use fairlane_core::program::script::{Line, Script};
use fairlane_core::program::{COMM_WORLD, Op, P2p, Program, SendMode};
use fairlane_core::registry::Registry;
use fairlane_core::results::TABLES;
use fairlane_core::simulation::{Parallelism, Simulation};
use fairlane_core::units::{Bytes, Instant, Picoseconds};
use proptest::prelude::*;

use crate::case::{Case, controlled, op, sparse};

pub(super) const FAR: Instant = Instant(u64::MAX >> 1);

/// Everything that was measured, to compare two runs: the tables, of departures what does not depend on the names of messages.
pub(super) fn measured(simulation: &Simulation) -> String {
    let network = simulation.network();
    let entering = TABLES.iter().filter(|table| table.in_digest).map(|table| table.name);
    let tables =
        entering.chain(["job_marks", "latency", "latency_histogram", "pauses"]).map(|name| simulation.table(name));
    let tables: Vec<_> = tables.collect::<Result<_, _>>().unwrap();
    let departures: Vec<_> = network.departures().iter().map(|d| (d.time, d.link, d.lane, d.job, d.bytes)).collect();
    format!("{tables:?} {departures:?} {:?} {}", network.totals(), simulation.digest())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 192, ..ProptestConfig::default() })]

    #[test]
    fn everything_sent_is_received_and_all_balances(case in controlled()) {
        let mut simulation = case.simulation();
        prop_assert!(simulation.run_until(FAR, u64::MAX).unwrap());
        prop_assert!(simulation.finished());
        simulation.check_laws().unwrap();
        let totals = simulation.network().totals();
        prop_assert_eq!(totals.messages_injected, totals.messages_delivered);
        prop_assert_eq!(totals.bytes_injected, totals.bytes_delivered);
        let repeated = totals.packets_lost + totals.packets_trimmed + totals.packets_discarded;
        prop_assert_eq!(repeated, totals.packets_retransmitted);
        prop_assert!(case.go_back_n || totals.packets_discarded == 0);
        prop_assert!(case.may_lose_packets() || totals.packets_lost == 0);
        prop_assert!(simulation.fault_log().failures.is_empty());
        for job in 0..2 {
            prop_assert!(simulation.mpi().records(JobId(job)).all(|(_, record)| record.iterations == 1));
        }
    }

    #[test]
    fn jobs_fail_rather_than_hang(case in controlled()) {
        let mut simulation = case.with_lasting_faults().simulation();
        prop_assert!(simulation.run_until(FAR, u64::MAX).unwrap());
        prop_assert!(simulation.finished());
        simulation.check_laws().unwrap();
        let totals = simulation.network().totals();
        prop_assert_eq!(
            totals.packets_lost + totals.packets_trimmed + totals.packets_discarded,
            totals.packets_retransmitted + totals.packets_given_up
        );
        let failures = &simulation.fault_log().failures;
        for job in [JobId(0), JobId(1)] {
            let done = simulation.mpi().records(job).all(|(_, record)| record.iterations == 1);
            prop_assert!(done || failures.iter().any(|failure| failure.job == job));
        }
    }

    #[test]
    fn slices_forks_and_repetition_change_nothing(case in controlled(), slice in 100_000_u64..5_000_000, hops in 1_u64..50) {
        let mut whole = case.simulation();
        whole.run_until(FAR, u64::MAX).unwrap();
        let mut sliced = case.simulation();
        let mut end = 0;
        while !sliced.finished() {
            end += slice;
            prop_assert!(end < 20_000 * slice, "it ends");
            sliced.run_until(Instant(end), hops).unwrap();
            sliced.check_laws().unwrap();
            sliced = sliced.clone();
        }
        // To the end of faults that outlast the jobs.
        sliced.run_until(FAR, u64::MAX).unwrap();
        prop_assert_eq!(measured(&whole), measured(&sliced));
    }

    #[test]
    fn counters_only_watch_and_without_them_nothing_is_counted(case in controlled()) {
        let runs = [true, false].map(|counters| {
            let mut simulation = Case { counters, ..case.clone() }.simulation();
            simulation.run_until(FAR, u64::MAX).unwrap();
            simulation
        });
        let [departures, without] = [&runs[0], &runs[1]].map(|run| run.network().departures());
        prop_assert!(departures == without);
        let network = runs[1].network();
        for link in (0..).take(network.graph().links().len()).map(LinkId) {
            prop_assert_eq!(network.port_times(link), (Picoseconds::ZERO, Picoseconds::ZERO));
            for lane in (0..).take(network.lanes()) {
                prop_assert_eq!(network.counters(link, lane), LaneCounters::default());
            }
        }
    }

    #[test]
    fn service_levels_may_change_at_any_time(case in controlled(), at in 0_u64..20_000_000) {
        let mut simulation = case.simulation();
        simulation.run_until(Instant(at), u64::MAX).unwrap();
        let top = ServiceLevel(case.lanes - 1);
        simulation.change_levels(|levels| levels.set_job(JobId(0), Some(top))).unwrap();
        simulation.set_rank_levels(JobId(1), &[(0, top.0)].into()).unwrap();
        simulation.run_until(FAR, u64::MAX).unwrap();
        prop_assert!(simulation.finished());
        simulation.check_laws().unwrap();
    }
}

proptest! {
    // Threads wait for each other at every window, which takes its time where there are more of them than free cores.
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn shards_and_threads_change_nothing(case in controlled(), lasting in any::<bool>(), slice in 1_000_000_u64..20_000_000, hops in 200_u64..800) {
        let case = if lasting { case.with_lasting_faults() } else { case };
        let mut spec = case.spec();
        spec.observe.departures = false;
        let runs = [(1, 1), (2, 1), (3, 2), (7, 1)].map(|(shards, threads)| {
            let registry = Registry::default();
            let graph = Arc::new(spec.fabric.build(&registry).unwrap());
            let parallelism = Parallelism { shards, threads };
            let mut simulation =
                Simulation::parallel(&registry, graph, spec.clone(), case.programs(), parallelism).unwrap();
            let (mut end, mut seen) = (0, Vec::new());
            while !simulation.finished() {
                // A window that has shrunk lets a packet pass after milliseconds only.
                end += slice << (seen.len() / 16).min(24);
                simulation.run_until(Instant(end), hops).unwrap();
                simulation.check_laws().unwrap();
                seen.push((simulation.now(), measured(&simulation)));
                if seen.len() % 3 == 0 {
                    let top = ServiceLevel(u8::try_from(seen.len() % 256).unwrap() % case.lanes);
                    simulation.change_levels(|levels| levels.set_job(JobId(0), Some(top))).unwrap();
                    simulation = simulation.clone();
                }
            }
            seen
        });
        prop_assert!(runs.iter().all(|run| *run == runs[0]));
    }
}

#[test]
fn a_port_of_sixteen_lanes_takes_at_most_one_and_a_half_kibibytes() {
    let mut case = Case { lanes: 1, ..sparse() };
    let one = case.simulation().network().bytes_per_port();
    case.lanes = 16;
    let sixteen = case.simulation().network().bytes_per_port();
    assert!(sixteen > one && sixteen <= Bytes(1536), "{} bytes, {} with one lane", sixteen.0, one.0);
}

/// Two ranks that send each other messages for ever.
fn ping_pong() -> (Case, Vec<Program>) {
    let case = sparse();
    let send = |to| {
        op(Op::P2p(P2p::Send { to: Rank(to), bytes: Bytes(5000), tag: 0, comm: COMM_WORLD, mode: SendMode::Standard }))
    };
    let receive = |from| op(Op::P2p(P2p::Recv { from: Some(Rank(from)), tag: None, comm: COMM_WORLD }));
    let endless = |lines: [Line; 2]| {
        let [first, second] = lines;
        let lines = vec![Line::Repeat(None), first, second, op(Op::MarkProgress), Line::End];
        Script::new(lines).unwrap().source()
    };
    let job = || Program { ranks: vec![endless([send(1), receive(1)]), endless([receive(0), send(0)])] };
    (case, vec![job(), job()])
}

#[test]
fn a_job_that_begins_later_does_the_same_later() {
    const LATER: u64 = 12_345_678;
    let marks = |start: u64| {
        let (case, programs) = ping_pong();
        let mut spec = case.spec();
        spec.jobs[0].start = Picoseconds(start);
        spec.jobs[0].marks = true;
        // The other job is far away in the tree, on hosts of its own.
        let mut simulation = Simulation::new(spec, programs).unwrap();
        simulation.run_until(Instant(200_000_000), u64::MAX).unwrap();
        let (_, record) = simulation.mpi().records(JobId(0)).next().unwrap();
        assert_eq!(record.marks.len() as u64, record.iterations);
        record.marks.iter().map(|mark| mark.at.0).collect::<Vec<_>>()
    };
    let (now, later) = (marks(0), marks(LATER));
    assert!(later.len() > 3 && later.len() < now.len());
    assert!(now.iter().zip(&later).all(|(now, later)| now + LATER == *later), "{now:?} {later:?}");
}

#[test]
fn a_job_that_is_stopped_leaves_nothing_behind() {
    const STOP: u64 = 300_000_000;
    let (case, programs) = ping_pong();
    let mut spec = case.spec();
    spec.jobs.iter_mut().for_each(|job| job.stop = Some(Picoseconds(STOP)));
    spec.jobs[1].stop = Some(Picoseconds(2 * STOP));
    let mut simulation = Simulation::new(spec.clone(), programs).unwrap();
    assert!(simulation.run_until(FAR, u64::MAX).unwrap(), "nothing is left");
    assert!(simulation.finished());
    simulation.check_laws().unwrap();
    let totals = simulation.network().totals();
    assert_eq!(totals.messages_injected, totals.messages_delivered);
    for (job, stop) in [(0, STOP), (1, 2 * STOP)] {
        for (_, record) in simulation.mpi().records(JobId(job)) {
            assert!(record.iterations > 3 && record.last_mark.0 < stop);
            assert!(record.communication().0 <= stop, "{} of {stop}", record.communication().0);
        }
    }
    spec.jobs[0].stop = Some(Picoseconds::ZERO);
    let error = Simulation::new(spec, ping_pong().1).err().unwrap().to_string();
    assert!(error.contains("jobs[0].stop"), "{error}");
}
