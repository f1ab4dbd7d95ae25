//! Tables of results: their columns, how they add up, and the digest of them.

use std::collections::{BTreeMap, BTreeSet};

use fairlane_core::columns::{Columns, Unit, Values};
use fairlane_core::ids::{HostId, JobId, Rank};
use fairlane_core::observe::RecordOf;
use fairlane_core::program::script::{Line, Script};
use fairlane_core::program::{COMM_WORLD, Op, P2p, Program, SendMode};
use fairlane_core::registry::Registry;
use fairlane_core::results::TABLES;
use fairlane_core::simulation::{Named, Simulation};
use fairlane_core::units::{Bytes, Instant, Picoseconds};
use proptest::prelude::*;

use super::case::{Case, busy, case};
use super::simulation_laws::FAR;

/// A column of whole numbers.
fn numbers(table: &Columns, name: &str) -> Vec<u64> {
    match table.values(name) {
        Some(Values::U8(values)) => values.iter().map(|value| u64::from(*value)).collect(),
        Some(Values::U32(values)) => values.iter().map(|value| u64::from(*value)).collect(),
        Some(Values::U64(values)) => values.clone(),
        other => panic!("column {name}: {other:?}"),
    }
}

fn names(table: &Columns, name: &str) -> Vec<String> {
    let Some(Values::Text(values)) = table.values(name) else { panic!("no names {name}") };
    values.iter().map(|value| value.clone().into_owned()).collect()
}

/// The sums of a column by the values of others.
fn sums<K: Ord>(keys: impl IntoIterator<Item = K>, values: Vec<u64>) -> BTreeMap<K, u64> {
    let mut sums = BTreeMap::new();
    keys.into_iter()
        .zip(values)
        .filter(|(_, value)| *value > 0)
        .for_each(|(key, value)| *sums.entry(key).or_default() += value);
    sums
}

/// A simulation that keeps everything.
fn observed(case: &Case) -> Simulation {
    let mut spec = case.spec();
    spec.observe.interference_by_port = spec.observe.counters;
    spec.observe.onward_waiting = true;
    spec.observe.record =
        Some(RecordOf { job: Some(JobId(0)), from: Picoseconds(0), to: Picoseconds(FAR.0), operations: true });
    spec.jobs.iter_mut().for_each(|job| job.marks = true);
    Simulation::new(spec, case.programs()).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn tables_add_up(case in case()) {
        let mut simulation = observed(&case);
        simulation.run_until(FAR, u64::MAX).unwrap();
        let table = |name: &str| simulation.table(name).unwrap();
        let totals = simulation.network().totals();

        let (ranks, calls, marks) = (table("ranks"), table("calls"), table("marks"));
        let by_job = |table: &Columns, column: &str| sums(numbers(table, "job"), numbers(table, column));
        prop_assert_eq!(by_job(&ranks, "communication"), by_job(&calls, "time"));
        prop_assert_eq!(marks.rows() as u64, numbers(&ranks, "iterations").iter().sum::<u64>());
        let last = marks.rows().checked_sub(1).map(|_| *numbers(&marks, "time").iter().max().unwrap());
        prop_assert_eq!(numbers(&ranks, "last_mark").iter().max().copied(), last);
        prop_assert_eq!(numbers(&table("job_marks"), "time").iter().max().copied(), last);
        prop_assert!(numbers(&table("under_way"), "communication").iter().all(|span| *span == 0), "all is over");

        let departures = table("departures");
        prop_assert_eq!(departures.rows() as u64, totals.packet_hops);
        let lanes = |table: &Columns| numbers(table, "link").into_iter().zip(numbers(table, "lane")).collect::<Vec<_>>();
        let ports = table("ports");
        if case.counts() {
            let bytes = |table: &Columns| sums(lanes(table), numbers(table, "bytes"));
            prop_assert_eq!(bytes(&ports), bytes(&departures));
            let pairs = |table: &Columns| numbers(table, "delayed").into_iter().zip(numbers(table, "delaying")).collect::<Vec<_>>();
            let (whole, by_port) = (table("interference"), table("port_interference"));
            prop_assert_eq!(sums(pairs(&whole), numbers(&whole, "waiting")), sums(pairs(&by_port), numbers(&by_port, "waiting")));
        }

        let (latency, buckets) = (table("latency"), table("latency_histogram"));
        let keys = |table: &Columns| -> Vec<_> {
            names(table, "of").into_iter().zip(numbers(table, "job")).zip(names(table, "kind")).collect()
        };
        prop_assert_eq!(sums(keys(&latency), numbers(&latency, "count")), sums(keys(&buckets), numbers(&buckets, "count")));
        let sent = numbers(&ranks, "job").into_iter().zip(numbers(&ranks, "messages_sent")).filter(|(job, _)| *job == 0);
        prop_assert_eq!(table("messages").rows() as u64, sent.map(|(_, sent)| sent).sum::<u64>());
        let blocked = |column| numbers(&ranks, "job").into_iter().zip(numbers(&ranks, column)).filter(|(job, _)| *job == 0).map(|(_, span)| span).sum::<u64>();
        let waits = table("waits");
        let spans: u64 = numbers(&waits, "end").iter().zip(numbers(&waits, "since")).map(|(end, since)| end - since).sum();
        prop_assert_eq!(spans, blocked("late_partner") + blocked("network"));
    }
}

#[test]
fn every_table_has_a_name_of_its_own_and_columns_with_units() {
    let simulation = observed(&busy());
    let all: BTreeSet<&str> = TABLES.iter().map(|table| table.name).collect();
    assert_eq!(all.len(), TABLES.len());
    for table in TABLES {
        let columns = simulation.table(table.name).unwrap();
        let names: BTreeSet<&str> = columns.iter().map(|column| column.name).collect();
        assert!(names.len() > 2 && names.len() == columns.iter().len(), "{}: {names:?}", table.name);
        for column in columns.iter() {
            assert_eq!(column.values.len(), columns.rows(), "{}.{}", table.name, column.name);
            let is_text = matches!(column.values, Values::Text(_));
            assert_eq!(column.unit == Unit::Name, is_text, "{}.{}", table.name, column.name);
        }
    }
    let error = simulation.table("rank").unwrap_err().to_string();
    assert!(error.starts_with("unknown table of results \"rank\"; allowed: ranks, calls,"), "{error}");
    assert!(error.ends_with("did you mean \"ranks\"?"), "{error}");
}

#[test]
fn the_digest_follows_what_is_measured_and_nothing_else() {
    let case = busy();
    let (mut plain, mut watched) = (Simulation::new(case.spec(), case.programs()).unwrap(), observed(&case));
    let start = plain.digest();
    assert_eq!(start, Simulation::new(case.spec(), case.programs()).unwrap().digest());
    assert!(start.len() == 64 && start.chars().all(|digit| digit.is_ascii_hexdigit()), "{start}");
    // The instant enters it as long as something is left to happen.
    plain.run_until(Instant(1), u64::MAX).unwrap();
    let early = plain.digest();
    assert_ne!(early, start);
    plain.run_until(FAR, u64::MAX).unwrap();
    let end = plain.digest();
    plain.run_until(Instant(FAR.0 + 1), u64::MAX).unwrap();
    assert!(end != early && plain.digest() == end);
    // Records of single packets do not enter it, the queueing delay behind links is a column of ports.
    watched.run_until(FAR, u64::MAX).unwrap();
    assert_ne!(watched.digest(), end);
    let mut spec = case.spec();
    spec.observe.departures = true;
    spec.jobs[0].marks = true;
    let mut logged = Simulation::new(spec, case.programs()).unwrap();
    logged.run_until(FAR, u64::MAX).unwrap();
    assert!(logged.table("departures").unwrap().rows() > 0 && logged.digest() == end);
}

/// A digest that changes without a change of the model is a defect: the model is exact, and the same on every platform.
#[test]
fn the_digest_of_a_run_is_known() {
    let case = busy();
    let mut simulation = Simulation::new(case.spec(), case.programs()).unwrap();
    simulation.run_until(FAR, u64::MAX).unwrap();
    assert_eq!(simulation.digest(), "1160acafec271432aac82ae9abdd58fce733bca9fe36468ee07809ccd93094a5");
}

/// The first of two ranks sends messages to the other.
fn stream(messages: usize) -> Program {
    let message =
        Op::P2p(P2p::Send { to: Rank(1), bytes: Bytes(4000), tag: 0, comm: COMM_WORLD, mode: SendMode::Standard });
    let receive = Op::P2p(P2p::Recv { from: Some(Rank(0)), tag: Some(0), comm: COMM_WORLD });
    let source = |op: Op| Script::new(vec![Line::Op(op); messages]).unwrap().source();
    Program { ranks: vec![source(message), source(receive)] }
}

#[test]
fn another_arbiter_before_the_start_is_as_if_it_had_been_there() {
    let (strict, rounds) = (Named::new("strict_priority"), Named::new("weighted_round_robin"));
    // Two jobs on lanes of their own send to one host.
    let run = |first: &Named, then: &Named| {
        let mut spec = busy().spec();
        spec.qos.arbiter = first.clone();
        spec.qos.sl2vl = vec![0, 1];
        for (number, job) in (0..).zip(&mut spec.jobs) {
            (job.hosts, job.service_level) = (vec![HostId(number), HostId(2)], Some(number as u8));
            job.ranks.clear();
        }
        let programs = (0..spec.jobs.len()).map(|_| stream(20)).collect();
        let mut simulation = Simulation::new(spec, programs).unwrap();
        simulation.set_arbiter(then).unwrap();
        simulation.run_until(FAR, u64::MAX).unwrap();
        simulation.digest()
    };
    assert_eq!(run(&rounds, &strict), run(&strict, &strict));
    assert_eq!(run(&strict, &rounds), run(&rounds, &rounds));
    assert_ne!(run(&strict, &strict), run(&rounds, &rounds), "it makes a difference here");
}

#[test]
fn a_packet_that_a_computing_rank_has_not_noticed_is_in_the_latencies() {
    let mut spec = busy().spec();
    spec.jobs.truncate(1);
    spec.jobs[0].hosts = vec![HostId(0), HostId(1)];
    spec.jobs[0].ranks.clear();
    spec.observe.counters = true;
    let message =
        Op::P2p(P2p::Send { to: Rank(1), bytes: Bytes(1), tag: 0, comm: COMM_WORLD, mode: SendMode::Standard });
    let receive = Op::P2p(P2p::Recv { from: Some(Rank(0)), tag: Some(0), comm: COMM_WORLD });
    let compute = Op::Compute(Picoseconds(1_000_000_000));
    let scripts = [vec![message], vec![compute, receive]];
    let source = |ops: Vec<Op>| Script::new(ops.into_iter().map(Line::Op).collect()).unwrap().source();
    let program = Program { ranks: scripts.into_iter().map(source).collect() };
    let mut simulation = Simulation::new(spec, vec![program]).unwrap();
    simulation.run_until(Instant(500_000_000), u64::MAX).unwrap();
    let latency = simulation.table("latency").unwrap();
    let counts: Vec<_> = names(&latency, "of").into_iter().zip(numbers(&latency, "count")).collect();
    assert_eq!(counts, [("message".to_owned(), 1), ("packet".to_owned(), 1)]);
}

#[test]
fn every_entry_of_every_table_describes_itself() {
    let described = Registry::default().describe();
    for (kind, entries) in described.as_object().unwrap() {
        let entries = entries.as_array().unwrap_or_else(|| panic!("{kind} is no list"));
        assert!(!entries.is_empty(), "{kind}");
        for entry in entries {
            for key in ["name", "summary"] {
                assert!(entry[key].as_str().is_some_and(|text| !text.is_empty()), "{kind}: {key} of {entry}");
            }
        }
    }
}
