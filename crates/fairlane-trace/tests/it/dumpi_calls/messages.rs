//! Calls that send, receive, wait.

use fairlane_core::ids::Rank;
use fairlane_core::program::{Op, P2p, SendMode};
use fairlane_core::units::Bytes;

use super::{irecv, isend, recv, send, start, to};
use crate::dumpi_writer::Arg::{H, I, L, S};
use crate::dumpi_writer::{ANY, DOUBLE, INT, PROC_NULL, REQUEST_NULL, WORLD, Writer, operations, problem};

#[test]
fn blocking_calls() {
    let mut w = Writer::new();
    w.call(0, &to(10, 2, 5)).call(4, &to(10, 2, 6)).call(5, &to(10, 2, 7)).call(3, &to(10, 2, 8));
    w.call(1, &[I(10), H(INT), I(3), I(5), H(WORLD), S(&[(3, 5, false)])]);
    w.call(1, &[I(10), H(INT), I(3), I(5), H(WORLD)]);
    let expected = [
        send(2, 40, 5, SendMode::Standard),
        send(2, 40, 6, SendMode::Synchronous),
        send(2, 40, 7, SendMode::Standard),
        isend(2, 40, 8, 0),
        Op::P2p(P2p::RequestFree(0)),
        recv(3, 5),
        recv(3, 5),
    ];
    assert_eq!(operations(&mut w), expected);
}

#[test]
fn wildcards_follow_the_status_and_stay_without_one() {
    let mut w = Writer::new();
    let receive = |status: &'static [(i32, i32, bool)]| [I(1), H(INT), I(ANY), I(ANY), H(WORLD), S(status)];
    w.call(1, &receive(&[(2, 9, false)])).call(1, &receive(&[]));
    w.call(12, &start(1, ANY, 4, 20)).call(12, &start(1, 3, ANY, 21)).call(12, &start(1, ANY, 4, 22));
    w.call(18, &[I(2), L(&[20, 21]), S(&[(0, 4, false), (3, 77, false)])]);
    w.call(13, &[I(22), S(&[])]);
    w.call(23, &[I(ANY), I(ANY), H(WORLD), S(&[(0, 6, false)])]);
    let expected = [
        recv(2, 9),
        recv(None, None),
        irecv(0, 4, 0),
        irecv(3, 77, 1),
        irecv(None, 4, 2),
        Op::P2p(P2p::WaitAll([0, 1].into())),
        Op::P2p(P2p::Wait(2)),
        Op::P2p(P2p::Probe { from: Some(Rank(0)), tag: Some(6), comm: 0 }),
    ];
    assert_eq!(operations(&mut w), expected);
}

#[test]
fn polls_that_found_nothing_leave_no_trace() {
    let mut w = Writer::new();
    w.call(12, &start(1, 0, 1, 20)).call(12, &start(1, 2, 1, 21)).call(12, &start(1, 3, 1, 22));
    w.call(14, &[I(20), I(0), S(&[])]).call(19, &[I(2), L(&[20, 21]), I(0), S(&[])]);
    w.call(17, &[I(2), L(&[20, 21]), I(-32766), I(0), S(&[])]).call(21, &[I(1), L(&[20]), I(0), L(&[]), S(&[])]);
    w.call(22, &[I(ANY), I(ANY), H(WORLD), I(0), S(&[])]);
    w.call(17, &[I(2), L(&[20, 21]), I(1), I(1), S(&[(2, 1, false)])]);
    w.call(14, &[I(20), I(1), S(&[(0, 1, false)])]);
    w.call(19, &[I(3), L(&[REQUEST_NULL, 22, REQUEST_NULL]), I(1), S(&[])]);
    w.call(22, &[I(ANY), I(3), H(WORLD), I(1), S(&[(2, 3, false)])]);
    w.call(19, &[I(1), L(&[REQUEST_NULL]), I(1), S(&[])]).call(16, &[I(1), L(&[REQUEST_NULL]), I(-32766), S(&[])]);
    let expected = [
        irecv(0, 1, 0),
        irecv(2, 1, 1),
        irecv(3, 1, 2),
        Op::P2p(P2p::Wait(1)),
        Op::P2p(P2p::Wait(0)),
        Op::P2p(P2p::Wait(2)),
        Op::P2p(P2p::Probe { from: Some(Rank(2)), tag: Some(3), comm: 0 }),
    ];
    assert_eq!(operations(&mut w), expected);
}

#[test]
fn waits_on_some_wait_for_those_that_were_recorded() {
    let mut w = Writer::new();
    for request in 20..24 {
        w.call(8, &start(1, 2, request, request));
    }
    w.call(16, &[I(4), L(&[20, 21, 22, 23]), I(2), S(&[(0, 0, false)])]);
    w.call(20, &[I(4), L(&[20, 21, REQUEST_NULL, 23]), I(2), L(&[3, 0]), S(&[])]);
    w.call(8, &start(2, 2, 50, 22)).call(18, &[I(2), L(&[22, 21]), S(&[])]);
    let expected = [
        isend(2, 4, 20, 0),
        isend(2, 4, 21, 1),
        isend(2, 4, 22, 2),
        isend(2, 4, 23, 3),
        Op::P2p(P2p::Wait(2)),
        Op::P2p(P2p::WaitAll([3, 0].into())),
        isend(2, 8, 50, 0),
        Op::P2p(P2p::WaitAll([0, 1].into())),
    ];
    assert_eq!(operations(&mut w), expected);
}

#[test]
fn one_handle_may_stand_for_several_sends() {
    let mut w = Writer::new();
    w.call(8, &start(1, 2, 1, 20)).call(8, &start(1, 2, 2, 20)).call(8, &start(1, 2, 3, 20));
    w.call(18, &[I(2), L(&[20, 20]), S(&[])]).call(13, &[I(20), S(&[])]);
    let expected = [
        isend(2, 4, 1, 0),
        isend(2, 4, 2, 1),
        isend(2, 4, 3, 2),
        Op::P2p(P2p::WaitAll([0, 1].into())),
        Op::P2p(P2p::Wait(2)),
    ];
    assert_eq!(operations(&mut w), expected);
}

#[test]
fn persistent_requests() {
    let mut w = Writer::new();
    w.call(26, &start(3, 2, 1, 20)).call(30, &start(3, ANY, 1, 21));
    w.call(18, &[I(2), L(&[20, 21]), S(&[])]);
    for source in [0, 3] {
        w.call(32, &[I(2), L(&[20, 21])]);
        let statuses = [(0, 0, false), (source, 1, false)];
        w.call(18, &[I(2), L(&[20, 21]), S(&statuses)]);
    }
    w.call(31, &[I(20)]).call(15, &[I(20)]).call(15, &[I(21)]);
    let mut expected = vec![];
    for source in [0, 3] {
        expected.extend([isend(2, 12, 1, 0), irecv(source, 1, 1), Op::P2p(P2p::WaitAll([0, 1].into()))]);
    }
    expected.extend([isend(2, 12, 1, 0), Op::P2p(P2p::RequestFree(0))]);
    assert_eq!(operations(&mut w), expected);
    let mut wrong = Writer::new();
    assert!(problem(wrong.call(31, &[I(20)])).contains("record 2 (MPI_Start): request 20 is not a persistent request"));
}

#[test]
fn send_modes_of_requests() {
    let mut w = Writer::new();
    w.call(10, &start(1, 2, 1, 20)).call(11, &start(1, 2, 2, 21)).call(9, &start(1, 2, 3, 22));
    w.call(18, &[I(3), L(&[20, 21, 22]), S(&[])]);
    let synchronous =
        Op::P2p(P2p::Isend { to: Rank(2), bytes: Bytes(4), tag: 1, comm: 0, mode: SendMode::Synchronous, request: 0 });
    let expected = [
        synchronous,
        isend(2, 4, 2, 1),
        isend(2, 4, 3, 2),
        Op::P2p(P2p::RequestFree(2)),
        Op::P2p(P2p::WaitAll([0, 1].into())),
    ];
    assert_eq!(operations(&mut w), expected);
}

#[test]
fn cancelled_operations_are_left_out() {
    let mut w = Writer::new();
    w.call(12, &start(1, 0, 1, 20))
        .call(12, &start(1, 0, 2, 21))
        .call(12, &start(1, ANY, 3, 22))
        .call(8, &start(1, 2, 4, 23));
    for request in 20..24 {
        w.call(24, &[I(request)]);
    }
    w.call(13, &[I(20), S(&[(0, 1, true)])]).call(13, &[I(21), S(&[(0, 2, false)])]).call(15, &[I(22)]);
    w.call(13, &[I(23), S(&[(0, 0, true)])]);
    assert_eq!(operations(&mut w), [irecv(0, 2, 0), Op::P2p(P2p::Wait(0))]);
}

#[test]
fn nobody_is_no_partner() {
    let mut w = Writer::new();
    w.call(0, &to(10, PROC_NULL, 5)).call(8, &start(10, PROC_NULL, 5, 20)).call(12, &start(10, PROC_NULL, 5, 21));
    w.call(12, &start(10, ANY, 5, 22));
    w.call(18, &[I(3), L(&[20, 21, 22]), S(&[(0, 0, false), (-1, -1, false), (-1, -1, false)])]);
    w.call(33, &[I(1), H(INT), I(PROC_NULL), I(1), I(1), H(INT), I(0), I(2), H(WORLD), S(&[])]);
    w.call(33, &[I(1), H(INT), I(2), I(1), I(1), H(INT), I(PROC_NULL), I(2), H(WORLD), S(&[])]);
    assert_eq!(operations(&mut w), [recv(0, 2), isend(2, 4, 1, 0), Op::P2p(P2p::Wait(0))]);
}

#[test]
fn exchanges_send_and_receive_at_once() {
    let mut w = Writer::new();
    w.call(33, &[I(5), H(DOUBLE), I(2), I(1), I(1), H(INT), I(ANY), I(ANY), H(WORLD), S(&[(0, 8, false)])]);
    w.call(34, &[I(5), H(DOUBLE), I(2), I(1), I(0), I(2), H(WORLD), S(&[])]);
    let expected =
        [isend(2, 40, 1, 0), recv(0, 8), Op::P2p(P2p::Wait(0)), isend(2, 40, 1, 0), recv(0, 2), Op::P2p(P2p::Wait(0))];
    assert_eq!(operations(&mut w), expected);
}
