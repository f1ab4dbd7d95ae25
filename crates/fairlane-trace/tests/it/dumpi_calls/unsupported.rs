//! Calls that cannot be simulated: a simulation refuses them by name, a description counts them and reads on.

use fairlane_core::program::{CollectiveKind, Op, P2p, SendMode};
use fairlane_trace::{Iteration, Options, TraceError, describe, open};
use tempfile::TempDir;

use super::{send, to};
use crate::dumpi_writer::Arg::{self, B, D, H, I, L, Q, S, T, TS};
use crate::dumpi_writer::{INT, WORLD, Writer, open_copies, operations, problem, write};

/// A call with its arguments: number, name, arguments, why it is refused.
type Refused = (u16, &'static str, &'static [Arg<'static>], &'static str);

const GROUPS: &str = "intercommunicators";
const FILES: &str = "MPI-IO";

/// Arguments as rank 1 of 4 records them, after the public descriptions of the calls.
const REFUSED: [Refused; 45] = [
    (91, "MPI_Intercomm_create", &[H(2), I(0), H(2), I(1), I(7), H(4)], GROUPS),
    (92, "MPI_Intercomm_merge", &[H(4), I(1), H(5)], GROUPS),
    (127, "MPI_Abort", &[H(2), I(1)], "aborted"),
    (130, "MPI_Comm_accept", &[T("port"), H(2), I(0), H(2), H(4)], GROUPS),
    (131, "MPI_Comm_connect", &[T("port"), H(2), I(0), H(2), H(4)], GROUPS),
    (133, "MPI_Comm_get_parent", &[H(1)], GROUPS),
    (134, "MPI_Comm_join", &[I(3), H(4)], GROUPS),
    // The root is rank 0, so that rank 1 has neither command nor codes; then rank 1 is the root.
    (135, "MPI_Comm_spawn", &[I(1), I(0), H(2), H(4)], GROUPS),
    (135, "MPI_Comm_spawn", &[I(1), I(1), H(2), H(4), T("a"), TS(&["x", "yy"]), I(2), H(2), L(&[0, 0])], GROUPS),
    (136, "MPI_Comm_spawn_multiple", &[I(3), I(1), I(0), H(2), H(4)], GROUPS),
    (
        136,
        "MPI_Comm_spawn_multiple",
        // Two commands with one and no argument, then the numbers of processes, the infos and the codes.
        &[
            I(3),
            I(1),
            I(1),
            H(2),
            H(4),
            I(2),
            TS(&["a", "b"]),
            I(2),
            TS(&["x"]),
            TS(&[]),
            L(&[1, 2]),
            D(&[2, 2]),
            L(&[0; 3]),
        ],
        GROUPS,
    ),
    (168, "MPI_File_call_errhandler", &[H(2), I(1)], FILES),
    (169, "MPI_Grequest_complete", &[I(9)], "generalized"),
    (170, "MPI_Grequest_start", &[I(9)], "generalized"),
    (199, "MPI_File_create_errhandler", &[H(2)], FILES),
    (200, "MPI_File_get_errhandler", &[H(2), H(2)], FILES),
    (201, "MPI_File_set_errhandler", &[H(2), H(2)], FILES),
    (230, "MPI_File_open", &[H(2), T("out.dat"), B(5), H(2), H(4)], FILES),
    (231, "MPI_File_close", &[H(4)], FILES),
    (232, "MPI_File_delete", &[T("out.dat"), H(2)], FILES),
    (233, "MPI_File_set_size", &[H(4), Q(1 << 40)], FILES),
    (235, "MPI_File_get_size", &[H(4), Q(1 << 40)], FILES),
    (236, "MPI_File_get_group", &[H(4), H(4)], FILES),
    (237, "MPI_File_get_amode", &[H(4), B(5)], FILES),
    (240, "MPI_File_set_view", &[H(4), Q(8), H(INT), H(INT), T("native"), H(2)], FILES),
    (241, "MPI_File_get_view", &[H(4), Q(8), H(INT), H(INT), T("native")], FILES),
    (242, "MPI_File_read_at", &[H(4), Q(8), I(3), H(INT), S(&[(0, 0, false)])], FILES),
    (246, "MPI_File_iread_at", &[H(4), Q(8), I(3), H(INT), I(9)], FILES),
    (248, "MPI_File_read", &[H(4), I(3), H(INT), S(&[])], FILES),
    (252, "MPI_File_iread", &[H(4), I(3), H(INT), I(9)], FILES),
    (254, "MPI_File_seek", &[H(4), Q(8), B(1)], FILES),
    (256, "MPI_File_get_byte_offset", &[H(4), Q(8), Q(32)], FILES),
    (263, "MPI_File_seek_shared", &[H(4), Q(8), B(1)], FILES),
    (265, "MPI_File_read_at_all_begin", &[H(4), Q(8), I(3), H(INT)], FILES),
    (266, "MPI_File_read_at_all_end", &[H(4), S(&[])], FILES),
    (269, "MPI_File_read_all_begin", &[H(4), I(3), H(INT)], FILES),
    (277, "MPI_File_get_type_extent", &[H(4), H(INT), I(4)], FILES),
    (278, "MPI_Register_datarep", &[T("mine")], FILES),
    (279, "MPI_File_set_atomicity", &[H(4), I(1)], FILES),
    (281, "MPI_File_sync", &[H(4)], FILES),
    (282, "MPIO_Test", &[I(9), I(1), S(&[])], FILES),
    (283, "MPIO_Wait", &[I(9), S(&[])], FILES),
    (286, "MPIO_Testany", &[I(2), L(&[8, 9]), I(1), I(0), S(&[])], FILES),
    (287, "MPIO_Waitany", &[I(2), L(&[8, 9]), I(0), S(&[])], FILES),
    (288, "MPIO_Waitsome", &[I(2), L(&[8, 9]), I(1), L(&[0]), S(&[])], FILES),
];

/// Describes four copies of a file.
fn described(writer: &mut Writer, options: &Options) -> Result<fairlane_trace::Description, TraceError> {
    let directory = TempDir::new().unwrap();
    write(directory.path(), &vec![writer.finish(); 4]);
    describe(directory.path(), options)
}

#[test]
fn a_simulation_refuses_them_by_name_and_a_description_reads_on() {
    for (function, name, arguments, reason) in REFUSED {
        let mut w = Writer::new();
        w.call(52, &[H(WORLD)]).call(function, arguments).call(function, arguments).call(0, &to(3, 2, 77));
        let error = problem(&mut w);
        assert!(error.contains(&format!("t-0001.bin: rank 1, record 3 ({name}): ")), "{error}");
        assert!(error.contains(reason), "{error}");

        // The send behind it is found where it should be: the reader knows the call's length.
        let found = described(&mut w, &Options::default()).unwrap_or_else(|e| panic!("{name}: {e}"));
        assert_eq!((found.p2p_messages, found.p2p_bytes), (4, 4 * 12), "{name}");
        let [refused] = found.unsupported.as_slice() else { panic!("{name}: {:?}", found.unsupported) };
        assert_eq!((&*refused.call, refused.count, refused.ranks), (name, 8, 4));
        assert_eq!((refused.first_rank, refused.first_record), (0, 3));
        assert!(refused.reason.contains(reason), "{}", refused.reason);
    }
}

#[test]
fn what_calls_leave_behind_is_counted_too() {
    let mut w = Writer::new();
    w.call(91, &[H(2), I(0), H(2), I(1), I(7), H(4)]).call(52, &[H(4)]);
    // A request of a call that the format does not record stands among others.
    w.call(8, &super::start(1, 2, 5, 20)).call(18, &[I(2), L(&[33, 20]), S(&[])]).call(13, &[I(34), S(&[])]);
    w.call(8, &super::start(1, 2, 5, 20)).call(13, &[I(20), S(&[])]);
    let found = described(&mut w, &Options::default()).unwrap();
    let summary: Vec<_> = found.unsupported.iter().map(|e| (&*e.call, e.count, e.first_record)).collect();
    assert_eq!(
        summary,
        [("MPI_Barrier", 4, 3), ("MPI_Intercomm_create", 4, 2), ("MPI_Wait", 4, 6), ("MPI_Waitall", 4, 5)]
    );
    assert!(found.unsupported[3].reason.contains("request 33 was started by no call"));
    assert!(found.unsupported[3].reason.contains("MPI_Ibcast"));
    assert_eq!(found.requests["send"], 8);
}

#[test]
fn a_trace_without_them_has_none() {
    let mut w = Writer::new();
    w.call(0, &to(3, 2, 77)).call(65, &[I(1), H(INT), B(3), H(WORLD)]);
    let found = described(&mut w, &Options::default()).unwrap();
    assert!(found.unsupported.is_empty());
    assert_eq!(operations(&mut w)[0], send(2, 12, 77, SendMode::Standard));
    let totals = found.iteration_collectives["allreduce"];
    assert_eq!((totals.calls, totals.ranks, found.ranks_without_iterations), (4, 4, 0));
}

#[test]
fn records_that_cannot_be_simulated_are_left_out_on_demand() {
    let mut w = Writer::new();
    w.call(230, &[H(2), T("out.dat"), B(5), H(2), H(4)]).call(281, &[H(4)]).call(0, &to(3, 2, 77));
    // Of this call, only what is not known is left out.
    w.call(8, &super::start(1, 2, 5, 20)).call(18, &[I(2), L(&[33, 20]), S(&[])]);
    let mut ops = |calls: &[&str]| {
        let leave_out = calls.iter().map(|&call| call.to_owned()).collect();
        let options = Options { repeat: false, leave_out, ..Options::default() };
        let (_directory, mut sources) = open_copies(&w.finish(), 4, &options).unwrap();
        let mut found = Vec::new();
        loop {
            match sources[1].next_op() {
                Ok(Some(Op::Compute(_))) => {}
                Ok(Some(op)) => found.push(op),
                Ok(None) => return Ok(found),
                Err(error) => return Err(error),
            }
        }
    };
    assert!(ops(&["MPI_File_open", "MPI_Waitall"]).unwrap_err().contains("(MPI_File_sync)"));
    assert!(ops(&["MPI_File_*"]).unwrap_err().contains("(MPI_Waitall)"));
    let expected =
        [send(2, 12, 77, SendMode::Standard), super::isend(2, 4, 5, 0), Op::P2p(P2p::Wait(0)), Op::MarkProgress];
    assert_eq!(ops(&["MPI_File_*", "MPI_Waitall"]).unwrap(), expected);
}

#[test]
fn ranks_that_never_reach_the_bound_of_iterations_are_counted() {
    let without =
        |iteration| described(Writer::new().call(52, &[H(WORLD)]), &Options { iteration, ..Options::default() });
    assert_eq!(without(Iteration::Collective(CollectiveKind::Barrier.into())).unwrap().ranks_without_iterations, 0);
    assert_eq!(without(Iteration::Collective(CollectiveKind::Scan.into())).unwrap().ranks_without_iterations, 4);
    assert_eq!(without(Iteration::Region("MPI_Send".to_owned())).unwrap().ranks_without_iterations, 4);
    assert_eq!(without(Iteration::Region("MPI_Sendd".to_owned())).unwrap().ranks_without_iterations, 4);
}

#[test]
fn numbers_that_no_job_has_are_refused_before_memory_is_taken() {
    let directory = TempDir::new().unwrap();
    std::fs::write(directory.path().join("t.meta"), "numprocs=4294967295\nfileprefix=t\n").unwrap();
    let error = open(directory.path(), &Options::default()).err().unwrap().to_string();
    assert!(error.contains("t-0000.bin: missing") && error.contains("4294967295 ranks"), "{error}");
    write(directory.path(), &[Writer::new().finish()]);
    std::fs::write(directory.path().join("t.meta"), "numprocs=4294967295\nfileprefix=t\n").unwrap();
    let error = open(directory.path(), &Options::default()).err().unwrap().to_string();
    assert!(error.contains("t-0001.bin: missing"), "{error}");

    let billions = i32::MAX;
    let error = |function, arguments: &[Arg<'_>]| problem(Writer::new().call(function, arguments));
    assert!(error(81, &[H(WORLD), I(billions)]).contains("2147483647 ranks, in a job of 4"));
    assert!(error(99, &[H(WORLD), I(1), L(&[billions]), L(&[0]), I(0), H(4)]).contains("2147483647 ranks"));
    assert!(error(101, &[I(0), H(WORLD), I(billions), L(&[]), L(&[]), I(0), H(4)]).contains("2147483647 ranks"));
}
