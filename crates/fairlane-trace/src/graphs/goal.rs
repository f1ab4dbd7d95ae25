//! GOAL schedules (Group Operation Assembly Language), as Schedgen, ATLAHS and others write them for LogGOPSim: as text, or as
//! `txt2bin` packs them.
//!
//! `calc` is work of so many nanoseconds on a stream `cpu`. `send` and `recv` have bytes, a partner and a tag; -1 of `recv`
//! is any. The `nic`, the `cpu` of `send` and `recv` and the bytes of `recv` are ignored. `requires` is a dependency on the
//! end of an operation, `irequires` on its beginning.

use std::collections::HashMap;
use std::fs;
use std::path::Path;

use fairlane_core::ids::Rank;
use fairlane_core::program::SendMode;
use fairlane_core::program::graph::{After, Node, RankGraph};
use fairlane_core::units::{Bytes, Picoseconds};

use super::Recorded;
use crate::TraceError;

const PS_PER_NS: u64 = 1000;
/// The first eight bytes of a binary schedule.
const MAGIC: u64 = 4223;
/// The same of one that a simulation has used up.
const USED_UP: u64 = 2342;
/// Any source, or any tag, in a binary schedule.
const ANY: u32 = u32::MAX;
/// Bytes of an operation in a binary schedule, without padding.
const OPERATION: usize = 39;

/// Whether a file that starts so is a schedule: by its magic number if it is binary, else by the ending `.goal` or by its first word.
pub fn is_one(file: &Path, start: &[u8]) -> bool {
    let binary = start.first_chunk().is_some_and(|start| [MAGIC, USED_UP].contains(&u64::from_le_bytes(*start)));
    let text = || String::from_utf8_lossy(start).split_whitespace().next() == Some("num_ranks");
    binary || file.extension().is_some_and(|ending| ending == "goal") || text()
}

/// Reads a schedule.
///
/// # Errors
/// [`TraceError::File`] names the line, or the rank and operation, that is wrong.
pub fn read(file: &Path) -> Result<Recorded, TraceError> {
    let bytes = fs::read(file).map_err(|error| TraceError::file(file, error))?;
    let mut recorded = Recorded { files: vec![file.to_owned()], format: "GOAL", ..Recorded::default() };
    let read = match bytes.first_chunk().map(|start| u64::from_le_bytes(*start)) {
        Some(MAGIC) => {
            (recorded.version, recorded.place) = ("binary".to_owned(), "operation");
            read_binary(&mut recorded, &bytes[8..])
        }
        Some(USED_UP) => {
            Err("a simulation with --save-mem has used this schedule up: make it anew with txt2bin".to_owned())
        }
        _ => {
            (recorded.version, recorded.place) = ("text".to_owned(), "line");
            let text = std::str::from_utf8(&bytes).map_err(|error| format!("no UTF-8 text: {error}"));
            text.and_then(|text| read_text(&mut recorded, text))
        }
    };
    read.map_err(|problem| TraceError::file(file, problem))?;
    Ok(recorded)
}

fn read_text(recorded: &mut Recorded, text: &str) -> Result<(), String> {
    let mut expected: Option<u32> = None;
    let mut labels: Option<HashMap<&str, u32>> = None;
    let mut in_comment = false;
    for (number, line) in (1..).zip(text.lines()) {
        let wrong = |problem: &str| format!("line {number}: {problem}: {:?}", line.trim());
        let words = without_comments(line, &mut in_comment);
        let words: Vec<&str> =
            words.iter().flat_map(|part| part.split_whitespace().flat_map(|word| word.split_inclusive(':'))).collect();
        match (words.as_slice(), &mut labels) {
            ([], _) => {}
            (["num_ranks", count], None) if expected.is_none() => {
                let count = count.parse().map_err(|_| wrong("no number of ranks"))?;
                expected = Some(count);
            }
            (["rank", rank, "{"], None) => {
                let rank: u32 = rank.parse().map_err(|_| wrong("no rank"))?;
                let next = u32::try_from(recorded.graph.ranks.len()).unwrap_or(u32::MAX);
                if rank != next {
                    return Err(wrong(&format!("rank {next} is next: ranks stand in order")));
                }
                recorded.graph.ranks.push(RankGraph::default());
                recorded.places.push(Vec::new());
                labels = Some(HashMap::new());
            }
            (["}"], Some(_)) => labels = None,
            ([node, how @ ("requires" | "irequires"), on], Some(labels)) => {
                let find = |label: &str| {
                    labels.get(label).copied().ok_or_else(|| wrong(&format!("no operation has the label {label:?}")))
                };
                let after = if *how == "requires" { After::End } else { After::Begin };
                let (node, on) = (find(node)?, find(on)?);
                if let Some(rank) = recorded.graph.ranks.last_mut() {
                    rank.depends(node, on, after);
                }
            }
            (words, Some(labels)) => {
                let (label, operation) = match words.split_first() {
                    Some((label, [":", rest @ ..])) => (Some(*label), rest),
                    Some((first, rest)) if first.ends_with(':') => (Some(first.trim_end_matches(':')), rest),
                    _ => (None, words),
                };
                let (kind, node) = operation_of(operation).map_err(|problem| wrong(&problem))?;
                let added = recorded.add(node, number, kind);
                if let Some(label) = label
                    && labels.insert(label, added).is_some()
                {
                    return Err(wrong(&format!("the label {label:?} stands twice")));
                }
            }
            (_, None) => return Err(wrong("num_ranks N, or rank N {, is expected")),
        }
    }
    if labels.is_some() {
        return Err("the last rank is not closed: } is missing".to_owned());
    }
    match expected {
        Some(count) if recorded.graph.ranks.len() == count as usize => Ok(()),
        Some(count) => Err(format!("num_ranks {count}, and {} ranks", recorded.graph.ranks.len())),
        None => Err("num_ranks is missing".to_owned()),
    }
}

/// The parts of a line outside comments.
fn without_comments<'l>(mut line: &'l str, in_comment: &mut bool) -> Vec<&'l str> {
    let mut parts = Vec::new();
    loop {
        if *in_comment {
            let Some((_, rest)) = line.split_once("*/") else { return parts };
            (line, *in_comment) = (rest, false);
        }
        let ends = [line.find("//").map(|at| (at, false)), line.find("/*").map(|at| (at, true))];
        let Some((at, opens)) = ends.into_iter().flatten().min() else {
            parts.push(line);
            return parts;
        };
        parts.push(&line[..at]);
        if !opens {
            return parts;
        }
        (line, *in_comment) = (&line[at + 2..], true);
    }
}

/// `calc N [cpu C]`, `send Nb to R [tag T] [cpu C] [nic N]`, `recv Nb from R [...]`; the `b` may stand apart.
fn operation_of(words: &[&str]) -> Result<(&'static str, Node), String> {
    const FORMS: &str = "calc N, send Nb to RANK or recv Nb from RANK is expected";
    let number = |word: &str| word.parse::<u64>().map_err(|_| format!("no number {word:?}"));
    match *words {
        ["calc", span, ref rest @ ..] => {
            let [_, stream, _] = attributes(rest, &["cpu"])?;
            let span = number(span)?.checked_mul(PS_PER_NS).ok_or("too long a calc")?;
            Ok(("calc", Node::Work { stream: stream.unwrap_or(0), span: Picoseconds(span) }))
        }
        [kind @ ("send" | "recv"), size, ref rest @ ..] => {
            let rest = if size.ends_with('b') { rest } else { rest.strip_prefix(&["b"]).ok_or(FORMS)? };
            let bytes = number(size.strip_suffix('b').unwrap_or(size))?;
            let (preposition, rank, rest) = match *rest {
                [preposition, rank, ref rest @ ..] => (preposition, rank, rest),
                _ => return Err(FORMS.to_owned()),
            };
            let [tag, ..] = attributes(rest, &["tag", "cpu", "nic"])?;
            match (kind, preposition, rank) {
                ("send", "to", rank) => Ok(("send", send(rank_of(rank)?, bytes, tag)?)),
                ("recv", "from", "-1") => Ok(("recv", receive(None, tag))),
                ("recv", "from", rank) => Ok(("recv", receive(Some(rank_of(rank)?), tag))),
                _ => Err(FORMS.to_owned()),
            }
        }
        _ => Err(FORMS.to_owned()),
    }
}

fn rank_of(word: &str) -> Result<u32, String> {
    word.parse().map_err(|_| format!("no rank {word:?}"))
}

fn send(to: u32, bytes: u64, tag: Option<u32>) -> Result<Node, String> {
    let tag = tag.unwrap_or(0);
    if tag == ANY {
        return Err("a message has a tag of its own, not -1".to_owned());
    }
    Ok(Node::Send { to: Rank(to), bytes: Bytes(bytes), tag: tag.cast_signed(), mode: SendMode::Standard })
}

fn receive(from: Option<u32>, tag: Option<u32>) -> Node {
    let tag = Some(tag.unwrap_or(0)).filter(|tag| *tag != ANY);
    Node::Recv { from: from.map(Rank), tag: tag.map(u32::cast_signed) }
}

/// Tag, CPU and NIC of an operation, each given at most once.
fn attributes(mut words: &[&str], allowed: &[&str]) -> Result<[Option<u32>; 3], String> {
    let mut found = [None; 3];
    while let [name, value, rest @ ..] = words {
        let place = ["tag", "cpu", "nic"].iter().position(|known| known == name && allowed.contains(known));
        let place = place.ok_or_else(|| format!("{name:?} is not one of {}", allowed.join(", ")))?;
        let value = match *value {
            "-1" if place == 0 => ANY,
            value => value.parse().map_err(|_| format!("no {name} {value:?}"))?,
        };
        if found[place].replace(value).is_some() {
            return Err(format!("{name} stands twice"));
        }
        words = rest;
    }
    match words {
        [] => Ok(found),
        words => Err(format!("{:?} has no value", words.join(" "))),
    }
}

/// Reads little-endian numbers one after another.
struct Numbers<'b>(&'b [u8]);

impl Numbers<'_> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N], String> {
        let (taken, rest) = self.0.split_first_chunk().ok_or("the file ends too early")?;
        self.0 = rest;
        Ok(*taken)
    }

    fn byte(&mut self) -> Result<u8, String> {
        self.take::<1>().map(|[byte]| byte)
    }

    fn u32(&mut self) -> Result<u32, String> {
        self.take().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Result<u64, String> {
        self.take().map(u64::from_le_bytes)
    }
}

/// After the magic number: the number of ranks, the greatest CPU and NIC, where each rank begins and ends, and the ranks. Per rank:
/// numbers of operations and of roots, the roots, the operations, and the dependents of each.
fn read_binary(recorded: &mut Recorded, bytes: &[u8]) -> Result<(), String> {
    let mut header = Numbers(bytes);
    let ranks = header.u32()?;
    header.take::<2>()?;
    let mut last = 0;
    for rank in 0..ranks {
        let (start, end) = (header.u64()?, header.u64()?);
        if start < last {
            return Err(format!("rank {rank}: it begins before rank {} ends", rank.saturating_sub(1)));
        }
        last = end;
        let within = |at: u64| usize::try_from(at).ok().filter(|at| *at <= bytes.len());
        let part = within(start).zip(within(end)).and_then(|(start, end)| bytes.get(start..end));
        let part = part.ok_or_else(|| format!("rank {rank}: it begins or ends beyond the end of the file"))?;
        recorded.graph.ranks.push(RankGraph::default());
        recorded.places.push(Vec::new());
        read_rank(recorded, part).map_err(|problem| format!("rank {rank}: {problem}"))?;
    }
    Ok(())
}

fn read_rank(recorded: &mut Recorded, bytes: &[u8]) -> Result<(), String> {
    let mut numbers = Numbers(bytes);
    let (count, roots) = (numbers.u32()?, numbers.u32()?);
    let short = "the file ends too early";
    let operations = numbers.0.get(4 * roots as usize..).ok_or(short)?;
    let (mut operations, dependents) = operations.split_at_checked(OPERATION * count as usize).ok_or(short)?;
    let mut edges = Vec::new();
    for number in 0..count {
        let mut of = Numbers(operations);
        let wrong = |problem: String| format!("operation {number}: {problem}");
        let (_, kind, partner, size, tag) = (of.u32()?, of.byte()?, of.u32()?, of.u64()?, of.u32()?);
        let (stream, _) = (of.byte()?, of.byte()?);
        let from = (partner != ANY).then_some(partner);
        let (kind, node) = match kind {
            1 => ("send", send(partner, size, Some(tag)).map_err(wrong)?),
            2 => ("recv", receive(from, Some(tag))),
            3 => {
                let span = size.checked_mul(PS_PER_NS).ok_or_else(|| wrong("too long a calc".to_owned()))?;
                ("calc", Node::Work { stream: stream.into(), span: Picoseconds(span) })
            }
            other => return Err(wrong(format!("the kind {other} is none of 1 (send), 2 (recv), 3 (calc)"))),
        };
        recorded.add(node, number.into(), kind);
        for after in [After::End, After::Begin] {
            let (many, first) = (of.u32()?, of.u32()?);
            if 4 * (edges.len() + many as usize) > dependents.len() {
                return Err(short.to_owned());
            }
            for place in (u64::from(first)..).take(many as usize) {
                let at = usize::try_from(4 * place).map_err(|_| short)?;
                let dependent = dependents.get(at..).and_then(<[u8]>::first_chunk).ok_or(short)?;
                let dependent = u32::from_le_bytes(*dependent);
                if dependent >= count {
                    return Err(wrong(format!("operation {dependent} of {count} depends on it")));
                }
                edges.push((dependent, number, after));
            }
        }
        operations = of.0;
    }
    if let Some(rank) = recorded.graph.ranks.last_mut() {
        edges.into_iter().for_each(|(node, on, after)| rank.depends(node, on, after));
    }
    Ok(())
}
