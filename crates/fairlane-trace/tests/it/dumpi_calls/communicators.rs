//! Collective calls, communicators and groups.

use fairlane_core::ids::Rank;
use fairlane_core::program::{Collective, CollectiveKind, Comm, Op, Volume};

use super::{collective, same};
use crate::dumpi_writer::Arg::{B, D, H, I, L};
use crate::dumpi_writer::{DOUBLE, INT, WORLD, Writer, operations, operations_of, problem};

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
    let create = |comm, new, list: &[u32]| Op::Comm(Comm::Create { comm, new, members: members(list) });
    let expected = [
        Op::Comm(Comm::Dup { comm: 0, new: 2 }),
        create(0, 3, &[3, 1, 0]),
        create(3, 4, &[1, 2]),
        create(2, 5, &[3, 1]),
        create(2, 5, &[2, 3]),
        create(2, 5, &[3, 1, 0]),
        create(2, 5, &[3, 1]),
        create(2, 5, &[0]),
        Op::Comm(Comm::Split { comm: 0, new: 5, color: Some(1), key: -3 }),
        Op::Comm(Comm::Split { comm: 0, new: 6, color: None, key: 0 }),
        Op::Comm(Comm::Free(2)),
        Op::Comm(Comm::Dup { comm: 5, new: 2 }),
        Op::Comm(Comm::Free(5)),
        Op::Collective(Collective::Blocking { kind: CollectiveKind::Bcast, comm: 2, root: Rank(0), volume: same(4) }),
        // Requests that are still open at the end of the trace.
        Op::Comm(Comm::Free(2)),
        Op::Comm(Comm::Free(3)),
        Op::Comm(Comm::Free(4)),
    ];
    assert_eq!(operations(&mut w), expected);
}

#[test]
fn groups_of_split_communicators_know_what_they_can() {
    let mut w = Writer::new();
    w.call(86, &[H(WORLD), I(0), I(0), H(7)]).call(72, &[H(7), H(3)]).call(76, &[H(3), I(2), L(&[1, 0]), H(4)]);
    w.call(85, &[H(7), H(4), H(8)]);
    let members = [Rank(1), Rank(0)].into();
    assert_eq!(operations(&mut w)[1], Op::Comm(Comm::Create { comm: 2, new: 3, members }));
    assert!(problem(w.call(77, &[H(3), I(1), L(&[0]), H(5)])).contains("MPI_Comm_split"));
    let mut w = Writer::new();
    w.call(86, &[H(WORLD), I(0), I(0), H(7)]).call(81, &[H(7), I(4)]).call(72, &[H(7), H(3)]);
    w.call(77, &[H(3), I(1), L(&[0]), H(4)]).call(85, &[H(7), H(4), H(8)]);
    let members = [Rank(1), Rank(2), Rank(3)].into();
    assert_eq!(operations(&mut w)[1], Op::Comm(Comm::Create { comm: 2, new: 3, members }));
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
        Op::Comm(Comm::Create { comm: 0, new: 2, members: (0..6).map(Rank).collect() }),
        Op::Comm(Comm::Split { comm: 2, new: 3, color: Some(2), key: 1 }),
        Op::Comm(Comm::Split { comm: 2, new: 4, color: Some(1), key: 2 }),
        Op::Comm(Comm::Split { comm: 4, new: 5, color: Some(2), key: 0 }),
        Op::Comm(Comm::Create { comm: 0, new: 6, members: (0..2).map(Rank).collect() }),
    ];
    assert_eq!(operations_of(&mut w, 5, 7).unwrap()[..5], expected);
}
