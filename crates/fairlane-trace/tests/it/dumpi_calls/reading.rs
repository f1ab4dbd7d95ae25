//! Calls without effect, old versions, what is refused, and what options make of the calls.

use fairlane_core::program::{Collective, CollectiveKind, Op, P2p, SendMode, Volume};
use fairlane_core::units::Picoseconds;
use fairlane_trace::{Iteration, Options, describe};
use tempfile::TempDir;

use super::{recv, send, start, to};
use crate::archives::drain;
use crate::dumpi_writer::Arg::{self, B, D, H, I, L, S, T};
use crate::dumpi_writer::{
    ANY, COMM_SELF, Clocks, DOUBLE, INT, WORLD, Writer, open_copies, operations, problem, write,
};

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
fn what_no_recorder_writes_is_damage() {
    for function in [128, 290] {
        let error = problem(Writer::new().call(52, &[H(WORLD)]).call(function, &[]));
        assert!(error.contains("rank 1, record 3 (") && error.contains("damaged"), "{error}");
    }
}

#[test]
fn nonsense_is_named() {
    let error = |function, arguments: &[Arg<'_>]| problem(Writer::new().call(function, arguments));
    assert!(error(13, &[I(20), S(&[])]).contains("request 20 was started by no call"));
    assert!(error(52, &[H(9)]).contains("communicator 9 was made by no call"));
    assert!(error(52, &[H(1)]).contains("MPI_COMM_NULL"));
    assert!(error(0, &to(1, 4, 1)).contains("rank 4 of communicator 2, which has 4 ranks"));
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
        let (_directory, mut ranks) = open_copies(&bytes, 3, &options).unwrap();
        let found: Vec<u64> = drain(&mut ranks[0])
            .iter()
            .filter_map(|op| match op {
                Op::P2p(P2p::Isend { bytes, .. })
                | Op::Collective(Collective::Blocking { volume: Volume::Uniform(bytes), .. }) => Some(bytes.0),
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
        let (_directory, mut ranks) = open_copies(&bytes, 3, &Options { iteration, ..Options::default() }).unwrap();
        let ops = (0..count).map(|_| format!("{:?}", ranks[0].next_op().unwrap().unwrap()));
        let kinds = ["P2p", "Collective", "Comm"];
        let call = |op: String| op.split([' ', '(']).find(|part| !kinds.contains(part)).unwrap().to_owned();
        ops.map(call).collect::<Vec<_>>().join(" ")
    };
    let pass = "Isend Blocking Dup Blocking RequestFree Free MarkProgress Isend";
    assert_eq!(words(Iteration::Pass, 8), pass);
    let reduced = "Isend Blocking Dup MarkProgress Blocking RequestFree Free Isend MarkProgress Blocking";
    assert_eq!(words(Iteration::Collective(CollectiveKind::Allreduce.into()), 10), reduced);
    let region = "Isend Blocking Dup Blocking RequestFree Free MarkProgress Isend";
    assert_eq!(words(Iteration::Region("MPI_Isend".to_owned()), 8), region);

    let never = Options { iteration: Iteration::Collective(CollectiveKind::Bcast.into()), ..Options::default() };
    let (_directory, mut ranks) = open_copies(&bytes, 3, &never).unwrap();
    let error = (0..100).find_map(|_| ranks[0].next_op().err()).unwrap();
    assert!(error.contains("no collective \"bcast\""), "{error}");
    let misspelt = Options { iteration: Iteration::Region("MPI_Alreduce".to_owned()), ..Options::default() };
    let error = open_copies(&bytes, 3, &misspelt).err().unwrap().to_string();
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
