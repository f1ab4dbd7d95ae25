//! Workload files of SimAI, as AICB writes them: a line for each layer, with its computations and collectives in the forward pass, for
//! the gradients of inputs, and for those of weights.
//!
//! A pass is executed as `Workload.cc` of SimAI executes `HYBRID_TRANSFORMER_FWD_IN_BCKWD`: forward through all layers, then backward, a
//! computation and a collective after the other; collectives of weight gradients go on beside what follows. After a collective its update
//! time passes. Sizes are of the whole buffer. Groups are those of `MockNcclGroup.cc`: of n GPUs with t in a tensor group and e in an
//! expert group, TP has neighbours, DP every t-th GPU, EP e TP groups next to each other, DP_EP every e-th of the TP groups. Collectives
//! without a suffix are of TP, for weight gradients of DP. Recomputation from checkpoints is named before a run.

mod pipeline;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use fairlane_core::ids::Rank;
use fairlane_core::program::graph::{After, Node, RankGraph};
use fairlane_core::program::{CollectiveKind, Volume};
use fairlane_core::units::{Bytes, Picoseconds};

use self::pipeline::Pipeline;
use super::Recorded;
use crate::{Options, TraceError};

const PS_PER_NS: u64 = 1000;
/// Most operations of all ranks, so that a file does not take all memory.
const MOST_OPERATIONS: u64 = 50_000_000;
/// The layer that SimAI leaves out of the bubble.
const EMBEDDING: &str = "embedding_layer";
const POLICY: &str = "HYBRID_TRANSFORMER_FWD_IN_BCKWD";
/// Other policies of files in this form.
const OTHERS: [&str; 10] = [
    "DATA",
    "MODEL",
    "MICRO",
    "HYBRID_DATA_MODEL",
    "HYBRID_MODEL_DATA",
    "HYBRID_DLRM",
    "HYBRID_DLRM_ENHANCED",
    "HYBRID_TRANSFORMER",
    "HYBRID_CUSTOMIZED",
    "DISTRIBUTED_INFERENCE",
];
const KEYS: [&str; 9] =
    ["model_parallel_NPU_group", "ep", "pp", "vpp", "ga", "all_gpus", "checkpoints", "checkpoint_initiates", "pp_comm"];
const COLLECTIVES: [(&str, CollectiveKind); 4] = [
    ("ALLREDUCE", CollectiveKind::Allreduce),
    ("ALLGATHER", CollectiveKind::Allgather),
    ("REDUCESCATTER", CollectiveKind::ReduceScatter),
    ("ALLTOALL", CollectiveKind::Alltoall),
];

/// A family of groups.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Family {
    Tp,
    Dp,
    Ep,
    DpEp,
}

impl Family {
    const ALL: [Self; 4] = [Self::Tp, Self::Dp, Self::Ep, Self::DpEp];

    const fn name(self) -> &'static str {
        match self {
            Self::Tp => "tp",
            Self::Dp => "dp",
            Self::Ep => "ep",
            Self::DpEp => "dp_ep",
        }
    }
}

/// How many GPUs there are, and how many in a tensor group and in an expert group.
#[derive(Clone, Copy)]
struct Sizes {
    gpus: u32,
    tensor: u32,
    expert: u32,
    pipeline: Option<Pipeline>,
}

impl Sizes {
    const fn members(self, family: Family) -> u32 {
        let data = self.gpus / self.tensor;
        match family {
            Family::Tp => self.tensor,
            Family::Dp => data,
            Family::Ep => self.expert,
            Family::DpEp => data / self.expert,
        }
    }

    /// The number of the group of a rank among those of the family.
    const fn group_of(self, family: Family, rank: u32) -> u32 {
        let (place, block) = (rank % self.tensor, rank / self.tensor);
        match family {
            Family::Tp => block,
            Family::Dp => place,
            Family::Ep => block / self.expert * self.tensor + place,
            Family::DpEp => block % self.expert * self.tensor + place,
        }
    }
}

/// A computation and the collective after it.
struct Step<'t> {
    span: Picoseconds,
    kind: &'t str,
    /// The collective, if there is one that can be simulated.
    collective: Option<(CollectiveKind, Family, u64)>,
}

struct Layer<'t> {
    line: u64,
    name: &'t str,
    forward: Step<'t>,
    inputs: Step<'t>,
    weights: Step<'t>,
    update: Picoseconds,
}

/// Whether a file that starts so is one of these. A first line with many checkpoints may be longer than the start.
pub fn is_one(start: &[u8]) -> bool {
    let start = String::from_utf8_lossy(start);
    let mut lines = start.lines();
    let policy = lines.next().and_then(|line| line.split_whitespace().next()).unwrap_or_default();
    let counts = lines.next().map_or(policy == POLICY, |line| line.trim().parse::<u64>().is_ok());
    counts && (policy == POLICY || OTHERS.contains(&policy))
}

/// Reads a workload file.
///
/// # Errors
/// [`TraceError::File`] names the line that is wrong.
pub fn read(file: &Path, options: &Options) -> Result<Recorded, TraceError> {
    let text = fs::read_to_string(file).map_err(|error| TraceError::file(file, error))?;
    let wrong = |problem: String| TraceError::file(file, problem);
    let mut recorded = Recorded { files: vec![file.to_owned()], format: "SimAI", place: "line", ..Recorded::default() };
    let first = text.lines().next().unwrap_or_default();
    let sizes = header(&mut recorded, first, options).map_err(|problem| wrong(format!("line 1: {problem}")))?;
    let layers = layers(&text).map_err(wrong)?;
    let exchanges = sizes.pipeline.map_or(0, |pipeline| pipeline.exchanges().saturating_mul(6));
    let each = (9 * layers.len().max(1) as u64).saturating_add(exchanges);
    let operations = each.saturating_mul(sizes.gpus.into());
    if operations > MOST_OPERATIONS {
        let of_pipeline = sizes.pipeline.map_or_else(String::new, |pipeline| {
            format!(" and {} exchanges between stages", 2 * u128::from(pipeline.exchanges()))
        });
        let problem = format!(
            "{} layers{of_pipeline} of {} GPUs: at most {MOST_OPERATIONS} operations",
            layers.len(),
            sizes.gpus
        );
        return Err(wrong(problem));
    }
    let steps = layers.iter().flat_map(|layer| [&layer.forward, &layer.inputs, &layer.weights]);
    let used = steps.filter_map(|step| step.collective).map(|(_, family, _)| family);
    let used: Vec<Family> = used.filter(|family| sizes.members(*family) > 1).collect();
    let mut first_groups = BTreeMap::new();
    for family in Family::ALL.into_iter().filter(|family| used.contains(family)) {
        first_groups.insert(family, recorded.groups.len());
        recorded.add_groups(family, sizes);
    }
    for rank in 0..sizes.gpus {
        recorded.graph.ranks.push(RankGraph::default());
        recorded.places.push(Vec::new());
        Writer { recorded: &mut recorded, options, sizes, first_groups: &first_groups, rank, last: None }.pass(&layers);
    }
    Ok(recorded)
}

/// The numbers of the first line.
fn header(recorded: &mut Recorded, line: &str, options: &Options) -> Result<Sizes, String> {
    let mut words = line.split_whitespace();
    let policy = words.next().unwrap_or_default();
    if policy != POLICY {
        return Err(format!("the policy {policy} is not simulated; allowed: {POLICY}"));
    }
    policy.clone_into(&mut recorded.version);
    let mut values: BTreeMap<&str, u64> = BTreeMap::new();
    while let Some(word) = words.next() {
        let name = word.trim_end_matches(':');
        if !KEYS.contains(&name) {
            return Err(format!("no key {name:?}; allowed: {}", KEYS.join(", ")));
        }
        let value = words.next().unwrap_or_default();
        let number = value.parse().map_err(|_| format!("{name} = {value:?}: a whole number is needed"))?;
        if name.starts_with("checkpoint") {
            // The layers follow.
            words.by_ref().take(usize::try_from(number).unwrap_or(0)).for_each(drop);
        }
        values.insert(name, number);
    }
    let number = |name: &str| values.get(name).copied().unwrap_or(0);
    let size = |name: &str| match u32::try_from(number(name)) {
        Ok(0) => Ok(1),
        other => other.map_err(|_| format!("{name} = {}: too large", number(name))),
    };
    let (gpus, tensor, expert) = (size("all_gpus")?, size("model_parallel_NPU_group")?, size("ep")?);
    if gpus % tensor != 0 || gpus / tensor % expert != 0 {
        return Err(format!(
            "all_gpus = {gpus}: no whole number of groups of model_parallel_NPU_group = {tensor} times ep = {expert}"
        ));
    }
    let mut missing = |name: &str, count: u64, reason: &str| {
        if count > 0 && !options.leaves_out(name) {
            recorded.unsupported.add(name, reason.to_owned(), 0, 1);
        }
    };
    let (stages, bytes) = (size("pp")?, number("pp_comm"));
    missing("pp", u64::from(stages > 1 && bytes == 0), "there is no pp_comm, the bytes between pipeline stages");
    missing("checkpoints", number("checkpoint_initiates"), "the forward pass is not repeated from checkpoints");
    if gpus / tensor % stages != 0 {
        return Err(format!(
            "all_gpus = {gpus}: no whole number of groups of model_parallel_NPU_group = {tensor} times pp = {stages}"
        ));
    }
    let (parts, micro_batches) = (number("vpp").max(1), number("ga").max(1));
    let pipeline = Pipeline { stages, parts, micro_batches, bytes };
    Ok(Sizes { gpus, tensor, expert, pipeline: (stages > 1 && bytes > 0).then_some(pipeline) })
}

fn layers(text: &str) -> Result<Vec<Layer<'_>>, String> {
    let mut lines = (1..).zip(text.lines()).skip(1);
    let count = lines.next().and_then(|(_, line)| line.trim().parse::<usize>().ok());
    let count = count.ok_or("line 2: the number of layers is needed")?;
    let mut layers = Vec::new();
    for (line, content) in lines.filter(|(_, content)| !content.trim().is_empty()) {
        layers.push(layer(line, content).map_err(|problem| format!("line {line}: {problem}"))?);
    }
    if layers.len() != count {
        return Err(format!("line 2: {count} layers, and {} follow", layers.len()));
    }
    Ok(layers)
}

fn layer(line: u64, content: &str) -> Result<Layer<'_>, String> {
    let words: Vec<&str> = content.split_whitespace().collect();
    let [name, _, f_time, f_kind, f_size, i_time, i_kind, i_size, w_time, w_kind, w_size, update] = *words else {
        let form =
            "name, dependency, time, collective and bytes of forward pass, input and weight gradients, update time";
        return Err(format!("{} words, and 12 are needed: {form}", words.len()));
    };
    let time = |word: &str| {
        let time = word.parse().ok().and_then(|time: u64| time.checked_mul(PS_PER_NS));
        time.map(Picoseconds).ok_or_else(|| format!("{word:?} is no time in nanoseconds"))
    };
    let step = |span: &str, kind, size: &str, without_suffix| {
        let bytes = size.parse().map_err(|_| format!("{size:?} is no number of bytes"))?;
        Ok::<_, String>(Step { span: time(span)?, kind, collective: collective(kind, bytes, without_suffix) })
    };
    Ok(Layer {
        line,
        name,
        forward: step(f_time, f_kind, f_size, Family::Tp)?,
        inputs: step(i_time, i_kind, i_size, Family::Tp)?,
        weights: step(w_time, w_kind, w_size, Family::Dp)?,
        update: time(update)?,
    })
}

/// The meaning of a word, if it is a collective that can be simulated; bytes of the whole buffer.
fn collective(word: &str, bytes: u64, without_suffix: Family) -> Option<(CollectiveKind, Family, u64)> {
    let (name, kind) = COLLECTIVES
        .into_iter()
        .find(|(name, _)| word.strip_prefix(name).is_some_and(|suffix| ["", "_EP", "_DP_EP"].contains(&suffix)))?;
    let family = match &word[name.len()..] {
        "_EP" => Family::Ep,
        "_DP_EP" => Family::DpEp,
        _ => without_suffix,
    };
    Some((kind, family, bytes))
}

impl Recorded {
    fn add_groups(&mut self, family: Family, sizes: Sizes) {
        let mut groups: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        for rank in 0..sizes.gpus {
            groups.entry(sizes.group_of(family, rank)).or_default().push(rank);
        }
        for members in groups.into_values() {
            self.groups.push(family.name().to_owned());
            self.graph.groups.push(super::group(members));
        }
    }
}

/// Writes the pass of a rank.
struct Writer<'r> {
    recorded: &'r mut Recorded,
    options: &'r Options,
    sizes: Sizes,
    /// Where the groups of a family begin.
    first_groups: &'r BTreeMap<Family, usize>,
    rank: u32,
    /// The operation that the next one comes after.
    last: Option<u32>,
}

impl Writer<'_> {
    fn pass(mut self, layers: &[Layer<'_>]) {
        if let (Some(pipeline), Some(first)) = (self.sizes.pipeline, layers.first()) {
            let steps = layers.iter().filter(|layer| layer.name != EMBEDDING);
            let spans = steps.flat_map(|layer| [&layer.forward, &layer.inputs, &layer.weights].map(|step| step.span.0));
            let span = spans.fold(0, u64::saturating_add);
            let bubble = pipeline.bubble(span, self.options.scale_of(self.rank));
            self.last = self.add(Node::Delay(bubble), first.line, "bubble", None);
        }
        for layer in layers {
            self.last = self.step(layer, &layer.forward);
        }
        self.exchange(true);
        for layer in layers.iter().rev() {
            self.last = self.step(layer, &layer.inputs);
            self.last = self.add(Node::Work { stream: 0, span: layer.weights.span }, layer.line, "compute", self.last);
            self.communicate(layer, &layer.weights);
        }
        self.exchange(false);
    }

    fn step(&mut self, layer: &Layer<'_>, step: &Step<'_>) -> Option<u32> {
        self.last = self.add(Node::Work { stream: 0, span: step.span }, layer.line, "compute", self.last);
        self.communicate(layer, step)
    }

    /// The collective of a step. Returns what comes before whatever waits for it.
    fn communicate(&mut self, layer: &Layer<'_>, step: &Step<'_>) -> Option<u32> {
        let Some((kind, family, bytes)) = step.collective else {
            if step.kind != "NONE" && !self.options.leaves_out(step.kind) {
                let reason = "no such collective is simulated".to_owned();
                self.recorded.unsupported.add(step.kind, reason, self.rank, layer.line);
            }
            return self.last;
        };
        let members = self.sizes.members(family);
        if members == 1 || bytes == 0 {
            return self.last;
        }
        let group = self.first_groups[&family] + self.sizes.group_of(family, self.rank) as usize;
        let block = if kind == CollectiveKind::Allreduce { bytes } else { bytes.div_ceil(u64::from(members)) };
        let volume = Volume::Uniform(Bytes(block));
        let node = Node::Collective { kind, group: Some(group), root: Rank(0), volume, stream: None };
        let node = self.add(node, layer.line, step.kind, self.last);
        if layer.update.0 == 0 {
            return node;
        }
        self.add(Node::Delay(layer.update), layer.line, "update", node)
    }

    fn add(&mut self, node: Node, line: u64, kind: &str, on: Option<u32>) -> Option<u32> {
        let node = self.recorded.add(node, line, kind);
        if let (Some(rank), Some(on)) = (self.recorded.graph.ranks.last_mut(), on) {
            rank.depends(node, on, After::End);
        }
        Some(node)
    }
}
