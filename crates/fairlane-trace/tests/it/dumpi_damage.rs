//! Damaged DUMPI files end in errors that name the file, never in a panic or a loop.

use fairlane_core::program::Op;
use fairlane_trace::{Options, TraceError, describe, open};
use proptest::prelude::*;
use tempfile::TempDir;

use crate::dumpi_writer::Arg::{B, H, I, L, S, T};
use crate::dumpi_writer::{ANY, INT, WORLD, Writer, open_copies, write};

/// A file with many shapes of calls.
fn sample() -> Vec<u8> {
    let mut w = Writer::new();
    w.sizes = vec![4; 29];
    for round in 0..5 {
        w.call(12, &[I(1), H(INT), I(ANY), I(round), H(WORLD), I(20)]);
        w.call(8, &[I(1), H(28), I(0), I(round), H(WORLD), I(21)]);
        w.call(18, &[I(2), L(&[20, 21]), S(&[(0, round, false), (0, 0, false)])]);
        w.call(59, &[I(2), I(1), H(INT), L(&[1, 1]), L(&[0, 1]), H(INT), H(WORLD)]);
        w.call(65, &[I(1), H(INT), B(3), H(WORLD)]);
        w.call(78, &[H(2), I(1), I(0), H(5)]);
        w.call(114, &[T("host"), I(4)]);
    }
    w.finish()
}

/// Reads everything; the number of operations, or the error.
fn read(bytes: &[u8]) -> Result<usize, String> {
    let options = Options { repeat: false, ..Options::default() };
    let (_directory, mut ranks) = open_copies(bytes, 2, &options).map_err(|e| e.to_string())?;
    let mut count = 0;
    while ranks[1].next_op()?.is_some() {
        count += 1;
    }
    Ok(count)
}

#[test]
fn the_undamaged_file_is_read() {
    assert!(read(&sample()).unwrap() > 25);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn every_truncation_is_an_error_that_names_the_file(at in 0.0..1.0_f64) {
        let bytes = sample();
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss)]
        let length = (bytes.len() as f64 * at) as usize;
        let error = read(&bytes[..length]).unwrap_err();
        prop_assert!(error.contains("t-000"), "{error}");
    }

    #[test]
    fn a_wrong_byte_is_an_error_or_another_trace(at in any::<prop::sample::Index>(), value in any::<u8>()) {
        let mut bytes = sample();
        let at = at.index(bytes.len());
        bytes[at] = value;
        if let Err(error) = read(&bytes) {
            prop_assert!(error.contains("t-000") || error.contains("this rank"), "{error}");
        }
    }

    #[test]
    fn any_bytes_between_the_marks_are_an_error_or_a_trace(body in prop::collection::vec(any::<u8>(), 0..400)) {
        let mut bytes = sample();
        let end = (16 + body.len()).min(bytes.len());
        bytes[16..end].copy_from_slice(&body[..end - 16]);
        drop(read(&bytes));
    }
}

#[test]
fn a_record_cut_off_is_named() {
    let mut bytes = sample();
    // The footer is moved into the records, so that they end in the middle of one.
    let index = bytes.len() - 64;
    let footer: [u8; 8] = bytes[index + 48..index + 56].try_into().unwrap();
    let header: [u8; 8] = bytes[index + 32..index + 40].try_into().unwrap();
    assert!(footer > header);
    bytes[index + 56..].copy_from_slice(&200_u64.to_be_bytes());
    let error = read(&bytes).unwrap_err();
    assert!(error.contains("t-0001.bin: rank 1, record") && error.contains("cut off"), "{error}");
}

#[test]
fn a_file_that_vanishes_is_named() {
    let (directory, mut ranks) = open_copies(&sample(), 1, &Options::default()).unwrap();
    std::fs::remove_file(directory.path().join("t-0000.bin")).unwrap();
    let error = ranks[0].next_op().unwrap_err();
    assert!(error.contains("t-0000.bin") && error.contains("cannot be opened"), "{error}");
}

#[test]
fn sets_of_files_must_be_whole() {
    let directory = TempDir::new().unwrap();
    let problem = || open(directory.path(), &Options::default()).err().unwrap().to_string();
    assert!(problem().contains("no trace"), "{}", problem());
    write(directory.path(), &vec![sample(); 3]);
    std::fs::remove_file(directory.path().join("t-0001.bin")).unwrap();
    assert!(problem().contains("t-0001.bin: missing"), "{}", problem());
    std::fs::remove_file(directory.path().join("t.meta")).unwrap();
    assert!(problem().contains("the file of rank 1 is missing"), "{}", problem());
    std::fs::write(directory.path().join("t-0001.bin"), sample()).unwrap();
    assert_eq!(describe(directory.path(), &Options::default()).unwrap().ranks, 3);
    std::fs::write(directory.path().join("u.meta"), "numprocs=3\nfileprefix=/elsewhere/../t\n").unwrap();
    assert_eq!(describe(directory.path().join("u.meta"), &Options::default()).unwrap().ranks, 3);
    std::fs::write(directory.path().join("u.meta"), "numprocs=3\nfileprefix=..\n").unwrap();
    assert!(problem().contains("fileprefix=.."), "{}", problem());
    std::fs::write(directory.path().join("u.meta"), "numprocs=many\nfileprefix=u\n").unwrap();
    assert!(problem().contains("numprocs=many"), "{}", problem());
    let missing = open(directory.path().join("nothing"), &Options::default()).err().unwrap();
    assert!(matches!(missing, TraceError::File { .. }) && missing.to_string().contains("no such file"));
    let scale = Options { rank_scales: vec![1.0, f64::NAN], ..Options::default() };
    assert!(matches!(open(directory.path(), &scale), Err(TraceError::Option { key: "rank_scales", .. })));
    let scale = Options { compute_scale: -1.0, ..Options::default() };
    assert!(matches!(open(directory.path(), &scale), Err(TraceError::Option { key: "compute_scale", .. })));
    for message_scale in [0.0, -1.0, 1.1e6, f64::NAN, f64::INFINITY] {
        let scale = Options { message_scale, ..Options::default() };
        assert!(matches!(open(directory.path(), &scale), Err(TraceError::Option { key: "message_scale", .. })));
    }
}

#[test]
fn a_trace_without_the_call_that_ends_it_ends_with_its_records() {
    let mut bytes = sample();
    let finalize = 125_u16.to_be_bytes();
    let end = bytes.windows(2).rposition(|pair| pair == 293_u16.to_be_bytes()).unwrap();
    let at = bytes[..end].windows(2).rposition(|pair| pair == finalize).unwrap();
    bytes[at..at + 2].copy_from_slice(&293_u16.to_be_bytes());
    let options = Options { repeat: false, ..Options::default() };
    let (_directory, mut ranks) = open_copies(&bytes, 1, &options).unwrap();
    let mut last = None;
    while let Some(op) = ranks[0].next_op().unwrap() {
        last = Some(op);
    }
    assert_eq!(last, Some(Op::MarkProgress));
}
