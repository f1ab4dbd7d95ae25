//! One-sided communication in hand-made DUMPI files.

use std::sync::Arc;

use fairlane_core::ids::Rank;
use fairlane_core::program::{Comm, Op, Rma, RmaKind};
use fairlane_core::units::Bytes;
use fairlane_trace::{CollectiveTotals, Options, describe};
use tempfile::TempDir;

use crate::dumpi_writer::Arg::{self, B, H, I, L};
use crate::dumpi_writer::{COMM_SELF, DOUBLE, INT, PROC_NULL, WORLD, Writer, operations, problem, write};

const CREATE: u16 = 145;
const FENCE: u16 = 146;
const FREE: u16 = 147;
const LOCK: u16 = 149;
const POST: u16 = 150;
const START: u16 = 151;
const TEST: u16 = 152;
const UNLOCK: u16 = 153;
const WAIT: u16 = 154;
const COMPLETE: u16 = 144;
const ACCUMULATE: u16 = 141;
const GET: u16 = 142;
const PUT: u16 = 143;

/// A window over a communicator: 64 bytes, displacements of one byte, no info.
fn create(comm: u16, win: u16) -> [Arg<'static>; 5] {
    [I(64), I(1), H(2), H(comm), H(win)]
}

fn transfer(count: i32, datatype: u16, target: i32, win: u16) -> [Arg<'static>; 7] {
    [I(count), H(datatype), I(target), I(0), I(count), H(datatype), H(win)]
}

fn rma(kind: RmaKind, win: u32, target: u32, bytes: u64) -> Op {
    Op::Rma(Rma::Access { kind, win, target: Rank(target), bytes: Bytes(bytes), request: None })
}

fn ranks(list: &[u32]) -> Arc<[Rank]> {
    list.iter().map(|&rank| Rank(rank)).collect()
}

#[test]
fn fences_and_operations() {
    let mut w = Writer::new();
    w.call(CREATE, &create(WORLD, 3)).call(FENCE, &[B(0), H(3)]).call(PUT, &transfer(3, INT, 2, 3));
    w.call(GET, &transfer(5, DOUBLE, 0, 3)).call(PUT, &transfer(5, DOUBLE, PROC_NULL, 3));
    w.call(ACCUMULATE, &[I(7), H(INT), I(3), I(0), I(7), H(INT), B(3), H(3)]);
    w.call(FENCE, &[B(16), H(3)]).call(FREE, &[H(3)]);
    let expected = [
        Op::Rma(Rma::Create { comm: 0, win: 0 }),
        Op::Rma(Rma::Fence { win: 0 }),
        rma(RmaKind::Put, 0, 2, 12),
        rma(RmaKind::Get, 0, 0, 40),
        rma(RmaKind::Accumulate, 0, 3, 28),
        Op::Rma(Rma::Fence { win: 0 }),
        Op::Rma(Rma::Free { win: 0 }),
    ];
    assert_eq!(operations(&mut w), expected);
}

#[test]
fn locks_of_targets() {
    let mut w = Writer::new();
    w.call(CREATE, &create(WORLD, 3)).call(LOCK, &[B(2), I(2), B(0), H(3)]).call(PUT, &transfer(1, INT, 2, 3));
    w.call(UNLOCK, &[I(2), H(3)]).call(LOCK, &[B(1), I(0), B(1), H(3)]).call(UNLOCK, &[I(0), H(3)]);
    w.call(LOCK, &[B(1), I(PROC_NULL), B(1), H(3)]).call(UNLOCK, &[I(PROC_NULL), H(3)]).call(FREE, &[H(3)]);
    let expected = [
        Op::Rma(Rma::Create { comm: 0, win: 0 }),
        Op::Rma(Rma::Lock { win: 0, target: Rank(2), exclusive: true }),
        rma(RmaKind::Put, 0, 2, 4),
        Op::Rma(Rma::Unlock { win: 0, target: Rank(2) }),
        Op::Rma(Rma::Lock { win: 0, target: Rank(0), exclusive: false }),
        Op::Rma(Rma::Unlock { win: 0, target: Rank(0) }),
        Op::Rma(Rma::Free { win: 0 }),
    ];
    assert_eq!(operations(&mut w), expected);
}

#[test]
fn groups_are_ranks_of_the_window() {
    let mut w = Writer::new();
    // A window over the communicator of ranks 3 and 1, in this order; the group of rank 3 is made of the window's.
    w.call(72, &[H(WORLD), H(4)]).call(76, &[H(4), I(2), L(&[3, 1]), H(5)]).call(85, &[H(WORLD), H(5), H(6)]);
    w.call(CREATE, &create(6, 3)).call(148, &[H(3), H(7)]).call(76, &[H(7), I(1), L(&[0]), H(8)]);
    w.call(POST, &[H(8), B(0), H(3)]).call(START, &[H(8), B(0), H(3)]).call(PUT, &transfer(1, INT, 0, 3));
    w.call(COMPLETE, &[H(3)]).call(TEST, &[H(3), I(0)]).call(TEST, &[H(3), I(1)]);
    w.call(POST, &[H(8), B(0), H(3)]).call(WAIT, &[H(3)]);
    let post = || Op::Rma(Rma::Post { win: 0, group: ranks(&[0]) });
    let expected = [
        Op::Comm(Comm::Create { comm: 0, new: 2, members: ranks(&[3, 1]) }),
        Op::Rma(Rma::Create { comm: 2, win: 0 }),
        post(),
        Op::Rma(Rma::Start { win: 0, group: ranks(&[0]) }),
        rma(RmaKind::Put, 0, 0, 4),
        Op::Rma(Rma::Complete { win: 0 }),
        Op::Rma(Rma::Wait { win: 0 }),
        post(),
        Op::Rma(Rma::Wait { win: 0 }),
        // Windows that the trace leaves open are freed at its end.
        Op::Rma(Rma::Free { win: 0 }),
        Op::Comm(Comm::Free(2)),
    ];
    assert_eq!(operations(&mut w), expected);
    let outside = problem(w.call(POST, &[H(4), B(0), H(3)]));
    assert!(outside.contains("member 0 is not in window 3"), "{outside}");
}

#[test]
fn several_windows_and_numbers_used_again() {
    let mut w = Writer::new();
    w.call(CREATE, &create(WORLD, 3)).call(CREATE, &create(COMM_SELF, 4)).call(FREE, &[H(3)]);
    w.call(CREATE, &create(WORLD, 3)).call(FENCE, &[B(0), H(4)]);
    let made = |comm, win| Op::Rma(Rma::Create { comm, win });
    let expected = [
        made(0, 0),
        made(1, 1),
        Op::Rma(Rma::Free { win: 0 }),
        made(0, 0),
        Op::Rma(Rma::Fence { win: 1 }),
        Op::Rma(Rma::Free { win: 0 }),
        Op::Rma(Rma::Free { win: 1 }),
    ];
    assert_eq!(operations(&mut w), expected);
    assert!(problem(w.call(FENCE, &[B(0), H(9)])).contains("window 9 was made by no call"));
}

#[test]
fn windows_and_operations_are_counted() {
    let mut w = Writer::new();
    w.call(CREATE, &create(WORLD, 3)).call(CREATE, &create(COMM_SELF, 4)).call(PUT, &transfer(3, INT, 2, 3));
    w.call(PUT, &transfer(1, DOUBLE, 1, 3)).call(GET, &transfer(2, INT, 1, 3)).call(TEST, &[H(3), I(0)]);
    let directory = TempDir::new().unwrap();
    write(directory.path(), &vec![w.finish(); 4]);
    let found = describe(directory.path(), &Options::default()).unwrap();
    assert!(found.unsupported.is_empty(), "{:?}", found.unsupported);
    let windows: Vec<_> = found.windows.iter().map(|(name, count)| (&**name, *count)).collect();
    assert_eq!(windows, [("create(1)", 4), ("create(4)", 1)]);
    assert_eq!(found.one_sided["put"], CollectiveTotals { calls: 8, bytes: 80 });
    assert_eq!(found.one_sided["get"], CollectiveTotals { calls: 4, bytes: 32 });
    assert_eq!(found.failed_polls["MPI_Win_test"], 4);
}

#[test]
fn bytes_of_operations_are_scaled() {
    let mut w = Writer::new();
    w.call(CREATE, &create(WORLD, 3)).call(PUT, &transfer(3, INT, 2, 3));
    let options = Options { repeat: false, message_scale: 2.5, ..Options::default() };
    let (_directory, mut sources) = crate::dumpi_writer::open_copies(&w.finish(), 4, &options).unwrap();
    let ops = crate::archives::drain(&mut sources[1]);
    assert!(ops.contains(&rma(RmaKind::Put, 0, 2, 30)), "{ops:?}");
}
