//! Every kind of call in hand-made DUMPI files.

use fairlane_core::ids::Rank;
use fairlane_core::program::{CollectiveKind, Op, SendMode, Volume};
use fairlane_core::units::{Bytes, Picoseconds};
use fairlane_trace::{Iteration, Options, describe};
use tempfile::TempDir;

use crate::archives::drain;
use crate::dumpi_writer::Arg::{self, B, D, H, I, L, S, T};
use crate::dumpi_writer::{
    ANY, COMM_SELF, Clocks, DOUBLE, INT, PROC_NULL, REQUEST_NULL, WORLD, Writer, open_copies, operations,
    operations_of, problem, write,
};

fn to(count: i32, peer: i32, tag: i32) -> [Arg<'static>; 5] {
    [I(count), H(INT), I(peer), I(tag), H(WORLD)]
}

fn start(count: i32, peer: i32, tag: i32, request: i32) -> [Arg<'static>; 6] {
    [I(count), H(INT), I(peer), I(tag), H(WORLD), I(request)]
}

fn send(peer: u32, bytes: u64, tag: i32, mode: SendMode) -> Op {
    Op::Send { to: Rank(peer), bytes: Bytes(bytes), tag, comm: 0, mode }
}

fn isend(peer: u32, bytes: u64, tag: i32, request: u32) -> Op {
    Op::Isend { to: Rank(peer), bytes: Bytes(bytes), tag, comm: 0, mode: SendMode::Standard, request }
}

fn recv(from: impl Into<Option<u32>>, tag: impl Into<Option<i32>>) -> Op {
    Op::Recv { from: from.into().map(Rank), tag: tag.into(), comm: 0 }
}

fn irecv(from: impl Into<Option<u32>>, tag: impl Into<Option<i32>>, request: u32) -> Op {
    Op::Irecv { from: from.into().map(Rank), tag: tag.into(), comm: 0, request }
}

fn collective(kind: CollectiveKind, root: u32, volume: Volume) -> Op {
    Op::Collective { kind, comm: 0, root: Rank(root), volume }
}

fn same(bytes: u64) -> Volume {
    Volume::Uniform(Bytes(bytes))
}

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
        Op::RequestFree(0),
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
        Op::WaitAll([0, 1].into()),
        Op::Wait(2),
        Op::Probe { from: Some(Rank(0)), tag: Some(6), comm: 0 },
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
        Op::Wait(1),
        Op::Wait(0),
        Op::Wait(2),
        Op::Probe { from: Some(Rank(2)), tag: Some(3), comm: 0 },
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
        Op::Wait(2),
        Op::WaitAll([3, 0].into()),
        isend(2, 8, 50, 0),
        Op::WaitAll([0, 1].into()),
    ];
    assert_eq!(operations(&mut w), expected);
}

#[test]
fn one_handle_may_stand_for_several_sends() {
    let mut w = Writer::new();
    w.call(8, &start(1, 2, 1, 20)).call(8, &start(1, 2, 2, 20)).call(8, &start(1, 2, 3, 20));
    w.call(18, &[I(2), L(&[20, 20]), S(&[])]).call(13, &[I(20), S(&[])]);
    let expected = [isend(2, 4, 1, 0), isend(2, 4, 2, 1), isend(2, 4, 3, 2), Op::WaitAll([0, 1].into()), Op::Wait(2)];
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
        expected.extend([isend(2, 12, 1, 0), irecv(source, 1, 1), Op::WaitAll([0, 1].into())]);
    }
    expected.extend([isend(2, 12, 1, 0), Op::RequestFree(0)]);
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
        Op::Isend { to: Rank(2), bytes: Bytes(4), tag: 1, comm: 0, mode: SendMode::Synchronous, request: 0 };
    let expected = [synchronous, isend(2, 4, 2, 1), isend(2, 4, 3, 2), Op::RequestFree(2), Op::WaitAll([0, 1].into())];
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
    assert_eq!(operations(&mut w), [irecv(0, 2, 0), Op::Wait(0)]);
}

#[test]
fn nobody_is_no_partner() {
    let mut w = Writer::new();
    w.call(0, &to(10, PROC_NULL, 5)).call(8, &start(10, PROC_NULL, 5, 20)).call(12, &start(10, PROC_NULL, 5, 21));
    w.call(12, &start(10, ANY, 5, 22));
    w.call(18, &[I(3), L(&[20, 21, 22]), S(&[(0, 0, false), (-1, -1, false), (-1, -1, false)])]);
    w.call(33, &[I(1), H(INT), I(PROC_NULL), I(1), I(1), H(INT), I(0), I(2), H(WORLD), S(&[])]);
    w.call(33, &[I(1), H(INT), I(2), I(1), I(1), H(INT), I(PROC_NULL), I(2), H(WORLD), S(&[])]);
    assert_eq!(operations(&mut w), [recv(0, 2), isend(2, 4, 1, 0), Op::Wait(0)]);
}

#[test]
fn exchanges_send_and_receive_at_once() {
    let mut w = Writer::new();
    w.call(33, &[I(5), H(DOUBLE), I(2), I(1), I(1), H(INT), I(ANY), I(ANY), H(WORLD), S(&[(0, 8, false)])]);
    w.call(34, &[I(5), H(DOUBLE), I(2), I(1), I(0), I(2), H(WORLD), S(&[])]);
    let expected = [isend(2, 40, 1, 0), recv(0, 8), Op::Wait(0), isend(2, 40, 1, 0), recv(0, 2), Op::Wait(0)];
    assert_eq!(operations(&mut w), expected);
}

#[test]
fn collectives_hand_in_what_was_recorded() {
    use CollectiveKind::{Allgather, Allreduce, Alltoall, Barrier, Bcast, Reduce, ReduceScatter, Scan};
    let (op, none) = (B(3), H(0));
    let mut w = Writer::new();
    w.call(52, &[H(WORLD)]).call(53, &[I(3), H(INT), I(2), H(WORLD)]).call(62, &[I(3), H(DOUBLE), op, I(3), H(WORLD)]);
    w.call(65, &[I(3), H(DOUBLE), op, H(WORLD)])
        .call(67, &[I(1), H(INT), op, H(WORLD)])
        .call(156, &[I(2), H(INT), op, H(WORLD)]);
    w.call(58, &[I(2), H(DOUBLE), I(4), H(INT), H(WORLD)]).call(58, &[I(0), none, I(4), H(INT), H(WORLD)]);
    w.call(59, &[I(4), I(2), H(INT), L(&[1, 2, 3, 4]), L(&[0, 1, 3, 6]), H(INT), H(WORLD)]);
    w.call(60, &[I(2), H(INT), I(2), H(INT), H(WORLD)]).call(60, &[I(0), none, I(2), H(INT), H(WORLD)]);
    let counts = [L(&[1, 0, 2, 0]), L(&[0; 4]), H(INT), L(&[5, 6, 7, 8]), L(&[0; 4]), H(INT), H(WORLD)];
    w.call(61, &[&[I(4)][..], &counts].concat());
    let types =
        [L(&[1, 1, 1, 1]), L(&[0; 4]), D(&[INT, DOUBLE, INT, DOUBLE]), L(&[1; 4]), L(&[0; 4]), D(&[INT; 4]), H(WORLD)];
    w.call(155, &[&[I(4)][..], &types].concat());
    w.call(66, &[I(4), L(&[1, 2, 3, 4]), H(DOUBLE), op, H(WORLD)]);
    let each = |bytes: [u64; 4]| Volume::PerRank(bytes.into());
    let expected = [
        collective(Barrier, 0, same(0)),
        collective(Bcast, 2, same(12)),
        collective(Reduce, 3, same(24)),
        collective(Allreduce, 0, same(24)),
        collective(Scan, 0, same(4)),
        collective(Scan, 0, same(8)),
        collective(Allgather, 0, same(16)),
        collective(Allgather, 0, same(16)),
        collective(Allgather, 0, each([4, 8, 12, 16])),
        collective(Alltoall, 0, same(8)),
        collective(Alltoall, 0, same(8)),
        collective(Alltoall, 0, each([4, 0, 8, 0])),
        collective(Alltoall, 0, each([4, 8, 4, 8])),
        collective(ReduceScatter, 0, each([8, 16, 24, 32])),
    ];
    assert_eq!(operations(&mut w), expected);
}

#[test]
fn rooted_collectives_say_more_at_the_root() {
    use CollectiveKind::{Gather, Scatter};
    let int = H(INT);
    let mut root = Writer::new();
    root.call(54, &[I(1), I(2), int, I(1), H(WORLD), I(2), int]);
    root.call(55, &[I(1), I(4), I(2), int, I(1), H(WORLD), L(&[1, 2, 3, 4]), L(&[0; 4]), int]);
    root.call(56, &[I(1), I(2), int, I(1), H(WORLD), I(2), int]);
    root.call(57, &[I(1), I(4), int, I(2), int, I(1), H(WORLD), L(&[1, 2, 3, 4]), L(&[0; 4])]);
    let each = Volume::PerRank([4, 8, 12, 16].into());
    let expected = |uniform: u64, each: Volume| {
        [(Gather, same(uniform)), (Gather, each.clone()), (Scatter, same(uniform)), (Scatter, each)]
            .map(|(kind, volume)| collective(kind, 1, volume))
    };
    assert_eq!(operations(&mut root), expected(8, each));
    let mut other = Writer::new();
    other.call(54, &[I(0), I(2), int, I(1), H(WORLD)]).call(55, &[I(0), I(4), I(2), int, I(1), H(WORLD), int]);
    other.call(56, &[I(0), I(2), int, I(1), H(WORLD)]).call(57, &[I(0), I(4), int, I(2), int, I(1), H(WORLD)]);
    assert_eq!(operations_of(&mut other, 0, 4).unwrap(), expected(8, Volume::PerRank([8].into())));
}

#[test]
fn communicators_and_groups() {
    let members = |list: &[u32]| list.iter().map(|&rank| Rank(rank)).collect();
    let mut w = Writer::new();
    w.call(84, &[H(WORLD), H(4)]).call(72, &[H(4), H(3)]);
    w.call(76, &[H(3), I(3), L(&[3, 1, 0]), H(4)]).call(85, &[H(WORLD), H(4), H(5)]);
    w.call(77, &[H(4), I(1), L(&[0]), H(5)]).call(85, &[H(5), H(5), H(6)]);
    w.call(78, &[H(3), I(1), I(1), L(&[3, 1, -2]), H(6)]).call(79, &[H(3), I(1), I(1), L(&[0, 1, 1]), H(7)]);
    w.call(73, &[H(6), H(4), H(8)]).call(74, &[H(6), H(4), H(9)]).call(75, &[H(8), H(9), H(10)]);
    for group in [6, 7, 8, 9, 10] {
        w.call(85, &[H(4), H(group), H(1)]);
    }
    w.call(86, &[H(WORLD), I(1), I(-3), H(7)]).call(86, &[H(WORLD), I(-32766), I(0), H(1)]);
    w.call(87, &[H(4)])
        .call(84, &[H(7), H(4)])
        .call(87, &[H(7)])
        .call(80, &[H(3)])
        .call(53, &[I(1), H(INT), I(0), H(4)]);
    let create = |comm, new, list: &[u32]| Op::CommCreate { comm, new, members: members(list) };
    let expected = [
        Op::CommDup { comm: 0, new: 2 },
        create(0, 3, &[3, 1, 0]),
        create(3, 4, &[1, 2]),
        create(2, 5, &[3, 1]),
        create(2, 5, &[2, 3]),
        create(2, 5, &[3, 1, 0]),
        create(2, 5, &[3, 1]),
        create(2, 5, &[0]),
        Op::CommSplit { comm: 0, new: 5, color: Some(1), key: -3 },
        Op::CommSplit { comm: 0, new: 6, color: None, key: 0 },
        Op::CommFree(2),
        Op::CommDup { comm: 5, new: 2 },
        Op::CommFree(5),
        Op::Collective { kind: CollectiveKind::Bcast, comm: 2, root: Rank(0), volume: same(4) },
        // What is still open at the end of the trace.
        Op::CommFree(2),
        Op::CommFree(3),
        Op::CommFree(4),
    ];
    assert_eq!(operations(&mut w), expected);
}

#[test]
fn groups_of_split_communicators_know_what_they_can() {
    let mut w = Writer::new();
    w.call(86, &[H(WORLD), I(0), I(0), H(7)]).call(72, &[H(7), H(3)]).call(76, &[H(3), I(2), L(&[1, 0]), H(4)]);
    w.call(85, &[H(7), H(4), H(8)]);
    let members = [Rank(1), Rank(0)].into();
    assert_eq!(operations(&mut w)[1], Op::CommCreate { comm: 2, new: 3, members });
    assert!(problem(w.call(77, &[H(3), I(1), L(&[0]), H(5)])).contains("MPI_Comm_split"));
    let mut w = Writer::new();
    w.call(86, &[H(WORLD), I(0), I(0), H(7)]).call(81, &[H(7), I(4)]).call(72, &[H(7), H(3)]);
    w.call(77, &[H(3), I(1), L(&[0]), H(4)]).call(85, &[H(7), H(4), H(8)]);
    let members = [Rank(1), Rank(2), Rank(3)].into();
    assert_eq!(operations(&mut w)[1], Op::CommCreate { comm: 2, new: 3, members });
    assert!(problem(w.call(85, &[H(WORLD), H(4), H(9)])).contains("made apart"));
}

#[test]
fn cartesian_topologies() {
    let mut w = Writer::new();
    w.call(99, &[H(WORLD), I(2), L(&[3, 2]), L(&[0, 0]), I(0), H(4)]);
    w.call(111, &[I(2), H(4), L(&[0, 1]), H(5)]).call(111, &[I(2), H(4), L(&[1, 0]), H(6)]);
    w.call(111, &[I(1), H(6), L(&[0]), H(7)]);
    w.call(101, &[I(2), H(WORLD), I(2), L(&[1, 2]), L(&[1, 0]), I(0), H(1)]);
    // Rank 5 of 7: row 2, column 1.
    let expected = [
        Op::CommCreate { comm: 0, new: 2, members: (0..6).map(Rank).collect() },
        Op::CommSplit { comm: 2, new: 3, color: Some(2), key: 1 },
        Op::CommSplit { comm: 2, new: 4, color: Some(1), key: 2 },
        Op::CommSplit { comm: 4, new: 5, color: Some(2), key: 0 },
        Op::CommCreate { comm: 0, new: 6, members: (0..2).map(Rank).collect() },
    ];
    assert_eq!(operations_of(&mut w, 5, 7).unwrap()[..5], expected);
}

#[test]
fn bookkeeping_yields_nothing() {
    let mut w = Writer::new();
    w.call(2, &[S(&[(1, 2, false)]), H(INT), I(3)]).call(43, &[H(INT), I(4)]).call(82, &[H(WORLD), I(1)]);
    w.call(100, &[I(4), I(2), L(&[0, 0]), L(&[2, 2])]).call(114, &[T("host"), I(4)]).call(122, &[]).call(126, &[I(1)]);
    w.call(105, &[I(2), H(WORLD), I(2), L(&[2, 2]), L(&[0, 0]), L(&[0, 1])]).call(195, &[I(8), H(0)]);
    w.call(49, &[I(1), H(INT), I(8), I(0), I(4), H(WORLD)]).call(110, &[H(WORLD), I(0), I(1), I(-2), I(1)]);
    w.call(213, &[H(2), T("key"), T("value")]).call(63, &[I(1), B(15)]).call(196, &[H(2)]).call(202, &[I(0)]);
    w.call(216, &[I(20), I(0), S(&[])])
        .call(70, &[H(2), I(0), L(&[]), H(2), L(&[])])
        .call(25, &[S(&[(0, 0, true)]), I(1)]);
    w.call(52, &[H(COMM_SELF)]);
    assert_eq!(operations(&mut w).len(), 1);
}

#[test]
fn old_versions_have_other_shapes() {
    let mut w = Writer::with_version([0, 6, 1]);
    w.call(1, &[I(1), H(INT), I(ANY), I(ANY), H(WORLD), S(&[(2, 0, false)])]);
    w.call(40, &[I(2), L(&[1, 2]), I(0), D(&[INT, DOUBLE]), H(28)]);
    w.call(105, &[I(2), H(WORLD), I(2), L(&[2, 2]), L(&[0, 0]), I(0)]);
    w.call(0, &[I(1), H(28), I(2), I(5), H(WORLD)]);
    assert_eq!(operations(&mut w), [recv(2, None), send(2, 20, 5, SendMode::Standard)]);
}

#[test]
fn sizes_of_datatypes() {
    let mut w = Writer::new();
    w.sizes = vec![0; 31];
    (w.sizes[9], w.sizes[28], w.sizes[29]) = (4, 24, 8);
    let send_one = |w: &mut Writer, datatype: u16| {
        w.call(0, &[I(2), H(datatype), I(2), I(1), H(WORLD)]);
    };
    // Fortran's datatypes are in the list only; C's long long may be missing there.
    [28, 16, 30].into_iter().for_each(|datatype| send_one(&mut w, datatype));
    // The same number, built, freed and built again.
    w.call(35, &[I(3), H(INT), H(29)]);
    send_one(&mut w, 29);
    w.call(47, &[H(29)]).call(36, &[I(2), I(5), I(9), H(DOUBLE), H(29)]);
    send_one(&mut w, 29);
    w.call(47, &[H(29)]).call(38, &[I(2), L(&[1, 6]), L(&[0, 9]), H(INT), H(29)]);
    send_one(&mut w, 29);
    w.call(223, &[I(2), L(&[9, 9]), L(&[3, 2]), L(&[0, 0]), B(1), H(INT), H(29)]);
    send_one(&mut w, 29);
    w.call(222, &[I(2), L(&[1, 2]), L(&[0, 8]), D(&[INT, DOUBLE]), H(29)]).call(178, &[H(29), H(30)]);
    send_one(&mut w, 30);
    let expected = [48, 16, 0, 24, 160, 56, 48, 40].map(|bytes| send(2, bytes, 1, SendMode::Standard));
    assert_eq!(operations(&mut w), expected);
    assert!(problem(w.call(0, &[I(1), H(77), I(2), I(1), H(WORLD)])).contains("datatype 77"));
}

#[test]
fn what_is_not_supported_is_named() {
    let unsupported = [
        (142, "MPI_Get", "one-sided"),
        (146, "MPI_Win_fence", "one-sided"),
        (91, "MPI_Intercomm_create", "between groups"),
        (135, "MPI_Comm_spawn", "between groups"),
        (230, "MPI_File_open", "MPI-IO"),
        (283, "MPIO_Wait", "MPI-IO"),
        (170, "MPI_Grequest_start", "generalized"),
        (127, "MPI_Abort", "gave up"),
        (290, "an unknown call", "damaged"),
    ];
    for (function, name, reason) in unsupported {
        let mut w = Writer::new();
        let error = problem(w.call(52, &[H(WORLD)]).call(function, &[]));
        assert!(error.contains("t-0001.bin: rank 1, record 3 ("), "{error}");
        assert!(error.contains(&format!("({name})")) && error.contains(reason), "{error}");
    }
}

#[test]
fn nonsense_is_named() {
    let error = |function, arguments: &[Arg<'_>]| problem(Writer::new().call(function, arguments));
    assert!(error(13, &[I(20), S(&[])]).contains("request 20 was started by no call"));
    assert!(error(52, &[H(9)]).contains("communicator 9 was made by no call"));
    assert!(error(52, &[H(1)]).contains("MPI_COMM_NULL"));
    assert!(error(0, &to(-3, 2, 1)).contains("a count of -3"));
    assert!(error(53, &[I(1), H(INT), I(-4), H(WORLD)]).contains("a root of -4"));
    assert!(error(16, &[I(1), L(&[20]), I(3), S(&[])]).contains("index 3 in a list of 1 requests"));
    assert!(error(85, &[H(WORLD), H(9), H(4)]).contains("group 9"));
    assert!(error(111, &[I(1), H(WORLD), L(&[1]), H(4)]).contains("no Cartesian topology"));
}

#[test]
fn compute_is_time_between_calls_on_the_best_clock() {
    for (clocks, scale, expected) in [
        (Clocks::Both, 1.0, Some(1_000_000)),
        (Clocks::Cpu, 2.5, Some(2_500_000)),
        (Clocks::Wall, 1.0, Some(7_000_000)),
        (Clocks::Wall, 0.0, None),
        (Clocks::None, 1.0, None),
    ] {
        let mut w = Writer::with_clocks(clocks);
        w.call(52, &[H(WORLD)]).call(82, &[H(WORLD), I(1)]).call(52, &[H(WORLD)]);
        let options =
            Options { repeat: false, compute_scale: scale, rank_scales: vec![1.0, 1.5], ..Options::default() };
        let (_directory, ranks) = open_copies(&w.finish(), 3, &options).unwrap();
        for (mut rank, factor) in ranks.into_iter().zip([2, 3, 2]) {
            let spans: Vec<u64> = drain(&mut rank)
                .iter()
                .filter_map(|op| if let Op::Compute(Picoseconds(ps)) = op { Some(*ps) } else { None })
                .collect();
            // Before the first barrier; around a call that does not communicate; before MPI_Finalize.
            assert_eq!(
                spans,
                expected.map_or(vec![], |gap| [gap, 2 * gap, gap].map(|span| span * factor / 2).to_vec())
            );
        }
    }
}

#[test]
fn bytes_are_scaled_and_something_never_becomes_nothing() {
    let mut w = Writer::with_clocks(Clocks::None);
    w.call(8, &start(1, 2, 1, 20)).call(65, &[I(1), H(INT), B(3), H(WORLD)]);
    let bytes = w.finish();
    for (message_scale, sent, reduced) in
        [(1.0, 4, 4), (2.5, 10, 10), (0.3, 1, 1), (1e-3, 1, 1), (1e6, 4_000_000, 4_000_000)]
    {
        let options = Options { repeat: false, message_scale, ..Options::default() };
        let (_directory, mut ranks) = open_copies(&bytes, 2, &options).unwrap();
        let found: Vec<u64> = drain(&mut ranks[0])
            .iter()
            .filter_map(|op| match op {
                Op::Isend { bytes, .. } | Op::Collective { volume: Volume::Uniform(bytes), .. } => Some(bytes.0),
                _ => None,
            })
            .collect();
        assert_eq!(found, [sent, reduced]);
    }
}

#[test]
fn iterations_and_repetition() {
    let mut w = Writer::with_clocks(Clocks::None);
    w.call(8, &start(1, 2, 1, 20)).call(65, &[I(1), H(INT), B(3), H(WORLD)]).call(84, &[H(WORLD), H(4)]);
    w.call(65, &[I(1), H(INT), B(3), H(4)]);
    let bytes = w.finish();
    let words = |iteration: Iteration, count: usize| {
        let (_directory, mut ranks) = open_copies(&bytes, 2, &Options { iteration, ..Options::default() }).unwrap();
        let ops = (0..count).map(|_| format!("{:?}", ranks[0].next_op().unwrap().unwrap()));
        ops.map(|w| w.split([' ', '(']).next().unwrap().to_owned()).collect::<Vec<_>>().join(" ")
    };
    let pass = "Isend Collective CommDup Collective RequestFree CommFree MarkProgress Isend";
    assert_eq!(words(Iteration::Pass, 8), pass);
    let reduced = "Isend Collective CommDup MarkProgress Collective RequestFree CommFree Isend MarkProgress Collective";
    assert_eq!(words(Iteration::Collective(CollectiveKind::Allreduce), 10), reduced);
    let region = "Isend Collective CommDup Collective RequestFree CommFree MarkProgress Isend";
    assert_eq!(words(Iteration::Region("MPI_Isend".to_owned()), 8), region);

    let never = Options { iteration: Iteration::Collective(CollectiveKind::Bcast), ..Options::default() };
    let (_directory, mut ranks) = open_copies(&bytes, 2, &never).unwrap();
    let error = (0..100).find_map(|_| ranks[0].next_op().err()).unwrap();
    assert!(error.contains("no collective \"bcast\""), "{error}");
    let misspelt = Options { iteration: Iteration::Region("MPI_Alreduce".to_owned()), ..Options::default() };
    let error = open_copies(&bytes, 2, &misspelt).err().unwrap().to_string();
    assert!(error.contains("did you mean \"MPI_Allreduce\"?"), "{error}");
    let (_directory, mut ranks) =
        open_copies(&Writer::with_clocks(Clocks::None).finish(), 1, &Options::default()).unwrap();
    let error = ranks[0].next_op().unwrap_err();
    assert!(error.contains("cannot be repeated"), "{error}");
}

#[test]
fn descriptions_resolve_communicators_across_ranks() {
    let directory = TempDir::new().unwrap();
    let file = |rank: i32| {
        let mut w = Writer::new();
        w.call(86, &[H(WORLD), I(rank % 2), I(-rank), H(4)]).call(60, &[I(1), H(INT), I(1), H(INT), H(4)]);
        // The split's first rank is the last of the world; it broadcasts, and sends to the second.
        w.call(53, &[I(5), H(INT), I(0), H(4)]);
        if rank >= 2 {
            w.call(0, &[I(1), H(INT), I(1), I(7), H(4)]);
        } else {
            w.call(1, &[I(1), H(INT), I(ANY), I(7), H(4), S(&[(0, 7, false)])]);
        }
        w.finish()
    };
    write(directory.path(), &(0..4).map(file).collect::<Vec<_>>());
    let found = describe(directory.path(), &Options::default()).unwrap();
    assert_eq!(found.communicators, [("split(2)".to_owned(), 2)].into());
    assert_eq!(found.collectives["MPI_Alltoall"].bytes, 4 * 4 * 2);
    assert_eq!(found.collectives["MPI_Bcast"].bytes, 2 * 20);
    assert_eq!((found.p2p_messages, found.p2p_bytes, found.wildcard_receives), (2, 8, 2));
    assert_eq!((found.neighbours.min, found.neighbours.max), (1, 1));
}
