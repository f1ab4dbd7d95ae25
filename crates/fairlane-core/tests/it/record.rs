//! Records of single messages, waits and packets add up to the sums that are kept, and change nothing.

use std::collections::BTreeSet;

use fairlane_core::ids::{JobId, LinkId, Rank};
use fairlane_core::observe::{self, MessageRecord, RecordOf, WaitRecord, operation_name};
use fairlane_core::simulation::Simulation;
use fairlane_core::topology::Vertex;
use fairlane_core::units::Picoseconds;
use proptest::prelude::*;
use proptest::strategy::ValueTree;

use super::case::{Case, case};
use super::simulation_laws::{FAR, measured};

const JOB: JobId = JobId(0);

fn run(case: &Case, observe: observe::Parameters) -> Simulation {
    let mut spec = case.spec();
    spec.observe = observe;
    let mut simulation = Simulation::new(spec, case.programs()).unwrap();
    assert!(simulation.run_until(FAR, u64::MAX).unwrap());
    simulation
}

fn recorded(from: u64, to: u64) -> observe::Parameters {
    let record = Some(RecordOf { job: Some(JOB), from: Picoseconds(from), to: Picoseconds(to), operations: true });
    observe::Parameters { record, ..Default::default() }
}

fn kept(simulation: &Simulation) -> (Vec<MessageRecord>, Vec<WaitRecord>) {
    let record = simulation.mpi().record().unwrap();
    (record.messages(), record.waits())
}

/// Late partner and network of the waits of each rank.
fn blocked(waits: &[WaitRecord], rank: u32) -> (u64, u64) {
    let of_rank = waits.iter().filter(|wait| wait.rank == Rank(rank));
    of_rank.fold((0, 0), |(late, network), wait| {
        let part = wait.partner_at.clamp(wait.since, wait.end).0 - wait.since.0;
        (late + part, network + wait.end.0 - wait.since.0 - part)
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, ..ProptestConfig::default() })]

    #[test]
    fn a_record_adds_up_to_the_ranks_and_the_lanes(case in case()) {
        let simulation = run(&case, recorded(0, FAR.0));
        let (messages, waits) = kept(&simulation);
        for (rank, (_, sums)) in (0..).zip(simulation.mpi().records(JOB)) {
            prop_assert_eq!(blocked(&waits, rank), (sums.late_partner.0, sums.network.0), "rank {}", rank);
            let sent = messages.iter().filter(|message| message.from == Rank(rank));
            let (count, bytes) = sent.fold((0, 0), |sum, message| (sum.0 + 1, sum.1 + message.bytes.0));
            prop_assert_eq!((count, bytes), (sums.messages_sent, sums.bytes_sent));
        }
        let operations = simulation.mpi().record().unwrap().operations().unwrap().all();
        for (rank, (_, sums)) in (0..).zip(simulation.mpi().records(JOB)) {
            let own: Vec<_> = operations.iter().filter(|operation| operation.rank == Rank(rank)).collect();
            prop_assert!(own.iter().zip(0..).all(|(operation, number)| operation.number == number), "none is missing");
            prop_assert!(own.windows(2).all(|two| two[0].end.is_some_and(|end| end <= two[1].since)), "one at a time");
            let time = |computes: bool| -> u64 {
                let chosen = own.iter().filter(|operation| (operation_name(operation.call) == "compute") == computes);
                chosen.map(|operation| operation.end.unwrap().0 - operation.since.0).sum()
            };
            prop_assert_eq!((time(true), time(false)), (sums.compute.0, sums.communication().0), "rank {}", rank);
        }
        for message in &messages {
            let (posted, received) = (message.posted_at.unwrap(), message.received_at.unwrap());
            prop_assert!(posted <= received && message.sent_at <= received, "{:?}", message);
            prop_assert_eq!(message.acknowledged_at.is_none(), message.eager);
            prop_assert!(message.acknowledged_at.is_none_or(|at| at >= received));
        }
        for wait in &waits {
            let number = usize::try_from(wait.message.expect("every wait is for a message")).unwrap();
            let message = &messages[number];
            let (rank, at, partner) = if wait.receiver {
                (message.to, message.received_at, message.sent_at)
            } else {
                (message.from, message.acknowledged_at, message.posted_at.unwrap())
            };
            prop_assert_eq!((rank, at, partner), (wait.rank, Some(wait.end), wait.partner_at));
        }
        let network = simulation.network();
        let waited: u64 = network.departures().iter().map(|departure| departure.waited).sum();
        prop_assert_eq!(waited, lanes(&simulation, |_| true).0);
    }

    #[test]
    fn looking_closely_changes_nothing(case in case(), cut in (0..100_u64, 0..100_u64)) {
        let plain = run(&case, observe::Parameters { departures: true, ..Default::default() });
        let end = plain.network().departures().last().map_or(0, |departure| departure.time);
        let (from, to) = (end * cut.0.min(cut.1) / 100, end * cut.0.max(cut.1) / 100 + 1);
        let whole = run(&case, observe::Parameters { departures: true, ..recorded(0, FAR.0) });
        prop_assert_eq!(measured(&plain), measured(&whole));
        let part = run(&case, recorded(from, to));
        let within = |at: u64| (from..to).contains(&at);
        let departures = plain.network().departures().into_iter().filter(|departure| within(departure.time));
        prop_assert_eq!(part.network().departures(), departures.collect::<Vec<_>>());
        let ((all, waits), (some, some_waits)) = (kept(&whole), kept(&part));
        prop_assert_eq!(some_waits, waits.into_iter().filter(|wait| within(wait.end.0)).collect::<Vec<_>>());
        let ended = |message: &MessageRecord| message.acknowledged_at.or(message.received_at).unwrap().0;
        let seen = all.into_iter().filter(|message| message.sent_at.0 < to && ended(message) >= from);
        prop_assert_eq!(some, seen.collect::<Vec<_>>());
    }

    #[test]
    fn what_waits_behind_links_is_what_waits_at_switches(case in case()) {
        let simulation = run(&case, observe::Parameters { onward_waiting: true, ..Default::default() });
        let (at_switches, _) = lanes(&simulation, |from| matches!(from, Vertex::Switch(_)));
        let (_, behind) = lanes(&simulation, |_| true);
        prop_assert_eq!(at_switches, behind);
        let (_, behind_last) = into_hosts(&simulation);
        prop_assert_eq!(behind_last, 0, "nothing waits at a host that has come there");
    }
}

/// The waiting at the ports of these vertices, and behind their links.
fn lanes(simulation: &Simulation, of: impl Fn(Vertex) -> bool) -> (u64, u64) {
    sums(simulation, |from, _| of(from))
}

fn into_hosts(simulation: &Simulation) -> (u64, u64) {
    sums(simulation, |_, to| matches!(to, Vertex::Host(_)))
}

fn sums(simulation: &Simulation, of: impl Fn(Vertex, Vertex) -> bool) -> (u64, u64) {
    let network = simulation.network();
    let links = (0..).zip(network.graph().links()).filter(|(_, link)| of(link.from, link.to));
    let lanes = u8::try_from(network.lanes()).unwrap();
    let counters = links.flat_map(|(link, _)| (0..lanes).map(move |lane| (link, lane)));
    counters.fold((0, 0), |(waiting, behind), (link, lane)| {
        let counters = network.counters(LinkId(link), lane);
        (waiting + counters.waiting.0, behind + counters.onward_waiting.unwrap_or_default().0)
    })
}

#[test]
fn a_record_of_every_job_has_what_those_of_single_jobs_have() {
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let case = case().new_tree(&mut runner).unwrap().current();
    let messages = |job: Option<JobId>| {
        let record = Some(RecordOf { job, from: Picoseconds(0), to: Picoseconds(FAR.0), operations: true });
        let simulation = run(&case, observe::Parameters { record, ..Default::default() });
        let record = simulation.mpi().record().unwrap();
        let mut found: Vec<_> = record.messages().iter().map(|it| (it.job, it.from, it.sent_at, it.token)).collect();
        found.sort_unstable();
        (found, record.waits(), record.operations().unwrap().all())
    };
    let (mut all, mut waits, mut operations) = (Vec::new(), Vec::new(), Vec::new());
    for job in 0..u16::try_from(case.spec().jobs.len()).unwrap() {
        let of_job = messages(Some(JobId(job)));
        all.extend(of_job.0);
        waits.extend(of_job.1);
        operations.extend(of_job.2);
    }
    let together = messages(None);
    assert_eq!(together.0, all);
    assert_eq!(together.2, operations);
    let times = |waits: &[WaitRecord]| waits.iter().map(|it| (it.job, it.rank, it.since, it.end)).collect::<Vec<_>>();
    assert_eq!(times(&together.1), times(&waits));
}

#[test]
fn a_record_of_no_job_or_no_time_is_refused() {
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let case = case().new_tree(&mut runner).unwrap().current();
    let wrong = |job: u16, from: u64, to: u64| {
        let mut spec = case.spec();
        spec.observe.record =
            Some(RecordOf { job: Some(JobId(job)), from: Picoseconds(from), to: Picoseconds(to), operations: true });
        Simulation::new(spec, case.programs()).map(|_| ()).unwrap_err().to_string()
    };
    let errors: BTreeSet<_> = [wrong(2, 0, 1), wrong(0, 5, 5)].into();
    assert!(errors.iter().any(|error| error.starts_with("observe.record.job = 2: a job, 0 to 1")), "{errors:?}");
    assert!(errors.iter().any(|error| error.starts_with("observe.record.to = 5 ps: an instant after")), "{errors:?}");
}
