//! Chakra execution traces (MLCommons), versions 0.0.4 and 1.0: a file `NAME.RANK.et` a rank, each a sequence of Protocol Buffers
//! messages with their lengths before them; field numbers are those of `et_def.proto`.
//!
//! Computations take their recorded duration, one after another on each thread of the CPU (`is_cpu_op`, `tid`) and on each
//! stream of the GPU. Sends are eager whatever their size: traces have receives that begin only after a send has ended, all
//! around a ring. `data_deps` are what a node waits for, as for Chakra's own feeder; `ctrl_deps` name the call within which
//! it was recorded. A `COMM_COLL_NODE` with `is_cpu_op` and without `comm_size` is the launch of a collective; it takes no
//! time. Messages and collectives take what the simulated network makes of them. `comm_size` is the size of the send buffer:
//! the whole one of an allreduce, the block of a rank in an allgather, the blocks for all ranks of an all-to-all, a
//! reduce-scatter or a scatter. Process groups are those of [`Options::groups`], if given, else those that PyTorch recorded.
//! A node without `pg_name` is of all ranks, and so are `0` and `default_pg` if no groups are defined; other unknown names
//! are errors.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};

use fairlane_core::ids::Rank;
use fairlane_core::program::graph::{After, Node, RankGraph};
use fairlane_core::program::{CollectiveKind, SendMode, Volume};
use fairlane_core::units::{Bytes, Picoseconds};
use prost::Message;
use serde::Deserialize;

use super::Recorded;
use crate::{Options, TraceError};

const PS_PER_US: u64 = 1_000_000;

#[derive(Clone, PartialEq, Message)]
struct Metadata {
    #[prost(string, tag = "1")]
    version: String,
    #[prost(message, repeated, tag = "2")]
    attributes: Vec<Attribute>,
}

#[derive(Clone, PartialEq, Message)]
struct Record {
    #[prost(uint64, tag = "1")]
    id: u64,
    #[prost(string, tag = "2")]
    name: String,
    #[prost(int32, tag = "3")]
    kind: i32,
    #[prost(uint64, repeated, tag = "5")]
    data_deps: Vec<u64>,
    #[prost(uint64, tag = "7")]
    duration_micros: u64,
    #[prost(message, optional, tag = "8")]
    inputs: Option<Inputs>,
    #[prost(message, repeated, tag = "10")]
    attributes: Vec<Attribute>,
}

#[derive(Clone, PartialEq, Message)]
struct Inputs {
    #[prost(string, tag = "1")]
    values: String,
}

#[derive(Clone, PartialEq, Message)]
struct Attribute {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(oneof = "Value", tags = "7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29")]
    value: Option<Value>,
}

#[derive(Clone, PartialEq, prost::Oneof)]
enum Value {
    #[prost(int32, tag = "7")]
    Int32(i32),
    #[prost(int64, tag = "9")]
    Int64(i64),
    #[prost(uint32, tag = "11")]
    Uint32(u32),
    #[prost(uint64, tag = "13")]
    Uint64(u64),
    #[prost(sint32, tag = "15")]
    Sint32(i32),
    #[prost(sint64, tag = "17")]
    Sint64(i64),
    #[prost(fixed32, tag = "19")]
    Fixed32(u32),
    #[prost(fixed64, tag = "21")]
    Fixed64(u64),
    #[prost(sfixed32, tag = "23")]
    Sfixed32(i32),
    #[prost(sfixed64, tag = "25")]
    Sfixed64(i64),
    #[prost(bool, tag = "27")]
    Bool(bool),
    #[prost(string, tag = "29")]
    Text(String),
}

/// Node types by number.
const KINDS: [&str; 8] = [
    "INVALID_NODE",
    "METADATA_NODE",
    "MEM_LOAD_NODE",
    "MEM_STORE_NODE",
    "COMP_NODE",
    "COMM_SEND_NODE",
    "COMM_RECV_NODE",
    "COMM_COLL_NODE",
];

/// Collectives by number, as they are executed.
const COLLECTIVES: [CollectiveKind; 10] = [
    CollectiveKind::Allreduce,
    CollectiveKind::Reduce,
    CollectiveKind::Allgather,
    CollectiveKind::Gather,
    CollectiveKind::Scatter,
    CollectiveKind::Bcast,
    CollectiveKind::Alltoall,
    CollectiveKind::ReduceScatter,
    CollectiveKind::ReduceScatter,
    CollectiveKind::Barrier,
];

/// The files of all ranks at a path: a folder, or one of the files. `None` if there are none.
///
/// # Errors
/// Files of a rank are missing, or there are several traces.
pub fn find(path: &Path) -> Result<Option<Vec<PathBuf>>, TraceError> {
    let chosen = numbered(path).map(|(name, _)| name);
    let folder = if path.is_dir() { path } else { path.parent().unwrap_or(path) };
    if chosen.is_none() && !path.is_dir() {
        return Ok(None);
    }
    let Ok(entries) = fs::read_dir(folder) else { return Ok(None) };
    let mut traces: BTreeMap<String, BTreeMap<u32, PathBuf>> = BTreeMap::new();
    for file in entries.flatten().map(|entry| entry.path()) {
        if let Some((name, rank)) = numbered(&file)
            && chosen.as_ref().is_none_or(|chosen| *chosen == name)
        {
            traces.entry(name).or_default().insert(rank, file);
        }
    }
    let mut traces = traces.into_iter();
    let Some((name, files)) = traces.next() else { return Ok(None) };
    if let Some((other, _)) = traces.next() {
        let problem = format!("traces {name}.*.et and {other}.*.et: name a file of the one to be read");
        return Err(TraceError::file(path, problem));
    }
    if let Some(missing) = (0..).zip(files.keys()).find_map(|(rank, of)| (rank != *of).then_some(rank)) {
        let problem = format!("{name}.{missing}.et is missing: {} files are there", files.len());
        return Err(TraceError::file(folder, problem));
    }
    Ok(Some(files.into_values().collect()))
}

/// Name and rank of `NAME.RANK.et`.
fn numbered(file: &Path) -> Option<(String, u32)> {
    let (name, rank) = file.file_name()?.to_str()?.strip_suffix(".et")?.rsplit_once('.')?;
    Some((name.to_owned(), rank.parse().ok()?))
}

/// Reads the traces of all ranks.
///
/// # Errors
/// A file is damaged, a node lacks what it needs, or depends on one that does not exist.
pub fn read(files: &[PathBuf], options: &Options) -> Result<Recorded, TraceError> {
    let mut recorded = Recorded { files: files.to_vec(), format: "Chakra", place: "node", ..Recorded::default() };
    let all = u32::try_from(files.len()).unwrap_or(u32::MAX);
    if let Some(groups) = &options.groups {
        let wrong = |problem: String| TraceError::file(groups, problem);
        let text = fs::read_to_string(groups).map_err(|error| wrong(error.to_string()))?;
        let given: BTreeMap<String, Vec<u32>> = serde_json::from_str(&text)
            .map_err(|error| wrong(format!("no groups {{\"NAME\": [RANK, ...]}}: {error}")))?;
        for (name, members) in given {
            recorded.add_group(&name, members, all).map_err(wrong)?;
        }
    }
    for (rank, file) in (0..).zip(files) {
        let bytes = fs::read(file).map_err(|error| TraceError::file(file, error))?;
        recorded.graph.ranks.push(RankGraph::default());
        recorded.places.push(Vec::new());
        let mut reader = Reader { recorded: &mut recorded, options, rank, all, streams: HashMap::new() };
        if let Err((id, problem)) = reader.read(&bytes) {
            let file = file.clone();
            return Err(match id {
                Some(number) => TraceError::Node { file, rank, place: "node", number, problem },
                None => TraceError::file(&file, problem),
            });
        }
    }
    Ok(recorded)
}

impl Recorded {
    fn add_group(&mut self, name: &str, members: Vec<u32>, ranks: u32) -> Result<(), String> {
        let members = if members.is_empty() { (0..ranks).collect() } else { members };
        if members.iter().collect::<HashSet<_>>().len() < members.len() {
            return Err(format!("group {name} has a rank twice"));
        }
        if let Some(stranger) = members.iter().find(|member| **member >= ranks) {
            return Err(format!("group {name} has rank {stranger}, and there are {ranks} ranks"));
        }
        let members = super::group(members);
        match self.groups.iter().position(|known| known == name) {
            Some(known) if self.graph.groups[known] != members => {
                Err(format!("group {name} stands twice, with other ranks"))
            }
            Some(_) => Ok(()),
            None => {
                self.groups.push(name.to_owned());
                self.graph.groups.push(members);
                Ok(())
            }
        }
    }
}

/// A node, if there is one, and what is wrong with it or with the file.
type Wrong = (Option<u64>, String);

struct Reader<'r> {
    recorded: &'r mut Recorded,
    options: &'r Options,
    rank: u32,
    all: u32,
    /// Streams of work by whether they are of the CPU, and thread or stream there.
    streams: HashMap<(bool, u64), u32>,
}

impl Reader<'_> {
    fn read(&mut self, mut bytes: &[u8]) -> Result<(), Wrong> {
        let damaged = |error| (None, format!("no Chakra execution trace: {error}"));
        let metadata = Metadata::decode_length_delimited(&mut bytes).map_err(damaged)?;
        // A recording of PyTorch has its version as an attribute.
        let schema = || Attributes(&metadata.attributes).text("schema").unwrap_or_default();
        let version = Some(metadata.version.clone()).filter(|version| !version.is_empty()).unwrap_or_else(schema);
        let known = &self.recorded.version;
        if self.rank > 0 && version != *known {
            return Err((None, format!("version {version}, and that of rank 0 is {known}")));
        }
        self.recorded.version = version;
        let mut records = Vec::new();
        while !bytes.is_empty() {
            let cut = |error| match records.last() {
                Some(Record { id, .. }) => (Some(*id), format!("damaged after it: {error}")),
                None => (None, format!("damaged at its first node: {error}")),
            };
            let record = Record::decode_length_delimited(&mut bytes).map_err(cut)?;
            records.push(record);
        }
        records.iter().try_for_each(|record| self.read_groups(record).map_err(|problem| (Some(record.id), problem)))?;
        let mut numbers = HashMap::new();
        for record in &records {
            let wrong = |problem| (Some(record.id), problem);
            let kind = KINDS.get(usize::try_from(record.kind).unwrap_or(KINDS.len())).copied();
            let kind = kind.ok_or_else(|| wrong(format!("an unknown node type, {}", record.kind)))?;
            let node = self.node(record, kind).map_err(wrong)?;
            let number = self.recorded.add(node, record.id, kind);
            if numbers.insert(record.id, number).is_some() {
                return Err(wrong("its number stands twice".to_owned()));
            }
        }
        for record in &records {
            let of_data = |on: &u64| {
                numbers.get(on).ok_or_else(|| (Some(record.id), format!("it depends on node {on}, which there is not")))
            };
            let data = record.data_deps.iter().map(of_data).collect::<Result<Vec<_>, _>>()?;
            if let Some(rank) = self.recorded.graph.ranks.last_mut() {
                data.into_iter().for_each(|on| rank.depends(numbers[&record.id], *on, After::End));
            }
        }
        Ok(())
    }

    /// The process groups that PyTorch has recorded as the input of a node.
    fn read_groups(&mut self, record: &Record) -> Result<(), String> {
        #[derive(Deserialize)]
        struct Group {
            pg_name: serde_json::Value,
            ranks: Vec<u32>,
        }
        let Some(values) = record.inputs.as_ref().map(|inputs| &inputs.values) else { return Ok(()) };
        if !record.name.contains("process_group") || self.options.groups.is_some() {
            return Ok(());
        }
        let Some(list) = values.find("[{").and_then(|start| Some(&values[start..values.rfind("}]")? + 2])) else {
            return Ok(());
        };
        let groups: Vec<Group> = serde_json::from_str(list).map_err(|error| format!("its process groups: {error}"))?;
        for Group { pg_name, ranks } in groups {
            let name = pg_name.as_str().map_or_else(|| pg_name.to_string(), str::to_owned);
            self.recorded.add_group(&name, ranks, self.all)?;
        }
        Ok(())
    }

    /// The executed part of a node; `Err`: why it cannot be read. A part that cannot be simulated is noted, or left out.
    fn node(&mut self, record: &Record, kind: &str) -> Result<Node, String> {
        let attributes = Attributes(&record.attributes);
        let bytes = || attributes.number("comm_size")?.ok_or("no comm_size".to_owned());
        let tag = || attributes.number("comm_tag").map(|tag| i32::try_from(tag.unwrap_or(0)).unwrap_or(i32::MAX));
        let partner = |name: &str| {
            let rank = attributes.number(name)?.ok_or(format!("no {name}"))?;
            u32::try_from(rank).map(Rank).map_err(|_| format!("{name} = {rank}"))
        };
        let missing = match kind {
            "COMM_SEND_NODE" => {
                let (to, bytes) = (partner("comm_dst")?, Bytes(bytes()?));
                return Ok(Node::Send { to, bytes, tag: tag()?, mode: SendMode::Eager });
            }
            "COMM_RECV_NODE" => return Ok(Node::Recv { from: Some(partner("comm_src")?), tag: Some(tag()?) }),
            "COMM_COLL_NODE" if attributes.flag("is_cpu_op") && attributes.value("comm_size").is_none() => {
                return Ok(Node::Join);
            }
            "COMM_COLL_NODE" => return self.collective(&attributes, bytes()?),
            "COMP_NODE" if record.duration_micros > 0 => {
                let span = record.duration_micros.checked_mul(PS_PER_US).ok_or("too long a duration")?;
                let stream = self.stream(&attributes)?;
                return Ok(Node::Work { stream, span: Picoseconds(span) });
            }
            "COMP_NODE" if attributes.number("num_ops")?.unwrap_or(0) > 0 => {
                "it has num_ops and no duration: a time is needed, as a roofline model gives it"
            }
            "MEM_LOAD_NODE" | "MEM_STORE_NODE" => "remote memory is not simulated",
            _ => return Ok(Node::Join),
        };
        if !self.options.leaves_out(kind) {
            self.recorded.unsupported.add(kind, missing.to_owned(), self.rank, record.id);
        }
        Ok(Node::Join)
    }

    /// The stream of a node: a thread of the CPU or a stream of the GPU.
    fn stream(&mut self, attributes: &Attributes<'_>) -> Result<u32, String> {
        let stream = (attributes.flag("is_cpu_op"), attributes.number("tid")?.unwrap_or(0));
        let next = u32::try_from(self.streams.len()).unwrap_or(u32::MAX);
        Ok(*self.streams.entry(stream).or_insert(next))
    }

    fn collective(&mut self, attributes: &Attributes<'_>, bytes: u64) -> Result<Node, String> {
        let number = attributes.number("comm_type")?.ok_or("no comm_type")?;
        let kind = usize::try_from(number).ok().and_then(|number| COLLECTIVES.get(number)).copied();
        let kind = kind.ok_or_else(|| format!("comm_type = {number} is not one of 0 to {}", COLLECTIVES.len() - 1))?;
        let group = match attributes.text("pg_name").filter(|name| !name.is_empty()) {
            // The group of all ranks of PyTorch.
            Some(name) if self.recorded.groups.is_empty() && ["0", "default_pg"].contains(&&*name) => None,
            Some(name) if self.recorded.groups.is_empty() => {
                return Err(format!("pg_name = {name:?}, and the trace defines no process groups: give trace.groups"));
            }
            Some(name) => {
                let known = self.recorded.groups.iter().position(|known| *known == name);
                Some(known.ok_or_else(|| {
                    format!("pg_name = {name:?} is none of the groups {}", self.recorded.groups.join(", "))
                })?)
            }
            None => None,
        };
        let members = group.map_or(u64::from(self.all), |group| self.recorded.graph.groups[group].len() as u64);
        let block = match kind {
            CollectiveKind::Alltoall | CollectiveKind::ReduceScatter | CollectiveKind::Scatter => {
                bytes.div_ceil(members)
            }
            CollectiveKind::Barrier => 0,
            _ => bytes,
        };
        let root = attributes.number("root_rank")?.unwrap_or(0);
        let root = Rank(u32::try_from(root).map_err(|_| format!("root_rank = {root}"))?);
        if u64::from(root.0) >= members {
            return Err(format!("root_rank = {root} of {members} ranks"));
        }
        let stream = if attributes.value("tid").is_some() { Some(self.stream(attributes)?) } else { None };
        Ok(Node::Collective { kind, group, root, volume: Volume::Uniform(Bytes(block)), stream })
    }
}

/// The attributes of a node.
struct Attributes<'a>(&'a [Attribute]);

impl Attributes<'_> {
    fn value(&self, name: &str) -> Option<&Value> {
        self.0.iter().find(|attribute| attribute.name == name)?.value.as_ref()
    }

    /// A number that is not negative, of whatever type.
    fn number(&self, name: &str) -> Result<Option<u64>, String> {
        let Some(value) = self.value(name) else { return Ok(None) };
        let number: Option<u64> = match *value {
            Value::Int32(n) | Value::Sint32(n) | Value::Sfixed32(n) => u64::try_from(n).ok(),
            Value::Int64(n) | Value::Sint64(n) | Value::Sfixed64(n) => u64::try_from(n).ok(),
            Value::Uint32(n) | Value::Fixed32(n) => Some(n.into()),
            Value::Uint64(n) | Value::Fixed64(n) => Some(n),
            Value::Bool(_) | Value::Text(_) => None,
        };
        number.map(Some).ok_or_else(|| format!("{name} is no number from 0 on"))
    }

    fn flag(&self, name: &str) -> bool {
        matches!(self.value(name), Some(Value::Bool(true)))
    }

    /// A name, which may be written as a number.
    fn text(&self, name: &str) -> Option<String> {
        match self.value(name)? {
            Value::Text(text) => Some(text.clone()),
            _ => self.number(name).ok().flatten().map(|number| number.to_string()),
        }
    }
}
