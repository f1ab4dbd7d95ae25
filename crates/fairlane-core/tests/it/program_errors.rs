//! Programs that go wrong end a run with an error that names the rank and its operation; rare ones that are right go on.

use std::sync::Arc;

use fairlane_core::error::RunError;
use fairlane_core::ids::Rank;
use fairlane_core::program::script::{Line, Script};
use fairlane_core::program::{COMM_WORLD, Collective, CollectiveKind, Comm, Op, P2p, Program, SendMode, Volume};
use fairlane_core::simulation::Simulation;
use fairlane_core::units::{Bytes, Picoseconds};

use super::case::{op, sparse};
use super::simulation_laws::FAR;

/// Two ranks on hosts 0 and 11, each with its own operations.
fn pair(first: Vec<Op>, second: Vec<Op>) -> Result<bool, RunError> {
    let case = sparse();
    let source = |ops: Vec<Op>| Script::new(ops.into_iter().map(Line::Op).collect()).unwrap().source();
    let mut programs = case.programs();
    programs[0] = Program { ranks: vec![source(first), source(second)] };
    Simulation::new(case.spec(), programs).unwrap().run_until(FAR, u64::MAX)
}

fn receive(from: u32, tag: i32) -> Op {
    Op::P2p(P2p::Recv { from: Some(Rank(from)), tag: Some(tag), comm: COMM_WORLD })
}

fn send(to: u32, tag: i32) -> Op {
    Op::P2p(P2p::Send { to: Rank(to), bytes: Bytes(10), tag, comm: COMM_WORLD, mode: SendMode::Standard })
}

fn collective(kind: CollectiveKind, root: u32) -> Op {
    Op::Collective(Collective::Blocking { kind, comm: COMM_WORLD, root: Rank(root), volume: Volume::Uniform(Bytes(8)) })
}

#[test]
fn a_receive_that_nothing_matches_ends_the_run_with_its_rank_and_operation() {
    let error = pair(vec![send(1, 5)], vec![receive(0, 6)]).unwrap_err();
    assert!(matches!(error, RunError::Stuck { .. }), "{error}");
    let words = error.to_string();
    assert!(words.contains("rank 1 in Recv(from 0, tag 6, communicator 0)"), "{words}");
    assert!(!words.contains("rank 0 in"), "the sender has finished: {words}");
}

#[test]
fn a_message_that_came_before_messages_were_numbered_holds_none_back() {
    // A send to itself has messages numbered from then on.
    let (from, tag, comm) = (Some(Rank(0)), Some(9), COMM_WORLD);
    let own = Op::P2p(P2p::Irecv { from, tag, comm, request: 1 });
    let first = vec![receive(1, 0), own, send(0, 9), Op::P2p(P2p::Wait(1)), send(1, 3), receive(1, 1)];
    let second = vec![send(0, 0), receive(0, 3), send(0, 1)];
    assert_eq!(pair(first, second), Ok(true));
}

#[test]
fn different_collectives_end_the_run_with_both_calls() {
    let kinds = [CollectiveKind::Barrier, CollectiveKind::Allreduce];
    let error = pair(vec![collective(kinds[0], 0)], vec![collective(kinds[1], 0)]).unwrap_err().to_string();
    assert!(error.contains("barrier") && error.contains("allreduce"), "{error}");
    let error = pair(vec![collective(CollectiveKind::Bcast, 0)], vec![collective(CollectiveKind::Bcast, 1)]);
    assert!(matches!(error, Err(RunError::CollectiveMismatch { .. })));
    let error = pair(vec![collective(CollectiveKind::Bcast, 0)], vec![]).unwrap_err().to_string();
    assert!(error.contains("rank 0 called bcast") && error.contains("only 1 of its ranks"), "{error}");
}

#[test]
fn misuse_is_named() {
    let unknown = pair(vec![Op::P2p(P2p::Wait(3))], vec![]).unwrap_err().to_string();
    assert!(unknown.contains("rank 0, operation Wait(request 3): no request 3"), "{unknown}");
    let outside = pair(vec![send(2, 0)], vec![]).unwrap_err().to_string();
    assert!(outside.contains("2 ranks, numbered from 0"), "{outside}");
    let freed = pair(vec![Op::Comm(Comm::Free(0))], vec![]).unwrap_err().to_string();
    assert!(freed.contains("predefined"), "{freed}");
    let twice =
        pair(vec![isend(3), Op::P2p(P2p::WaitAll([3, 3].into()))], vec![receive(0, 0)]).unwrap_err().to_string();
    assert!(twice.contains("request 3 is listed twice"), "{twice}");
    let huge =
        Op::P2p(P2p::Send { to: Rank(1), bytes: Bytes(1 << 50), tag: 0, comm: COMM_WORLD, mode: SendMode::Standard });
    let huge = pair(vec![huge], vec![]).unwrap_err().to_string();
    assert!(huge.contains("a message may have at most"), "{huge}");
    let beyond = pair(vec![Op::Compute(Picoseconds(1)), Op::Compute(Picoseconds(u64::MAX))], vec![]).unwrap_err();
    assert!(beyond.to_string().contains("beyond what the clock can tell"), "{beyond}");
    let taken = pair(vec![Op::Comm(Comm::Dup { comm: 1, new: 0 })], vec![]).unwrap_err().to_string();
    assert!(taken.contains("communicator 0 is in use"), "{taken}");
    let dup = Op::Comm(Comm::Dup { comm: COMM_WORLD, new: 5 });
    let four = Op::Collective(Collective::Blocking {
        kind: CollectiveKind::Allreduce,
        comm: COMM_WORLD,
        root: Rank(0),
        volume: Volume::Uniform(Bytes(4)),
    });
    assert!(matches!(pair(vec![dup], vec![four]), Err(RunError::CollectiveMismatch { .. })));
}

fn isend(request: u32) -> Op {
    Op::P2p(P2p::Isend { to: Rank(1), bytes: Bytes(10), tag: 0, comm: COMM_WORLD, mode: SendMode::Standard, request })
}

#[test]
fn a_rank_that_never_lets_time_pass_is_an_error() {
    let mut simulation = spinning();
    let error = simulation.run_until(FAR, u64::MAX).unwrap_err();
    assert!(error.to_string().contains("without any time passing"), "{error}");
    assert_eq!(simulation.run_until(FAR, u64::MAX), Err(error), "the run has ended");
}

#[test]
fn iterations_that_take_no_time_end_the_run_soon() {
    let case = sparse();
    let lines = vec![Line::Repeat(None), op(Op::Compute(Picoseconds::ZERO)), op(Op::MarkProgress), Line::End];
    let mut programs = case.programs();
    programs[0].ranks[0] = Script::new(lines).unwrap().source();
    let error = Simulation::new(case.spec(), programs).unwrap().run_until(FAR, u64::MAX).unwrap_err();
    assert!(error.to_string().contains("100000 iterations without any time passing"), "{error}");
}

/// A rank that waits for nothing, for ever.
fn spinning() -> Simulation {
    let case = sparse();
    let lines = vec![Line::Repeat(None), op(Op::P2p(P2p::WaitAll([].into()))), Line::End];
    let mut programs = case.programs();
    programs[0].ranks[0] = Script::new(lines).unwrap().source();
    Simulation::new(case.spec(), programs).unwrap()
}

#[test]
fn empty_packets_do_not_overtake_each_other() {
    let case = sparse();
    let mut spec = case.spec();
    spec.network.header = Bytes(0);
    spec.network.mtu = Bytes(4096);
    let (comm, mode) = (COMM_WORLD, SendMode::Standard);
    let isend =
        |bytes, tag, request| op(Op::P2p(P2p::Isend { to: Rank(1), bytes: Bytes(bytes), tag, comm, mode, request }));
    let first = vec![isend(4096, 1, 1), isend(0, 2, 2), isend(0, 3, 3)];
    let any = op(Op::P2p(P2p::Recv { from: None, tag: None, comm }));
    let second = vec![op(receive(0, 1)), any, op(receive(0, 3))];
    let mut programs = case.programs();
    programs[0] = Program { ranks: [first, second].map(|lines| Script::new(lines).unwrap().source()).into() };
    let mut simulation = Simulation::new(spec, programs).unwrap();
    assert_eq!(simulation.run_until(FAR, u64::MAX), Ok(true));
}

#[test]
fn a_finished_request_is_null_in_later_waits() {
    let irecv = |request| Op::P2p(P2p::Irecv { from: Some(Rank(0)), tag: None, comm: COMM_WORLD, request });
    let all: Arc<[u32]> = [0, 2000, 2].into();
    let any = || Op::P2p(P2p::WaitAny(all.clone()));
    let receiver = vec![
        irecv(0),
        irecv(2000),
        irecv(2),
        any(),
        any(),
        any(),
        any(),
        Op::P2p(P2p::WaitAll(all.clone())),
        irecv(2000),
    ];
    let again = [Op::P2p(P2p::Wait(2000))];
    let sender = vec![send(1, 0), send(1, 0), send(1, 0), send(1, 0)];
    assert_eq!(pair(sender, receiver.into_iter().chain(again).collect()), Ok(true));
}
