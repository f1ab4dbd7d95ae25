//! Checks of a specification before a simulation is built from it, and what its jobs become once they are checked.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::spec::{JobSpec, QosSpec, Spec};
use crate::error::BuildError;
use crate::ids::{HostId, JobId, Rank, ServiceLevel, SwitchId};
use crate::mpi::collective::nccl::Setup;
use crate::mpi::{JobSetup, RailPolicy};
use crate::network::transport::{Surroundings, Transport, Transports};
use crate::network::{self, LaneBuffers, Pfc, Retransmission};
use crate::observe::RecordOf;
use crate::program::Program;
use crate::qos::arbiter::MAX_LANES;
use crate::qos::classes::ClassSpec;
use crate::qos::levels::{Levels, TrafficKind};
use crate::registry::Registry;
use crate::routing::{MAX_CHANNELS, Routing};
use crate::table::{Kind, Named};
use crate::topology::{Graph, RailMap, Vertex};
use crate::units::{BitsPerSec, Bytes, Instant};

/// The transports of jobs that have one of their own.
type JobTransports = Vec<(JobId, Arc<dyn Transport>)>;

/// The scenario's transport, and those of jobs that have one of their own.
pub(super) fn transports(
    registry: &Registry,
    spec: &Spec,
    buffer: Bytes,
    routing: &dyn Routing,
    (virtual_lanes, input_queued): (u8, bool),
) -> Result<(Arc<dyn Transport>, JobTransports), BuildError> {
    let buffer_key = spec.network.port_buffer.as_ref().map_or("network.buffer", |memory| memory.total().0);
    let takes_entropies = routing.takes_entropies();
    let given = Surroundings { buffer, buffer_key, virtual_lanes, input_queued, takes_entropies };
    let all = transport(registry, Transports::PATH, &spec.network.transport, &given)?;
    let mut of_jobs = Vec::new();
    for (number, job) in (0..).zip(&spec.jobs) {
        if let Some(named) = &job.transport {
            let path = format!("jobs[{number}].transport");
            of_jobs.push((JobId(number), transport(registry, &path, named, &given)?));
        }
    }
    Ok((all, of_jobs))
}

/// Why packets cannot be lost in a simulation, if they cannot.
pub(super) fn cannot_lose(input_queued: bool) -> Option<&'static str> {
    input_queued.then_some("packets can be lost only with network.switch = output_queued")
}

/// Checks that flows can go back N: their packets must not overtake each other, and losses are gaps.
pub(super) fn retransmission(spec: &Spec, routing: &dyn Routing) -> Result<(), BuildError> {
    if spec.network.retransmission == Retransmission::Selective {
        return Ok(());
    }
    let allowed = if routing.adaptive() {
        "only with a routing that keeps the packets of a flow on one path: their receiver discards those that overtake others"
    } else if spec.qos.trim_vl.is_some() {
        "only without qos.trim_vl: of trimmed packets, single ones are retransmitted"
    } else {
        return Ok(());
    };
    Err(BuildError::value("network.retransmission", "go_back_n", allowed))
}

/// Checks lossy virtual lanes: who may send on them, and where headers go.
pub(super) fn lossy(
    spec: &Spec,
    routing: &dyn Routing,
    pool: Option<Bytes>,
    input_queued: bool,
    (transport, job_transports): (&Arc<dyn Transport>, &JobTransports),
) -> Result<(), BuildError> {
    let QosSpec { lossy, trim_vl, sl2vl, default, kinds, classes, .. } = &spec.qos;
    let virtual_lanes = 1 + sl2vl.iter().max().copied().unwrap_or(0);
    for (key, vl) in lossy.iter().map(|vl| ("qos.lossy", vl)).chain(trim_vl.iter().map(|vl| ("qos.trim_vl", vl))) {
        if *vl >= virtual_lanes {
            let allowed = format!("a virtual lane in use (see qos.sl2vl), 0 to {}", virtual_lanes - 1);
            return Err(BuildError::value(key, vl, allowed));
        }
    }
    let Some(first) = lossy.first() else {
        let allowed = "only with lossy lanes (qos.lossy): other lanes lose nothing, so nothing is trimmed";
        return trim_vl.map_or(Ok(()), |vl| Err(BuildError::value("qos.trim_vl", vl, allowed)));
    };
    if let Some(allowed) = cannot_lose(input_queued) {
        return Err(BuildError::value("qos.lossy", first, allowed));
    }
    if pool.is_some() {
        let allowed = "lanes with a buffer of their own: not with network.port_buffer.sharing = dynamic";
        return Err(BuildError::value("qos.lossy", first, allowed));
    }
    let routed_as = |vl: u8| vl.min(routing.routed_lanes() - 1);
    if let Some(vl) = trim_vl.filter(|trim| lossy.iter().any(|vl| routed_as(*vl) != routed_as(*trim))) {
        let allowed = "a virtual lane with the same place in fabric.routing.lanes as the lossy lanes";
        return Err(BuildError::value("qos.trim_vl", vl, allowed));
    }
    let vl = |level: u8| sl2vl.get(usize::from(level)).copied().unwrap_or(0);
    for (number, job) in (0..).zip(&spec.jobs) {
        let own = job_transports.iter().find(|(of, _)| of.0 == number).map(|(_, own)| own);
        if own.unwrap_or(transport).accepts_losses() {
            continue;
        }
        // A rank's level comes before a kind's, that before a class's, and that before the job's.
        let selects = |class: &&ClassSpec| class.jobs.as_ref().is_none_or(|names| names.contains(&job.name));
        let of_classes = classes.iter().filter(selects).filter_map(|class| class.service_level);
        let levels = kinds.values().flatten().chain(job.ranks.values()).copied().chain(of_classes);
        let mut lanes = levels.chain([job.service_level.unwrap_or(*default)]).map(vl);
        if let Some(lost) = lanes.find(|vl| lossy.contains(vl)) {
            let (path, named) = match &job.transport {
                Some(named) => (format!("jobs[{number}].transport"), named),
                None => (Transports::PATH.to_owned(), &spec.network.transport),
            };
            let allowed = format!(
                "it needs lanes that lose nothing, and job {:?} sends on virtual lane {lost} (qos.lossy)",
                job.name
            );
            return Err(BuildError::value(path, &named.name, allowed));
        }
    }
    Ok(())
}

/// The virtual lanes with priority flow control.
pub(super) fn paused(spec: &Spec, virtual_lanes: u8) -> Vec<u8> {
    let pfc = !spec.network.flow_control.is_credits();
    (0..virtual_lanes).filter(|vl| pfc && !spec.qos.lossy.contains(vl)).collect()
}

/// Checks priority flow control: how many lanes can be paused, and that their buffers have room for what comes before a PAUSE takes
/// effect. `lanes`: virtual lane and virtual channel of each.
pub(super) fn flow_control(
    spec: &Spec,
    graph: &Graph,
    lanes: &[(u8, u8)],
    buffers: LaneBuffers,
    input_queued: bool,
) -> Result<(), BuildError> {
    let Some(pfc) = spec.network.flow_control.pfc() else { return Ok(()) };
    let paused: Vec<usize> = (0..lanes.len()).filter(|lane| !spec.qos.lossy.contains(&lanes[*lane].0)).collect();
    if paused.len() > Pfc::MOST_LANES {
        let allowed = format!(
            "at most {} lanes (pairs of virtual lane and virtual channel) that are not lossy: {} are in use",
            Pfc::MOST_LANES,
            paused.len()
        );
        return Err(BuildError::value("network.flow_control", "pfc", allowed));
    }
    if buffers.pool.is_some() {
        let allowed = "lanes with a buffer of their own: not with network.port_buffer.sharing = dynamic";
        return Err(BuildError::value("network.flow_control", "pfc", allowed));
    }
    if let (Some(watchdog), Some(allowed)) = (pfc.watchdog, cannot_lose(input_queued)) {
        return Err(BuildError::value("network.flow_control.watchdog", watchdog, allowed));
    }
    let memory = spec.network.port_buffer.as_ref();
    let key = memory.map_or("network.buffer", |memory| memory.total().0);
    let own = |lane: &usize| memory.and_then(|memory| memory.of_lane(u8::try_from(*lane).unwrap_or(u8::MAX)));
    let sizes: Vec<Bytes> = paused.iter().map(|lane| own(lane).unwrap_or(buffers.lane)).collect();
    pfc.check(graph, spec.network.largest_packet(), (key, &sizes))
}

/// Builds the transport that stands at `path`, and checks that the fabric can give what it needs.
fn transport(
    registry: &Registry,
    path: &str,
    named: &Named,
    given: &Surroundings<'_>,
) -> Result<Arc<dyn Transport>, BuildError> {
    let Named { name, params } = named;
    let built = registry.transports.build(name, params, ()).map_err(|error| {
        // Errors are of the scenario's transport; this may be a job's.
        if path == Transports::PATH { error } else { error.of(Transports::PATH, path, name) }
    })?;
    if let Some(feedback) = built.feedback() {
        feedback.check(path, name, given)?;
    }
    if built.chooses_paths() && !given.takes_entropies {
        let chosen = params.get("path_choice").and_then(|value| value.as_str()).unwrap_or_default();
        let allowed =
            "only with fabric.routing = { name = \"ecmp\", by = \"packet\" }, which computes paths from entropies";
        return Err(BuildError::value(format!("{path}.path_choice"), chosen, allowed));
    }
    Ok(built.into())
}

/// Refuses what cannot be observed.
pub(super) fn observation(spec: &Spec) -> Result<(), BuildError> {
    let observe = &spec.observe;
    if observe.interference_by_port && !observe.counters {
        let allowed = "only with observe.counters, of which it is a part";
        return Err(BuildError::value("observe.interference_by_port", true, allowed));
    }
    let Some(RecordOf { job, from, to, .. }) = observe.record else { return Ok(()) };
    if let Some(job) = job
        && job.index() >= spec.jobs.len()
    {
        return Err(BuildError::value(
            "observe.record.job",
            job,
            format!("a job, 0 to {}", spec.jobs.len().max(1) - 1),
        ));
    }
    if from >= to {
        return Err(BuildError::value("observe.record.to", to, "an instant after observe.record.from"));
    }
    Ok(())
}

/// Refuses more lanes than a switch has, and says what needs them: service levels, each with the channels of its lane.
pub(super) fn lanes(pairs: &[(u8, u8)], qos: &QosSpec) -> Result<(), BuildError> {
    if let Some(channels) = pairs.iter().map(|pair| usize::from(pair.1) + 1).find(|channels| *channels > MAX_CHANNELS) {
        let needed = format!("{channels} virtual channels");
        return Err(BuildError::value("fabric.routing", needed, format!("at most {MAX_CHANNELS}")));
    }
    let most = qos.lanes.map_or(MAX_LANES, usize::from).min(MAX_LANES);
    if pairs.len() <= most {
        return Ok(());
    }
    let words: Vec<String> =
        pairs.iter().map(|(vl, channel)| format!("({}, {channel})", users(&qos.sl2vl, *vl))).collect();
    let (needed, pairs) = (pairs.len(), words.join(" "));
    let reason = "one for each pair of service level and virtual channel";
    let limit = format!("a simulated switch has at most {MAX_LANES}");
    Err(if qos.lanes.is_some() {
        BuildError::value("qos.lanes", most, format!("at least {needed}, {reason}: {pairs}; {limit}"))
    } else {
        // By default a switch has as many as are needed.
        BuildError::value("qos.lanes", needed, format!("{limit}; needed is {reason}: {pairs}"))
    })
}

/// Refuses buffers that the occupancy table of adaptive routing has no number for. All that its input buffers hold may wait
/// for one port of a switch, and is counted in 32 bits.
pub(super) fn occupancy(
    graph: &Graph,
    lanes: usize,
    network: &network::Parameters,
    output: Bytes,
) -> Result<(), BuildError> {
    let ports = |switch| graph.ports(Vertex::Switch(SwitchId(switch))).len();
    let most = (0..).take(graph.switches()).max_by_key(|switch| ports(*switch));
    let Some(largest) = most else { return Ok(()) };
    let buffers = (ports(largest) * lanes).max(1) as u64;
    let (key, given, shared_by) = match &network.port_buffer {
        None => ("network.buffer", network.buffer.0, 1),
        Some(memory) => (memory.total().0, memory.total().1, lanes.max(1) as u64),
    };
    let limit = (u64::from(u32::MAX) / buffers).saturating_sub(output.0) * shared_by;
    if given <= limit {
        return Ok(());
    }
    let name = graph.switch_name(SwitchId(largest));
    let allowed = format!(
        "at most {limit} bytes with a routing that looks at loads: the buffers of {name:?}, {} ports of {lanes} lanes{}, \
         must hold less than 4 GiB together",
        ports(largest),
        if output.0 == 0 { String::new() } else { format!(" with output buffers of {} bytes", output.0) }
    );
    Err(BuildError::value(key, given, allowed))
}

/// The service levels of a virtual lane in words. Levels at the end of the map that take lane 0 are as those beyond it.
fn users(sl2vl: &[u8], vl: u8) -> String {
    let end = sl2vl.iter().rposition(|lane| *lane != 0).map_or(1, |last| last + 1);
    let lanes = (0..end).map(|level| sl2vl.get(level).copied().unwrap_or(0));
    let levels: Vec<String> =
        lanes.enumerate().filter(|(_, lane)| *lane == vl).map(|(level, _)| level.to_string()).collect();
    if levels.is_empty() { format!("none on lane {vl}") } else { levels.join("+") }
}

/// The service levels of jobs, ranks and traffic kinds.
pub(super) fn levels(spec: &Spec) -> Result<Levels, BuildError> {
    let sizes: Vec<u32> = spec.jobs.iter().map(|job| u32::try_from(job.hosts.len()).unwrap_or(u32::MAX)).collect();
    let mut levels = Levels::new(&sizes);
    levels.set_default(ServiceLevel(spec.qos.default))?;
    for (name, level) in &spec.qos.kinds {
        let kind = crate::table::find("traffic kind", &TrafficKind::ALL, |kind| kind.name(), name)?;
        levels.set_kind(*kind, level.map(ServiceLevel))?;
    }
    let names: Vec<&str> = spec.jobs.iter().map(|job| job.name.as_str()).collect();
    levels.define_classes(&spec.qos.classes, &names)?;
    for (number, job) in spec.jobs.iter().enumerate() {
        let id = JobId(u16::try_from(number).expect("invariant: at most 4096 jobs"));
        levels.set_job(id, job.service_level.map(ServiceLevel))?;
        for (&rank, &level) in &job.ranks {
            levels.set_rank(id, Rank(rank), Some(ServiceLevel(level)))?;
        }
    }
    Ok(levels)
}

/// A job's rail policy: which rails it names all of its hosts have, and any two of its hosts reach each other.
fn rails(graph: &Graph, map: &RailMap, number: usize, job: &JobSpec) -> Result<RailPolicy, BuildError> {
    let adapters = |host: &HostId| graph.ports(Vertex::Host(*host)).len();
    let several = job.hosts.iter().any(|host| adapters(host) > 1);
    let usual = if several { RailPolicy::RoundRobin } else { RailPolicy::Only { only: 0, to: None } };
    let policy = job.rails.clone().unwrap_or(usual);
    let lacks = |rail: &u8, host: &HostId| usize::from(*rail) >= adapters(host);
    let of_all =
        |rail: Option<u8>| rail.and_then(|rail| Some((rail, job.hosts.iter().find(|host| lacks(&rail, host))?)));
    let of_ranks = |ranks: &[u8]| ranks.iter().copied().zip(&job.hosts).find(|(rail, host)| lacks(rail, host));
    let absent = match &policy {
        RailPolicy::Only { only, to } => [("only", of_all(Some(*only))), ("to", of_all(*to))],
        RailPolicy::BySource { ranks } | RailPolicy::ByRank { ranks } => [("ranks", of_ranks(ranks)), ("ranks", None)],
        _ => [("policy", None); 2],
    };
    if let Some((key, (rail, host))) = absent.into_iter().find_map(|(key, absent)| Some((key, absent?))) {
        let path = format!("jobs[{number}].rails.{key}");
        let allowed = format!("a rail of {:?}, 0 to {}", graph.host_name(*host), adapters(host) - 1);
        return Err(BuildError::value(path, rail, allowed));
    }
    let mut classes: BTreeMap<u32, HostId> = BTreeMap::new();
    job.hosts.iter().for_each(|host| _ = classes.entry(map.class(*host)).or_insert(*host));
    for (from, to) in classes.values().flat_map(|from| classes.values().map(move |to| (*from, *to))) {
        let apart = match policy {
            RailPolicy::Only { only, to: Some(other) } => !map.joins((from, only), (to, other)),
            RailPolicy::Only { only, to: None } => !map.pairs(from, to).iter().any(|pair| pair[0] == only),
            _ => map.pairs(from, to).is_empty(),
        };
        if apart {
            let problem = format!(
                "no path between switches joins the adapters of {:?} and {:?} that messages may use",
                graph.host_name(from),
                graph.host_name(to)
            );
            return Err(BuildError::Shape { path: format!("jobs[{number}].rails"), problem });
        }
    }
    Ok(policy)
}

/// A job's collectives, if they are NCCL's, with the adapters of its hosts.
fn nccl(graph: &Graph, number: usize, job: &JobSpec) -> Result<Option<Setup>, BuildError> {
    let Some(nccl) = job.nccl.clone() else { return Ok(None) };
    nccl.check(&format!("jobs[{number}].nccl"))?;
    let ports = || job.hosts.iter().map(|host| graph.ports(Vertex::Host(*host)));
    let adapters = ports().map(|ports| ports.len()).min().unwrap_or(0);
    let bandwidths = ports().flatten().map(|port| graph.link(port).bandwidth);
    let adapter_bandwidth = bandwidths.min().unwrap_or(BitsPerSec(1));
    Ok(Some(Setup { nccl, adapters: u32::try_from(adapters).unwrap_or(u32::MAX), adapter_bandwidth }))
}

/// The jobs, with their programs.
pub(super) fn jobs(
    jobs: Vec<JobSpec>,
    programs: Vec<Program>,
    graph: &Graph,
    map: &RailMap,
) -> Result<Vec<JobSetup>, BuildError> {
    let hosts = graph.hosts();
    if jobs.len() != programs.len() {
        return Err(BuildError::value("jobs", jobs.len(), format!("as many as programs ({})", programs.len())));
    }
    let mut plans = Vec::new();
    for (number, (job, program)) in jobs.into_iter().zip(programs).enumerate() {
        let path = format!("jobs[{number}].hosts");
        if job.hosts.len() != program.ranks.len() {
            let allowed = format!("one host for each of the program's {} ranks", program.ranks.len());
            return Err(BuildError::value(path, job.hosts.len(), allowed));
        }
        if let Some(host) = job.hosts.iter().find(|host| host.index() >= hosts) {
            return Err(BuildError::value(path, host, format!("a host of the fabric, 0 to {}", hosts - 1)));
        }
        if job.stop.is_some_and(|stop| stop <= job.start) {
            let path = format!("jobs[{number}].stop");
            return Err(BuildError::value(path, job.stop.unwrap_or_default(), "an instant after jobs[].start"));
        }
        let rails = rails(graph, map, number, &job)?;
        let nccl = nccl(graph, number, &job)?;
        let (start, stop) = (Instant(job.start.0), job.stop.map(|stop| Instant(stop.0)));
        let JobSpec { name, hosts, marks, .. } = job;
        plans.push(JobSetup { name, program, hosts, rails, nccl, start, stop, marks });
    }
    Ok(plans)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lanes_that_a_switch_does_not_have_are_named_by_service_level() {
        let qos = |sl2vl: &[u8], lanes: u8| QosSpec {
            lanes: (lanes > 0).then_some(lanes),
            sl2vl: sl2vl.to_vec(),
            ..Default::default()
        };
        let pairs = [(0, 0), (0, 1), (1, 0), (2, 0)];
        assert_eq!(lanes(&pairs, &qos(&[0, 1, 2, 0], 4)), Ok(()));
        let error = lanes(&pairs, &qos(&[0, 0, 2, 0], 3)).unwrap_err().to_string();
        assert!(error.starts_with("qos.lanes = 3: at least 4, one for each pair of service level"), "{error}");
        assert!(error.contains(": (0+1, 0) (0+1, 1) (none on lane 1, 0) (2, 0);"), "{error}");
        let error = lanes(&pairs[..2], &qos(&[0; 16], 1)).unwrap_err().to_string();
        assert!(error.contains(": (0, 0) (0, 1);"), "{error}");
        let many: Vec<(u8, u8)> = (0..65).map(|lane| (lane / 32, lane % 32)).collect();
        assert_eq!(lanes(&many[1..], &qos(&[0], 0)), Ok(()));
        let error = lanes(&many, &qos(&[0], 0)).unwrap_err().to_string();
        assert!(error.starts_with("qos.lanes = 65: a simulated switch has at most 64; needed is one for"), "{error}");
    }

    #[test]
    fn buffers_that_occupancy_cannot_count_are_refused() {
        // Leaves of 8 ports: with 4 lanes, 32 buffers.
        let params = serde_json::json!({ "hosts": 32, "levels": 2, "radix": 8 });
        let graph = crate::topology::build("fat_tree", &params).unwrap();
        let limit = u64::from(u32::MAX) / 32;
        let network = |buffer| network::Parameters { buffer: Bytes(buffer), ..Default::default() };
        assert_eq!(occupancy(&graph, 4, &network(limit), Bytes(0)), Ok(()));
        let error = occupancy(&graph, 4, &network(limit - 9_000), Bytes(9_001)).unwrap_err().to_string();
        assert!(error.contains("with output buffers of 9001 bytes"), "{error}");
        let error = occupancy(&graph, 4, &network(limit + 1), Bytes(0)).unwrap_err().to_string();
        assert!(error.starts_with("network.buffer = 134217728: at most 134217727 bytes"), "{error}");
        assert!(error.contains("8 ports of 4 lanes"), "{error}");
        // A port's memory holds what four lanes hold.
        let memory = |size| network::Parameters {
            port_buffer: Some(network::PortBuffer {
                size: Bytes(size),
                sharing: network::Sharing::Dynamic,
                ..Default::default()
            }),
            ..Default::default()
        };
        assert_eq!(occupancy(&graph, 4, &memory(4 * limit), Bytes(0)), Ok(()));
        let error = occupancy(&graph, 4, &memory(4 * limit + 1), Bytes(0)).unwrap_err().to_string();
        assert!(error.starts_with("network.port_buffer.size = 536870909: at most 536870908 bytes"), "{error}");
    }
}
