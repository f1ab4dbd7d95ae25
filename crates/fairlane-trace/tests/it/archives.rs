//! The recorded archives against the counts that an independent reader took from them.

use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};

use fairlane_core::program::{Op, P2p, Source};
use fairlane_trace::{Description, Options, describe, open};
use ruzstd::decoding::StreamingDecoder;
use serde_json::Value;
use tempfile::TempDir;

/// The recorded traces of the repository.
pub fn data() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/traces")
}

/// Unpacks an archive, and returns the directory in it.
pub fn unpack(archive: &Path, into: &TempDir) -> PathBuf {
    let decoder = StreamingDecoder::new(BufReader::new(File::open(archive).unwrap())).unwrap();
    tar::Archive::new(decoder).unpack(into.path()).unwrap();
    let name = archive.file_name().unwrap().to_str().unwrap().strip_suffix(".tar.zst").unwrap();
    into.path().join(name)
}

/// All archives of MPI recordings here, and in the directory that `FAIRLANE_TRACES` names.
fn archives() -> Vec<PathBuf> {
    let more = std::env::var_os("FAIRLANE_TRACES").map(PathBuf::from);
    let mut found: Vec<PathBuf> = [Some(data()), more]
        .into_iter()
        .flatten()
        .flat_map(|directory| std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()))
        .filter(|path| path.to_str().unwrap().ends_with(".tar.zst"))
        .filter(|path| !path.file_name().unwrap().to_str().unwrap().starts_with("chakra_"))
        .collect();
    found.sort_by_key(|path| path.file_name().unwrap().to_owned());
    found.dedup_by_key(|path| path.file_name().unwrap().to_owned());
    found
}

fn compare(name: &str, found: &Description, check: &Value) {
    let found = serde_json::to_value(found).unwrap();
    for (ours, theirs) in [
        ("ranks", "ranks"),
        ("calls", "calls"),
        ("failed_polls", "failed_polls"),
        ("p2p_messages", "p2p_messages"),
        ("p2p_bytes", "p2p_bytes"),
        ("wildcard_receives", "wildcard_recvs"),
        ("collectives", "collectives"),
        ("communicators", "communicators"),
    ] {
        assert_eq!(found[ours], check[theirs], "{name}: {ours}");
    }
    for key in ["min", "max"] {
        assert_eq!(found["neighbours"][key], check["neighbours"][key], "{name}: neighbours {key}");
    }
    let near = |a: &Value, b: &Value, within: f64| (a.as_f64().unwrap() - b.as_f64().unwrap()).abs() <= within;
    assert!(near(&found["neighbours"]["mean"], &check["neighbours"]["mean"], 0.0501), "{name}: neighbours mean");
    let cpu = &check["cpu_s"];
    assert!(near(&found["cpu_seconds_in_mpi"], &cpu["in_mpi"], 0.000_501), "{name}: {}", found["cpu_seconds_in_mpi"]);
    // The check counts from leaving the first call, which may be MPI_Initialized, to leaving the last one before MPI_Finalize.
    let (ours, theirs) = (&found["cpu_seconds"], &cpu["init_to_finalize"]);
    if check["calls"]["MPI_Initialized"].is_number() {
        assert!(
            ours.as_f64() < theirs.as_f64() && ours.as_f64() > found["cpu_seconds_in_mpi"].as_f64(),
            "{name}: {ours}"
        );
    } else {
        assert!(near(ours, theirs, theirs.as_f64().unwrap() * 0.01), "{name}: {ours}");
    }
}

#[test]
fn dumpi_archives_agree_with_their_checks() {
    let mut seen = 0;
    for archive in archives().iter().filter(|a| !a.file_name().unwrap().to_str().unwrap().starts_with("otf2-")) {
        let into = TempDir::new().unwrap();
        let directory = unpack(archive, &into);
        let check: Value = serde_json::from_reader(File::open(directory.join("check.json")).unwrap()).unwrap();
        let found = describe(&directory, &Options::default()).unwrap();
        compare(archive.file_name().unwrap().to_str().unwrap(), &found, &check);
        seen += 1;
    }
    assert!(seen >= 11, "only {seen} archives found");
}

/// Every operation of a source that does not repeat.
pub fn drain(source: &mut Box<dyn Source>) -> Vec<Op> {
    let mut ops = Vec::new();
    while let Some(op) = source.next_op().unwrap() {
        ops.push(op);
    }
    ops
}

/// Sends and receives must pair up, and every started request must be waited for: then a replay can end.
pub fn must_pair_up(name: &str, ranks: &mut [Box<dyn Source>]) {
    use std::collections::HashMap;
    let mut messages: HashMap<(u32, u32, i32), i64> = HashMap::new();
    let mut wildcards = 0;
    for (me, source) in (0_u32..).zip(ranks.iter_mut()) {
        let mut open = std::collections::HashSet::new();
        for op in drain(source) {
            match &op {
                Op::P2p(P2p::Send { to, tag, comm: 0, .. }) | Op::P2p(P2p::Isend { to, tag, comm: 0, .. }) => {
                    *messages.entry((me, to.0, *tag)).or_default() += 1;
                }
                Op::P2p(P2p::Recv { from: Some(from), tag: Some(tag), comm: 0 })
                | Op::P2p(P2p::Irecv { from: Some(from), tag: Some(tag), comm: 0, .. }) => {
                    *messages.entry((from.0, me, *tag)).or_default() -= 1;
                }
                Op::P2p(P2p::Recv { from: None, .. }) | Op::P2p(P2p::Irecv { from: None, .. }) => wildcards += 1,
                _ => {}
            }
            match &op {
                Op::P2p(P2p::Isend { request, .. }) | Op::P2p(P2p::Irecv { request, .. }) => {
                    assert!(open.insert(*request), "{name}: {op:?}")
                }
                Op::P2p(P2p::Wait(request)) | Op::P2p(P2p::RequestFree(request)) => {
                    assert!(open.remove(request), "{name}: {op:?}")
                }
                Op::P2p(P2p::WaitAll(requests)) => {
                    requests.iter().for_each(|r| assert!(open.remove(r), "{name}: {op:?}"))
                }
                _ => {}
            }
        }
        assert!(open.is_empty(), "{name}: rank {me} leaves {open:?} open");
    }
    assert_eq!(wildcards, 0, "{name}: receives that stayed wildcards");
    let odd: Vec<_> = messages.into_iter().filter(|(_, surplus)| *surplus != 0).collect();
    assert!(odd.is_empty(), "{name}: {} kinds of messages do not pair up: {:?}", odd.len(), odd.first());
}

#[test]
fn replays_pair_up() {
    for name in ["amg-27", "crystal_test-100", "npb_mg-64", "gpcnet_congestors-32"] {
        let into = TempDir::new().unwrap();
        let directory = unpack(&data().join(format!("{name}.tar.zst")), &into);
        let mut program = open(&directory, &Options { repeat: false, ..Options::default() }).unwrap();
        must_pair_up(name, &mut program.ranks);
    }
    if let Some(more) = std::env::var_os("FAIRLANE_TRACES") {
        for name in ["amg-216", "milc-64"] {
            let archive = Path::new(&more).join(format!("{name}.tar.zst"));
            if archive.exists() {
                let into = TempDir::new().unwrap();
                let options = Options { repeat: false, ..Options::default() };
                must_pair_up(name, &mut open(unpack(&archive, &into), &options).unwrap().ranks);
            }
        }
    }
}

/// Kinds of operations, in which the calls are.
const KINDS: [&str; 2] = ["P2p", "Collective"];

#[test]
fn the_smallest_trace_is_read_without_a_meta_file() {
    let found = describe(data().join("testtrace-4.dumpi"), &Options::default()).unwrap();
    assert_eq!((found.ranks, found.events, found.p2p_messages), (4, 36, 4));
    let mut program = open(data().join("testtrace-4.dumpi"), &Options { repeat: false, ..Options::default() }).unwrap();
    let ops = drain(&mut program.ranks[0]);
    let words: Vec<String> = ops.iter().map(|op| format!("{op:?}")).collect();
    let call = |words: &String| words.split([' ', '(']).find(|part| !KINDS.contains(part)).unwrap().to_owned();
    let kinds: Vec<String> = words.iter().map(call).collect();
    let expected = ["Compute", "Blocking", "Compute", "Isend", "Compute", "Recv", "Compute", "Wait"];
    assert_eq!(kinds[..8], expected, "{words:#?}");
    assert_eq!(kinds.last().unwrap(), "MarkProgress");
}

#[test]
fn a_copy_goes_on_from_the_same_place() {
    let into = TempDir::new().unwrap();
    let directory = unpack(&data().join("amg-27.tar.zst"), &into);
    let mut program = open(&directory, &Options { repeat: true, ..Options::default() }).unwrap();
    let source = &mut program.ranks[7];
    let mut marks = 0;
    for step in 0_u32.. {
        let op = source.next_op().unwrap().unwrap();
        marks += u32::from(op == Op::MarkProgress);
        if step % 9973 == 0 {
            let mut copy = source.clone();
            let ahead: Vec<Op> = (0..500).map(|_| copy.next_op().unwrap().unwrap()).collect();
            let again: Vec<Op> = (0..500).map(|_| source.next_op().unwrap().unwrap()).collect();
            assert_eq!(ahead, again, "after {step} operations");
            marks += u32::try_from(again.iter().filter(|op| **op == Op::MarkProgress).count()).unwrap();
        }
        if marks >= 3 {
            return;
        }
    }
}
