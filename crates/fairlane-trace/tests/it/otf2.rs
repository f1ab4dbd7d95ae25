//! OTF2 archives, where the library is there: set `FAIRLANE_OTF2_LIBRARY` to a `libotf2.so`.

use std::collections::HashMap;
use std::fs::File;
use std::path::{Path, PathBuf};

use fairlane_core::program::{CollectiveKind, Op, P2p};
use fairlane_trace::{Iteration, Options, TraceError, describe, open};
use serde_json::Value;
use tempfile::TempDir;

use crate::archives::{data, drain, must_pair_up, unpack};

/// Options with the library, or nothing if there is none on this machine.
fn options(test: &str) -> Option<Options> {
    let library = std::env::var_os("FAIRLANE_OTF2_LIBRARY").map(PathBuf::from);
    if library.is_none() {
        eprintln!("{test}: left out, FAIRLANE_OTF2_LIBRARY does not name OTF2's library");
    }
    library.map(|library| Options { repeat: false, otf2_library: Some(library), ..Options::default() })
}

fn amg(into: &TempDir) -> PathBuf {
    unpack(&data().join("otf2-amg-27.tar.zst"), into)
}

#[test]
fn the_archive_agrees_with_its_check() {
    let Some(options) = options("the_archive_agrees_with_its_check") else { return };
    let into = TempDir::new().unwrap();
    let directory = amg(&into);
    let check: Value = serde_json::from_reader(File::open(directory.join("check.json")).unwrap()).unwrap();
    let found = describe(directory.join("scorep-amg-27"), &options).unwrap();
    let count = |value: &Value| value.as_u64().unwrap();
    assert_eq!(u64::from(found.ranks), count(&check["locations"]));
    assert_eq!(found.events, check["events"].as_object().unwrap().values().map(count).sum::<u64>());
    let calls: HashMap<&String, u64> = found.calls.iter().chain(&found.regions).map(|(k, v)| (k, *v)).collect();
    assert_eq!(calls, check["calls"].as_object().unwrap().iter().map(|(k, v)| (k, count(v))).collect());
    assert_eq!((found.p2p_messages, found.p2p_bytes), (count(&check["messages"]), count(&check["bytes"])));
    let names = |operation: &str| match operation {
        "CREATE_HANDLE" => "MPI_Comm_create".to_owned(),
        "DESTROY_HANDLE" => "MPI_Comm_free".to_owned(),
        other => format!("MPI_{}{}", &other[..1], other[1..].to_lowercase()),
    };
    for (operation, counts) in check["collectives"].as_object().unwrap() {
        let ours = found.collectives[&names(operation)];
        assert_eq!((ours.calls, ours.bytes), (count(&counts["calls"]), count(&counts["sent"])), "{operation}");
    }
    let communicators: Vec<&str> = check["comms"].as_object().unwrap().values().map(|v| v.as_str().unwrap()).collect();
    assert_eq!(found.communicators.len(), communicators.len());
    assert!(communicators.iter().all(|name| found.communicators.contains_key(*name)), "{:?}", found.communicators);
    assert_eq!(u64::from(found.neighbours.min), count(&check["neighbours"]["min"]));
    assert_eq!(u64::from(found.neighbours.max), count(&check["neighbours"]["max"]));
    assert!((found.neighbours.mean - check["neighbours"]["mean"].as_f64().unwrap()).abs() < 0.0501);
    assert!(found.cpu_seconds.unwrap() > found.cpu_seconds_in_mpi.unwrap());
}

#[test]
fn replays_pair_up() {
    let Some(options) = options("replays_pair_up") else { return };
    let into = TempDir::new().unwrap();
    let stencils = ["stencil4d-32.otf2", "stencil4d-64.otf2"].map(|name| data().join(name));
    for archive in stencils.into_iter().chain([amg(&into).join("scorep-amg-27/traces.otf2")]) {
        must_pair_up("OTF2", &mut open(&archive, &options).unwrap().ranks);
    }
}

#[test]
fn the_same_run_in_both_formats_sends_the_same() {
    let Some(options) = options("the_same_run_in_both_formats_sends_the_same") else { return };
    let into = TempDir::new().unwrap();
    let sends = |path: &Path| {
        let mut program = open(path, &options).unwrap();
        let mut counts: HashMap<(usize, u32, u64, i32), u32> = HashMap::new();
        for (rank, source) in program.ranks.iter_mut().enumerate() {
            for op in drain(source) {
                if let Op::P2p(P2p::Send { to, bytes, tag, .. }) | Op::P2p(P2p::Isend { to, bytes, tag, .. }) = op {
                    *counts.entry((rank, to.0, bytes.0, tag)).or_default() += 1;
                }
            }
        }
        counts
    };
    let dumpi = unpack(&data().join("amg-27.tar.zst"), &into);
    assert_eq!(sends(&dumpi), sends(&amg(&into).join("scorep-amg-27")));
}

#[test]
fn iterations_are_bounded_by_regions_and_collectives() {
    let Some(options) = options("iterations_are_bounded_by_regions_and_collectives") else { return };
    let marks = |iteration: Iteration| {
        let options = Options { iteration, ..options.clone() };
        let mut program = open(data().join("stencil4d-32.otf2"), &options).unwrap();
        drain(&mut program.ranks[5]).iter().filter(|op| **op == Op::MarkProgress).count()
    };
    let found = describe(data().join("stencil4d-32.otf2"), &options).unwrap();
    let barriers = found.collectives["MPI_Barrier"].calls / 32;
    assert_eq!(marks(Iteration::Pass), 1);
    assert_eq!(marks(Iteration::Collective(CollectiveKind::Barrier.into())) as u64, barriers - 1);
    assert_eq!(marks(Iteration::Region("MPI_Barrier".to_owned())) as u64, barriers - 1);
    let wrong = Options { iteration: Iteration::Region("MPI_Barier".to_owned()), ..options };
    let error = open(data().join("stencil4d-32.otf2"), &wrong).err().unwrap();
    assert!(error.to_string().contains("MPI_Barrier"), "{error}");
}

#[test]
fn a_copy_goes_on_from_the_same_place() {
    let Some(options) = options("a_copy_goes_on_from_the_same_place") else { return };
    let into = TempDir::new().unwrap();
    let options = Options { repeat: true, ..options };
    let mut program = open(amg(&into).join("scorep-amg-27"), &options).unwrap();
    let source = &mut program.ranks[3];
    for step in 0..40_000 {
        source.next_op().unwrap().unwrap();
        if step % 3989 == 0 {
            let mut copy = source.clone();
            let ahead: Vec<Op> = (0..300).map(|_| copy.next_op().unwrap().unwrap()).collect();
            let again: Vec<Op> = (0..300).map(|_| source.next_op().unwrap().unwrap()).collect();
            assert_eq!(ahead, again, "after {step} operations");
        }
    }
}

#[test]
fn a_missing_library_is_named() {
    let error = |library: Option<&str>| {
        let options = Options { otf2_library: library.map(PathBuf::from), ..Options::default() };
        open(data().join("stencil4d-32.otf2"), &options).err().unwrap()
    };
    assert!(matches!(error(None), TraceError::Option { key: "otf2_library", .. }));
    assert!(error(Some("/nowhere/libotf2.so")).to_string().contains("/nowhere/libotf2.so"));
}
