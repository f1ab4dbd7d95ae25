//! GOAL schedules and Chakra execution traces: what is read, in each way of writing it, and what is refused before a run.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use fairlane_core::units::Picoseconds;
use fairlane_trace::{Description, Options, describe, open};
use proptest::prelude::*;
use tempfile::TempDir;

/// A rank's operation: kind (0 send, 1 receive, 2 calc), partner, number, tag, CPU, and on which earlier ones it depends, how.
type Operation = (u8, u32, u64, u32, u8, Vec<(usize, bool)>);

/// Schedules of ranks that send to each other what they receive: every message has its receive.
fn schedule() -> impl Strategy<Value = Vec<Vec<Operation>>> {
    let step = (0..4_u32, 0..4_u32, 0..100_000_u64, 0..3_u32, 0..3_u8, any::<u32>());
    prop::collection::vec(step, 1..20).prop_map(|steps| {
        let mut ranks: Vec<Vec<Operation>> = vec![Vec::new(); 4];
        for (from, to, number, tag, cpu, choice) in steps {
            let after = |rank: &Vec<Operation>| match (rank.len(), choice % 3) {
                (0, _) | (_, 0) => Vec::new(),
                (count, way) => vec![(choice as usize / 3 % count, way == 1)],
            };
            let (on_from, on_to) = (after(&ranks[from as usize]), after(&ranks[to as usize]));
            if from == to {
                ranks[from as usize].push((2, 0, number, 0, cpu, on_from));
            } else {
                ranks[from as usize].push((0, to, number, tag, cpu, on_from));
                ranks[to as usize].push((1, from, number, tag, cpu, on_to));
            }
        }
        ranks
    })
}

fn text(ranks: &[Vec<Operation>]) -> String {
    let mut text = format!("// generated\nnum_ranks {}\n", ranks.len());
    for (rank, operations) in ranks.iter().enumerate() {
        let _ = writeln!(text, "\nrank {rank} {{ /* of {}\n */", ranks.len());
        for (number, (kind, partner, size, tag, cpu, on)) in operations.iter().enumerate() {
            let _ = match kind {
                0 => writeln!(text, "l{number}: send {size}b to {partner} tag {tag} cpu {cpu} nic 0"),
                1 => writeln!(text, "l{number} : recv {size} b from {partner} tag {tag} cpu {cpu}"),
                _ => writeln!(text, "l{number}:calc {size} cpu {cpu}"),
            };
            for (before, end) in on {
                let _ = writeln!(text, "l{number} {} l{before}", if *end { "requires" } else { "irequires" });
            }
        }
        text.push_str("}\n");
    }
    text
}

/// As `txt2bin` packs it.
fn binary(ranks: &[Vec<Operation>]) -> Vec<u8> {
    let mut table = 6 + 16 * ranks.len();
    let mut header = u32::try_from(ranks.len()).unwrap().to_le_bytes().to_vec();
    header.extend([2, 0]);
    let mut all = Vec::new();
    for operations in ranks {
        let number = |count: usize| u32::try_from(count).unwrap().to_le_bytes();
        let roots: Vec<usize> = (0..operations.len()).filter(|place| operations[*place].5.is_empty()).collect();
        let mut bytes = [number(operations.len()), number(roots.len())].concat();
        roots.iter().for_each(|root| bytes.extend(number(*root)));
        let mut dependents: Vec<u8> = Vec::new();
        for (place, (kind, partner, size, tag, cpu, on)) in operations.iter().enumerate() {
            bytes.extend(number(on.len()));
            bytes.push([1, 2, 3][usize::from(*kind)]);
            bytes.extend(partner.to_le_bytes());
            bytes.extend(size.to_le_bytes());
            bytes.extend(tag.to_le_bytes());
            bytes.extend([*cpu, 0]);
            for end in [true, false] {
                let on_this =
                    |of: &Operation| of.5.iter().filter(|(before, how)| *before == place && *how == end).count();
                let places: Vec<usize> =
                    (0..operations.len()).filter(|other| on_this(&operations[*other]) > 0).collect();
                bytes.extend([number(places.len()), number(dependents.len() / 4)].concat());
                places.iter().for_each(|other| dependents.extend(number(*other)));
            }
        }
        bytes.append(&mut dependents);
        header.extend((table as u64).to_le_bytes());
        table += bytes.len();
        header.extend((table as u64).to_le_bytes());
        all.append(&mut bytes);
    }
    [4223_u64.to_le_bytes().to_vec(), header, all].concat()
}

fn stored(folder: &TempDir, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
    let file = folder.path().join(name);
    fs::write(&file, bytes).unwrap();
    file
}

fn described(file: &Path) -> Description {
    describe(file, &Options::default()).unwrap()
}

/// The operations that the sources of a program yield until they wait for something.
fn beginning(file: &Path, options: &Options) -> String {
    let mut program = open(file, options).unwrap();
    program.ranks.iter_mut().fold(String::new(), |all, source| all + &format!("{:?}\n", source.ahead().unwrap()))
}

proptest! {
    #[test]
    fn text_and_binary_schedules_are_the_same(ranks in schedule()) {
        let folder = TempDir::new().unwrap();
        let (text, packed) = (stored(&folder, "a.goal", text(&ranks)), stored(&folder, "a.bin", binary(&ranks)));
        let (one, other) = (described(&text), described(&packed));
        let sends = ranks.iter().flatten().filter(|operation| operation.0 == 0);
        prop_assert_eq!(one.p2p_messages, sends.clone().count() as u64);
        prop_assert_eq!(one.p2p_bytes, sends.map(|operation| operation.2).sum::<u64>());
        prop_assert_eq!(one.events, ranks.iter().map(Vec::len).sum::<usize>() as u64);
        prop_assert_eq!((&*one.version, &*other.version), ("text", "binary"));
        prop_assert_eq!(Description { version: String::new(), ..one }, Description { version: String::new(), ..other });
        let options = Options { repeat: false, ..Options::default() };
        prop_assert_eq!(beginning(&text, &options), beginning(&packed, &options));
    }

    #[test]
    fn a_damaged_binary_schedule_is_an_error_or_another_one(ranks in schedule(), at in any::<prop::sample::Index>(), byte: u8, cut: bool) {
        let folder = TempDir::new().unwrap();
        let mut bytes = binary(&ranks);
        let at = at.index(bytes.len());
        if cut { bytes.truncate(at.max(8)) } else { bytes[at] = byte }
        let _ = open(stored(&folder, "a.bin", bytes), &Options { repeat: false, ..Options::default() });
    }
}

#[test]
fn what_is_wrong_with_a_schedule_is_named() {
    let whole = "num_ranks 2\nrank 0 {\nl1: calc 5\nl2: send 8b to 1 tag 3\nl2 requires l1\n}\nrank 1 {\nl1: recv 8b from 0 tag 3\n}\n";
    let folder = TempDir::new().unwrap();
    let file = stored(&folder, "a.goal", whole);
    assert!(open(&file, &Options::default()).is_ok());
    for (from, to, expected) in [
        ("to 1 tag 3", "to 2 tag 3", "rank 0, line 4: rank 2 of 2 ranks, 0 to 1"),
        (
            "from 0 tag 3",
            "from 0 tag 4",
            "rank 0, line 4: messages to rank 1 from rank 0 with tag 3: 1 sent, 0 received",
        ),
        (
            "from 0 tag 3",
            "from 0 tag 3\nrecv 8b from -1 tag 3",
            "rank 1, line 8: messages to rank 1: 1 sent, 2 received",
        ),
        ("l2 requires l1", "l2 requires l3", "line 5: no operation has the label \"l3\": \"l2 requires l3\""),
        (
            "l2 requires l1",
            "l2 requires l1\nl1 irequires l2",
            "rank 0, line 3: a cycle of dependencies: line 3 after 4 after 3",
        ),
        ("calc 5", "clac 5", "line 3: calc N, send Nb to RANK or recv Nb from RANK is expected: \"l1: clac 5\""),
        ("calc 5", "calc 5 gpu 1", "line 3: \"gpu\" is not one of cpu: \"l1: calc 5 gpu 1\""),
        ("l1: calc", "l2: calc", "line 4: the label \"l2\" stands twice: \"l2: send 8b to 1 tag 3\""),
        ("num_ranks 2", "num_ranks 3", "num_ranks 3, and 2 ranks"),
        ("rank 1 {", "rank 2 {", "line 7: rank 1 is next: ranks stand in order: \"rank 2 {\""),
        ("8b from 0 tag 3\n}", "8b from 0 tag 3\n", "the last rank is not closed: } is missing"),
    ] {
        assert!(whole.contains(from), "{from}");
        let file = stored(&folder, "b.goal", whole.replace(from, to));
        let error = open(&file, &Options::default()).err().map(|error| error.to_string());
        assert_eq!(error, Some(format!("{}: {expected}", file.display())));
    }
    let mut used_up = 2342_u64.to_le_bytes().to_vec();
    used_up.extend([0; 40]);
    let error = describe(stored(&folder, "used.bin", used_up), &Options::default()).unwrap_err().to_string();
    assert!(
        error.ends_with("a simulation with --save-mem has used this schedule up: make it anew with txt2bin"),
        "{error}"
    );
}

#[test]
fn times_and_bytes_are_scaled() {
    let folder = TempDir::new().unwrap();
    let file =
        stored(&folder, "a.goal", "num_ranks 2\nrank 0 {\ncalc 500\nsend 8b to 1\n}\nrank 1 {\nrecv 8b from 0\n}\n");
    let options = Options { compute_scale: 2.0, rank_scales: vec![1.5], message_scale: 0.01, ..Options::default() };
    let beginning = beginning(&file, &options);
    assert!(beginning.contains(&format!("Offload({:?}", Picoseconds(1_500_000))), "{beginning}");
    assert!(beginning.contains("bytes: Bytes(1)"), "{beginning}");
}

/// A Protocol Buffers message: number and value of each field, a number or bytes.
fn message(fields: &[(u64, Result<u64, Vec<u8>>)]) -> Vec<u8> {
    let varint = |mut value: u64| {
        let mut bytes = Vec::new();
        while value >= 0x80 {
            bytes.push((value & 0x7f) as u8 | 0x80);
            value >>= 7;
        }
        bytes.push(u8::try_from(value).unwrap());
        bytes
    };
    let field = |(number, value): &(u64, Result<u64, Vec<u8>>)| match value {
        Ok(value) => [varint(number << 3), varint(*value)].concat(),
        Err(bytes) => [varint(number << 3 | 2), varint(bytes.len() as u64), bytes.clone()].concat(),
    };
    fields.iter().flat_map(field).collect()
}

fn delimited(messages: &[Vec<u8>]) -> Vec<u8> {
    // As the length of a field without its number.
    messages.iter().flat_map(|one| message(&[(1, Err(one.clone()))])[1..].to_vec()).collect()
}

/// A node: number, type, dependencies, duration in microseconds, attributes as int64.
fn node(id: u64, kind: u64, on: &[u64], duration: u64, attributes: &[(&str, u64)]) -> Vec<u8> {
    let mut fields = vec![(1, Ok(id)), (2, Err(format!("node {id}").into_bytes())), (3, Ok(kind))];
    fields.extend(on.iter().map(|on| (5, Ok(*on))));
    fields.push((7, Ok(duration)));
    fields.extend(attributes.iter().map(|(name, value)| {
        let number = if *name == "is_cpu_op" { 27 } else { 9 };
        (10, Err(message(&[(1, Err(name.as_bytes().to_vec())), (number, Ok(*value))])))
    }));
    message(&fields)
}

fn trace(folder: &TempDir, rank: usize, nodes: &[Vec<u8>]) -> PathBuf {
    let metadata = message(&[(1, Err(b"0.0.4".to_vec()))]);
    stored(folder, &format!("step.{rank}.et"), delimited(&[&[metadata], nodes].concat()))
}

/// Two ranks: a computation, an allreduce of all ranks after it, and a message beside both.
fn step(rank: u64, of: impl Fn(&mut Vec<Vec<u8>>)) -> Vec<Vec<u8>> {
    let partner = ["comm_dst", "comm_src"][usize::try_from(rank).unwrap()];
    let mut nodes = vec![
        node(7, 4, &[], 250, &[("is_cpu_op", 0), ("tid", 20)]),
        node(9, 7, &[7], 0, &[("comm_type", 0), ("comm_size", 4096)]),
        node(11, 5 + rank, &[], 0, &[(partner, 1 - rank), ("comm_size", 100), ("comm_tag", 3)]),
        node(12, 7, &[9], 3, &[("is_cpu_op", 1)]),
    ];
    of(&mut nodes);
    nodes
}

#[test]
fn a_chakra_trace_has_its_nodes() {
    let folder = TempDir::new().unwrap();
    let files: Vec<PathBuf> = (0..2).map(|rank| trace(&folder, rank, &step(rank as u64, |_| ()))).collect();
    for path in [folder.path(), &files[1]] {
        let found = described(path);
        assert_eq!((&*found.format, &*found.version, found.ranks, found.events), ("Chakra", "0.0.4", 2, 8));
        assert_eq!((found.p2p_messages, found.p2p_bytes, found.unsupported.len()), (1, 100, 0));
        let allreduce = found.collectives["allreduce"];
        assert_eq!((allreduce.calls, allreduce.bytes), (2, 8192));
        assert_eq!((found.calls["COMM_COLL_NODE"], found.cpu_seconds), (4, Some(500e-6)));
    }
    let beginning = beginning(folder.path(), &Options::default());
    assert!(beginning.contains(&format!("Offload({:?}", Picoseconds(250_000_000))), "{beginning}");
}

#[test]
fn what_is_wrong_with_a_chakra_trace_is_named() {
    let error = |of_first: &dyn Fn(&mut Vec<Vec<u8>>), of_second: &dyn Fn(&mut Vec<Vec<u8>>)| {
        let folder = TempDir::new().unwrap();
        trace(&folder, 0, &step(0, of_first));
        trace(&folder, 1, &step(1, of_second));
        let error = open(folder.path(), &Options::default()).err().map(|error| error.to_string()).unwrap();
        let (file, words) = error.split_once(".et: ").unwrap();
        assert!(words.starts_with(&format!("rank {}, ", file.rsplit_once('.').unwrap().1)), "{error}");
        words.to_owned()
    };
    let same = |_: &mut Vec<Vec<u8>>| ();
    let smaller = |nodes: &mut Vec<Vec<u8>>| nodes[1] = node(9, 7, &[7], 0, &[("comm_type", 0), ("comm_size", 64)]);
    let fewer = |nodes: &mut Vec<Vec<u8>>| nodes[1] = node(9, 4, &[7], 5, &[]);
    for (found, expected) in [
        (
            error(&same, &smaller),
            "rank 1, node 9: collective 1 of all ranks is allreduce of 64 bytes, root 0, and on rank 0 it is allreduce of 4096 bytes, root 0",
        ),
        (error(&same, &fewer), "rank 0, node 9: all ranks: 1 collectives on rank 0 and 0 on rank 1"),
        (
            error(
                &|nodes| nodes[2] = node(11, 5, &[], 0, &[("comm_dst", 1), ("comm_size", 1), ("comm_tag", 4)]),
                &same,
            ),
            "rank 1, node 11: messages to rank 1 from rank 0 with tag 3: 0 sent, 1 received",
        ),
        (
            error(&|nodes| nodes[2] = node(11, 5, &[], 0, &[("comm_dst", 2), ("comm_size", 1)]), &same),
            "rank 0, node 11: rank 2 of 2 ranks, 0 to 1",
        ),
        (
            error(&|nodes| nodes[0] = node(7, 4, &[12], 250, &[]), &same),
            "rank 0, node 7: a cycle of dependencies: node 7 after 12 after 9 after 7",
        ),
        (
            error(&|nodes| nodes[0] = node(7, 4, &[13], 250, &[]), &same),
            "rank 0, node 7: it depends on node 13, which there is not",
        ),
        (error(&|nodes| nodes[0] = node(7, 8, &[], 250, &[]), &same), "rank 0, node 7: an unknown node type, 8"),
        (error(&same, &|nodes| nodes[0] = node(9, 4, &[], 250, &[])), "rank 1, node 9: its number stands twice"),
    ] {
        assert_eq!(found, expected);
    }
    let folder = TempDir::new().unwrap();
    trace(&folder, 0, &step(0, same));
    trace(&folder, 2, &step(1, same));
    let missing = describe(folder.path(), &Options::default()).unwrap_err().to_string();
    assert!(missing.ends_with("step.1.et is missing: 2 files are there"), "{missing}");
}

#[test]
fn what_has_no_duration_is_listed_and_can_be_left_out() {
    let folder = TempDir::new().unwrap();
    for rank in 0..2 {
        trace(&folder, rank, &step(rank as u64, |nodes| nodes[0] = node(7, 4, &[], 0, &[("num_ops", 1000)])));
    }
    let found = described(folder.path()).unsupported;
    assert_eq!((found.len(), &*found[0].call, found[0].count, found[0].first_record), (1, "COMP_NODE", 2, 7));
    let error = open(folder.path(), &Options::default()).err().map(|error| error.to_string()).unwrap();
    assert!(error.contains("rank 0, record 7 (COMP_NODE): it has num_ops and no duration"), "{error}");
    assert!(open(folder.path(), &Options { leave_out: vec!["COMP_*".to_owned()], ..Options::default() }).is_ok());
}

#[test]
fn flows_of_htsim_and_of_ns_3_are_the_same() {
    let folder = TempDir::new().unwrap();
    let matrix = "Nodes 3\nConnections 3\n# a comment\n0->1 id 1 start 0 size 2000000\n2->1 id 2 start 5e6 size 10\n0->2 id 3 start 7000000 size 1\n";
    let list = "3\n0 1 3 100 2000000 0\n2 1 3 100 10 0.000005\n0 2 3 100 1 0.000007\n";
    let (one, other) = (stored(&folder, "a.cm", matrix), stored(&folder, "flow.txt", list));
    let found = described(&one);
    assert_eq!((&*found.format, found.ranks, found.p2p_messages, found.p2p_bytes), ("htsim", 3, 3, 2_000_011));
    assert_eq!(described(&other).p2p_bytes, 2_000_011);
    let options = Options { repeat: false, ..Options::default() };
    assert_eq!(beginning(&one, &options), beginning(&other, &options));
    for (from, to, expected) in [
        ("0->2", "0->3", "line 6: 0->3: two of 3 hosts, 0 to 2"),
        ("start 5e6", "started 5e6", "line 5: an unknown attribute \"started\": \"2->1 id 2 started 5e6 size 10\""),
        ("start 5e6", "trigger 4", "line 5: trigger 4 is not defined"),
        ("Connections 3", "Connections 4", "Connections 4, and 3 follow"),
        ("Nodes 3", "Nodes 2147483648", "2147483648 hosts: at most 1048576"),
        ("Nodes 3", "Nodes 0", "no hosts"),
        ("size 10", "", "line 5: size, and start or trigger, are needed: \"2->1 id 2 start 5e6\""),
    ] {
        let file = stored(&folder, "b.cm", matrix.replace(from, to));
        let error = open(&file, &options).err().map(|error| error.to_string());
        assert_eq!(error, Some(format!("{}: {expected}", file.display())));
    }
    let define = |kind: &str, set_off: &str| {
        let flows = matrix.replace("size 2000000", &format!("size 2000000 {set_off} 9"));
        let matrix = flows.replace("start 7000000", "trigger 9") + &format!("trigger id 9 {kind}\n");
        let file = stored(&folder, "c.cm", matrix);
        let opened = open(&file, &options).map(|_| file.clone());
        opened.map_err(|error| error.to_string().rsplit_once(".cm: ").unwrap().1.to_owned())
    };
    let waits = beginning(&define("oneshot", "send_done_trigger").unwrap(), &options);
    assert!(!waits.contains("Bytes(1)"), "the third flow waits for the first: {waits}");
    for (kind, set_off, expected) in [
        ("barrier count 2", "send_done_trigger", "line 6: trigger 9 waits for 2 flows, and 1 set it off"),
        (
            "oneshot",
            "recv_done_trigger",
            "line 6: trigger 9 is set off at another host than that of the flow: no such triggers are simulated",
        ),
        ("multishot", "send_done_trigger", "line 7: a multishot trigger is not simulated: \"trigger id 9 multishot\""),
    ] {
        assert_eq!(define(kind, set_off), Err(expected.to_owned()));
    }
}

#[test]
fn lists_of_dependents_do_not_overlap() {
    let folder = TempDir::new().unwrap();
    let ranks = vec![vec![(2, 0, 5, 0, 0, vec![]), (2, 0, 5, 0, 0, vec![(0, true)]), (2, 0, 5, 0, 0, vec![])]];
    let mut bytes = binary(&ranks);
    assert!(open(stored(&folder, "a.bin", &bytes), &Options::default()).is_ok());
    // The second operation claims the dependents of the first.
    let second = 8 + 6 + 16 + 8 + 4 * 2 + 39;
    bytes[second + 23..second + 27].copy_from_slice(&1_u32.to_le_bytes());
    let error = open(stored(&folder, "b.bin", &bytes), &Options::default()).err().unwrap().to_string();
    assert!(error.ends_with("rank 0: the file ends too early"), "{error}");
}

#[test]
fn a_long_cycle_is_found_and_shown_in_part() {
    let mut text = "num_ranks 1\nrank 0 {\n".to_owned();
    (0..50_000).for_each(|number| writeln!(text, "l{number}: calc 1").unwrap());
    (0..50_000).for_each(|number| writeln!(text, "l{number} requires l{}", (number + 1) % 50_000).unwrap());
    let folder = TempDir::new().unwrap();
    let file = stored(&folder, "a.goal", text + "}\n");
    let error = describe(&file, &Options::default()).unwrap_err().to_string();
    assert!(error.contains("a cycle of dependencies: line ") && error.ends_with("(50000 in all)"), "{error}");
    assert!(error.len() < 400, "{error}");
}
