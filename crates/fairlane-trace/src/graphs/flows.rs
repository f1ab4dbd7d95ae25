//! Lists of flows, as packet simulators read them: connection matrices of htsim (`.cm`), and flow files of ns-3 with HPCC (SimAI's
//! too). A flow is one eager message that its sender begins at its time, or, by a trigger of htsim, when other flows of the same host
//! have ended; all flows of a host are under way at once. A flow that sets off a trigger when it has been sent is a rendezvous.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use fairlane_core::ids::Rank;
use fairlane_core::program::SendMode;
use fairlane_core::program::graph::{After, Node, RankGraph};
use fairlane_core::units::{Bytes, Picoseconds};

use super::Recorded;
use crate::TraceError;

const PS_PER_S: f64 = 1e12;
/// Most hosts, so that a damaged number does not take all memory.
const MOST_NODES: u32 = 1 << 20;

/// A flow, with the line on which it stands.
#[derive(Default)]
struct Flow {
    line: u64,
    from: u32,
    to: u32,
    bytes: u64,
    start: u64,
    /// The trigger by which it begins, and those that it sets off when it has been sent, and received.
    trigger: Option<u64>,
    sent: Option<u64>,
    received: Option<u64>,
}

/// How many flows set off each trigger of a connection matrix.
type Triggers = BTreeMap<u64, u64>;

/// Whether a file that starts so is a connection matrix or a list of flows.
pub fn is_one(start: &[u8]) -> bool {
    let start = String::from_utf8_lossy(start);
    let mut lines = start.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    let (first, second) = (lines.next().unwrap_or_default(), lines.next().unwrap_or_default());
    let matrix = first.strip_prefix("Nodes ").is_some_and(|count| count.trim().parse::<u32>().is_ok());
    matrix || first.parse::<u64>().is_ok() && second.split_whitespace().count() == 6
}

/// Reads a connection matrix or a list of flows.
///
/// # Errors
/// [`TraceError::File`] names the line that is wrong.
pub fn read(file: &Path) -> Result<Recorded, TraceError> {
    let text = fs::read_to_string(file).map_err(|error| TraceError::file(file, error))?;
    let wrong = |problem: String| TraceError::file(file, problem);
    let matrix = text.lines().any(|line| line.trim_start().starts_with("Nodes "));
    let (nodes, flows, triggers) = if matrix { connections(&text) } else { list(&text) }.map_err(wrong)?;
    if nodes == 0 {
        return Err(wrong("no hosts".to_owned()));
    }
    if nodes > MOST_NODES {
        return Err(wrong(format!("{nodes} hosts: at most {MOST_NODES}")));
    }
    let format = if matrix { "htsim" } else { "ns-3" };
    let mut recorded = Recorded { files: vec![file.to_owned()], format, place: "line", ..Recorded::default() };
    let six_numbers = |line: &&str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        words.len() == 6 && words.iter().all(|word| word.parse::<f64>().is_ok())
    };
    let written = text.lines().filter(six_numbers).count();
    recorded.version = match flows.len() {
        _ if matrix => "connection matrix".to_owned(),
        count if count < written => format!("flows, the first {count} of {written}"),
        _ => "flows".to_owned(),
    };
    recorded.graph.ranks = vec![RankGraph::default(); nodes as usize];
    recorded.places = vec![Vec::new(); nodes as usize];
    recorded.add_flows(&flows, &triggers).map_err(wrong)?;
    Ok(recorded)
}

fn connections(text: &str) -> Result<(u32, Vec<Flow>, Triggers), String> {
    let (mut nodes, mut flows, mut expected) = (None, Vec::new(), None);
    let (mut triggers, mut announced) = (Triggers::new(), None);
    for (line, content) in (1..).zip(text.lines()) {
        let wrong = |problem: &str| format!("line {line}: {problem}: {:?}", content.trim());
        let words: Vec<&str> = content.split_whitespace().collect();
        match *words {
            [] => {}
            [first, ..] if first.starts_with('#') => {}
            ["Nodes", count] => nodes = Some(count.parse().map_err(|_| wrong("no number of nodes"))?),
            ["Connections", count] => expected = Some(count.parse::<usize>().map_err(|_| wrong("no number"))?),
            ["Triggers", count] => announced = Some(count.parse::<usize>().map_err(|_| wrong("no number"))?),
            ["Failures", "0"] => {}
            ["trigger", "id", id, ref kind @ ..] => {
                let number = |word: &str| word.parse::<u64>().map_err(|_| wrong("no number"));
                let causes = match *kind {
                    ["oneshot"] => 1,
                    ["barrier", "count", count] => number(count)?,
                    ["multishot", ..] => return Err(wrong("a multishot trigger is not simulated")),
                    _ => return Err(wrong("trigger id ID oneshot, or barrier count COUNT, is expected")),
                };
                triggers.insert(number(id)?, causes);
            }
            ["Failures" | "failure", ..] => return Err(wrong("failures are faults of a scenario")),
            [ends, ref attributes @ ..] => {
                let (from, to) = ends.split_once("->").ok_or_else(|| wrong("FROM->TO is expected"))?;
                let host = |word: &str| word.parse::<u32>().map_err(|_| wrong("no host"));
                let mut flow = Flow { line, from: host(from)?, to: host(to)?, ..Flow::default() };
                let (mut sized, mut started) = (false, false);
                let mut attributes = attributes.iter().copied().peekable();
                while let Some(name) = attributes.next() {
                    let value = attributes.next_if(|value| name != "msg" || value.parse::<u64>().is_ok());
                    let value = match value {
                        Some(value) => value,
                        None if name == "msg" => continue, // a message without a number
                        None => return Err(wrong("an attribute has no value")),
                    };
                    let number = || value.parse::<u64>().map_err(|_| wrong(&format!("no number {value:?}")));
                    match name {
                        "id" | "msg" | "prio" => drop(number()?),
                        "size" => (flow.bytes, sized) = (number()?, true),
                        "start" => {
                            (flow.start, started) = (picoseconds(value, 1.0).ok_or_else(|| wrong("no time"))?, true)
                        }
                        "trigger" => (flow.trigger, started) = (Some(number()?), true),
                        "send_done_trigger" => flow.sent = Some(number()?),
                        "recv_done_trigger" => flow.received = Some(number()?),
                        other => return Err(wrong(&format!("an unknown attribute {other:?}"))),
                    }
                }
                if !(sized && started) {
                    return Err(wrong("size, and start or trigger, are needed"));
                }
                flows.push(flow);
            }
        }
    }
    let nodes = nodes.ok_or("Nodes is missing")?;
    for (name, announced, count) in [("Connections", expected, flows.len()), ("Triggers", announced, triggers.len())] {
        if let Some(announced) = announced.filter(|announced| *announced != count) {
            return Err(format!("{name} {announced}, and {count} follow"));
        }
    }
    Ok((nodes, flows, triggers))
}

/// The number of flows, then a line each: sender, receiver, priority group, port, bytes, start in seconds. What follows is ignored, as
/// by HPCC, whose files have notes and more flows there.
fn list(text: &str) -> Result<(u32, Vec<Flow>, Triggers), String> {
    let mut lines = (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty() && !line.starts_with('#'));
    let count: Option<usize> = lines.next().and_then(|(_, line)| line.trim().parse().ok());
    let mut flows = Vec::new();
    for (line, content) in lines {
        let wrong = || format!("line {line}: FROM TO GROUP PORT BYTES START is expected: {:?}", content.trim());
        let words: Vec<&str> = content.split_whitespace().collect();
        if count == Some(flows.len()) {
            break;
        }
        let [from, to, _, _, bytes, start] = *words else { return Err(wrong()) };
        let (from, to) = from.parse().ok().zip(to.parse().ok()).ok_or_else(wrong)?;
        let (bytes, start) = bytes.parse().ok().zip(picoseconds(start, PS_PER_S)).ok_or_else(wrong)?;
        flows.push(Flow { line, from, to, bytes, start, ..Flow::default() });
    }
    if count != Some(flows.len()) {
        return Err(format!("line 1: {} flows, and {} follow", count.unwrap_or(0), flows.len()));
    }
    let nodes = flows.iter().map(|flow| flow.from.max(flow.to)).max().map_or(0, |last| last.saturating_add(1));
    Ok((nodes, flows, Triggers::new()))
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked, and saturates")]
fn picoseconds(word: &str, unit: f64) -> Option<u64> {
    let time = word.parse::<f64>().ok()? * unit;
    (time >= 0.0 && time.is_finite()).then(|| time.round() as u64)
}

impl Recorded {
    fn add_to(&mut self, rank: u32, node: Node, line: u64) -> u32 {
        self.places[rank as usize].push(line);
        self.graph.ranks[rank as usize].node(node)
    }

    fn add_flows(&mut self, flows: &[Flow], triggers: &Triggers) -> Result<(), String> {
        let nodes = self.graph.ranks.len();
        // By trigger: the nodes whose completion sets it off, as rank and node.
        let mut causes: BTreeMap<u64, Vec<(u32, u32)>> = BTreeMap::new();
        let mut sends = Vec::new();
        for (tag, flow) in (0..).zip(flows) {
            let Flow { line, from, to, bytes, .. } = *flow;
            if from.max(to) as usize >= nodes || from == to {
                return Err(format!("line {line}: {from}->{to}: two of {nodes} hosts, 0 to {}", nodes - 1));
            }
            // A rendezvous ends when the last byte has come; an eager send when the adapter has it.
            let mode = if flow.sent.is_some() { SendMode::Synchronous } else { SendMode::Eager };
            let send = Node::Send { to: Rank(to), bytes: Bytes(bytes), tag, mode };
            let send = self.add_to(from, send, line);
            let receive = self.add_to(to, Node::Recv { from: Some(Rank(from)), tag: Some(tag) }, line);
            for (trigger, end) in [(flow.sent, (from, send)), (flow.received, (to, receive))] {
                trigger.into_iter().for_each(|trigger| causes.entry(trigger).or_default().push(end));
            }
            *self.kinds.entry("flow".to_owned()).or_default() += 1;
            sends.push(send);
        }
        // Hosts wait from start to start: each wait ends when the next flows begin.
        let mut by_start: Vec<usize> = (0..flows.len()).filter(|flow| flows[*flow].start > 0).collect();
        by_start.sort_by_key(|flow| (flows[*flow].from, flows[*flow].start));
        let mut last: Option<(u32, u64, u32)> = None; // host, time, node
        for flow in by_start {
            let Flow { from, start, line, .. } = flows[flow];
            let before = last.filter(|(host, ..)| *host == from).map_or(0, |(_, at, _)| at);
            let wait = match last {
                Some((host, at, wait)) if host == from && at == start => wait,
                Some((host, _, wait)) if host == from => {
                    let next = self.add_to(from, Node::Delay(Picoseconds(start - before)), line);
                    self.graph.ranks[from as usize].depends(next, wait, After::End);
                    next
                }
                _ => self.add_to(from, Node::Delay(Picoseconds(start - before)), line),
            };
            last = Some((from, start, wait));
            self.graph.ranks[from as usize].depends(sends[flow], wait, After::End);
        }
        for (flow, send) in flows.iter().zip(sends) {
            let Some(trigger) = flow.trigger else { continue };
            let causes = causes.get(&trigger).map(Vec::as_slice).unwrap_or_default();
            let wrong = |problem: &str| Err(format!("line {}: trigger {trigger} {problem}", flow.line));
            match triggers.get(&trigger) {
                None => return wrong("is not defined"),
                Some(count) if *count != causes.len() as u64 => {
                    return wrong(&format!("waits for {count} flows, and {} set it off", causes.len()));
                }
                Some(_) if causes.iter().any(|(rank, _)| *rank != flow.from) => {
                    return wrong("is set off at another host than that of the flow: no such triggers are simulated");
                }
                Some(_) => {}
            }
            causes.iter().for_each(|(_, end)| self.graph.ranks[flow.from as usize].depends(send, *end, After::End));
        }
        Ok(())
    }
}
