//! Parts that the builders of regular fabrics share: switches with equally many hosts, alike wires, the checks of sizes.

use super::{GraphBuilder, Vertex};
use crate::error::BuildError;
use crate::ids::{HostId, SwitchId};
use crate::units::{BitsPerSec, Picoseconds};

/// More switches than any fabric that fits into memory.
pub(super) const MAX_SWITCHES: u64 = 1 << 20;
/// More hosts than any fabric that fits into memory.
pub(super) const MAX_HOSTS: u64 = 1 << 22;

pub(super) const fn default_bandwidth() -> BitsPerSec {
    BitsPerSec(100_000_000_000)
}

pub(super) const fn default_latency() -> Picoseconds {
    Picoseconds::from_nanos(100)
}

/// The properties of cables.
#[derive(Clone, Copy)]
pub(super) struct Wires {
    pub bandwidth: BitsPerSec,
    pub latency: Picoseconds,
    /// Bandwidth of the cables to hosts.
    pub host_bandwidth: BitsPerSec,
}

impl Wires {
    pub fn new(bandwidth: BitsPerSec, latency: Picoseconds, host_bandwidth: Option<BitsPerSec>) -> Self {
        Self { bandwidth, latency, host_bandwidth: host_bandwidth.unwrap_or(bandwidth) }
    }

    /// The same with another latency, if there is one.
    pub fn with_latency(self, latency: Option<Picoseconds>) -> Self {
        Self { latency: latency.unwrap_or(self.latency), ..self }
    }

    /// A cable whose two links are of one class.
    pub fn join(self, graph: &mut GraphBuilder, a: Vertex, b: Vertex, class: &str) {
        graph.add_cable(a, b, self.bandwidth, self.latency, class, class);
    }

    /// A cable between a lower and a higher switch.
    pub fn rise(self, graph: &mut GraphBuilder, low: Vertex, high: Vertex, up: &str, down: &str) {
        graph.add_cable(low, high, self.bandwidth, self.latency, up, down);
    }
}

/// Adds `count` switches without levels, each with `hosts` hosts, numbered switch by switch.
pub(super) fn add_switches(graph: &mut GraphBuilder, count: u32, hosts: u32, wires: Wires) {
    graph.add_hosts(count * hosts);
    for number in 0..count {
        let switch = graph.add_switch(0);
        add_hosts_of(graph, switch, (number * hosts..(number + 1) * hosts).map(HostId), wires);
    }
}

/// Cables hosts to their switch.
pub(super) fn add_hosts_of(
    graph: &mut GraphBuilder,
    switch: SwitchId,
    hosts: impl Iterator<Item = HostId>,
    wires: Wires,
) {
    for host in hosts {
        let (host, switch) = (Vertex::Host(host), Vertex::Switch(switch));
        graph.add_cable(host, switch, wires.host_bandwidth, wires.latency, "host up", "host down");
    }
}

/// Refuses a count of zero, naming its key.
pub(super) fn at_least_one(counts: &[(&str, u32)]) -> Result<(), BuildError> {
    let zero = counts.iter().find(|(_, count)| *count == 0);
    zero.map_or(Ok(()), |(key, _)| Err(BuildError::value(format!("fabric.{key}"), 0, "at least 1")))
}

/// Checks the number of hosts that was asked for, if one was, against what the other parameters make.
pub(super) fn check_hosts(
    asked: Option<u32>,
    switches: u64,
    hosts_per_switch: u32,
    product: &str,
) -> Result<(), BuildError> {
    let hosts = switches * u64::from(hosts_per_switch);
    if hosts > MAX_HOSTS {
        let allowed = format!("at most {MAX_HOSTS} hosts, and {product} x hosts_per_switch is {hosts}");
        return Err(BuildError::value("fabric.hosts_per_switch", hosts_per_switch, allowed));
    }
    match asked.filter(|asked| u64::from(*asked) != hosts) {
        None => Ok(()),
        Some(asked) => {
            let allowed = format!("{product} x hosts_per_switch is {hosts}; give that number, or none");
            Err(BuildError::value("fabric.hosts", asked, allowed))
        }
    }
}

/// The global ports of a group, which must be enough for a cable to every other group.
pub(super) fn group_ports(groups: u32, switches: u32, each: u32, kind: &str) -> Result<u32, BuildError> {
    let ports = u64::from(switches) * u64::from(each);
    if u64::from(groups - 1) <= ports {
        return u32::try_from(ports)
            .map_err(|_| BuildError::value("fabric.global_links", each, "fewer than 2^32 global ports a group"));
    }
    let most = ports + 1;
    let allowed = format!("at most {most}: a group has {switches} {kind} x {each} global_links to other groups");
    Err(BuildError::value("fabric.groups", groups, allowed))
}

/// How many switches a grid of these sides has.
pub(super) fn product(sides: &[u32]) -> Result<u32, BuildError> {
    let wrong = |allowed: String| Err(BuildError::value("fabric.sides", format!("{sides:?}"), allowed));
    if !(1..=16).contains(&sides.len()) {
        return wrong("1 to 16 sides".to_owned());
    }
    if sides.contains(&0) {
        return wrong("every side at least 1".to_owned());
    }
    let switches = sides.iter().try_fold(1_u64, |product, side| product.checked_mul(u64::from(*side)));
    match switches.filter(|switches| *switches <= MAX_SWITCHES).map(u32::try_from) {
        Some(Ok(switches)) => Ok(switches),
        _ => wrong(format!("at most {MAX_SWITCHES} switches")),
    }
}

/// A value for each dimension: those given, or the same for all.
pub(super) fn by_dimension<T: Copy>(
    key: &str,
    given: Option<&[T]>,
    usual: T,
    sides: &[u32],
) -> Result<Vec<T>, BuildError> {
    let Some(given) = given else { return Ok(vec![usual; sides.len()]) };
    if given.len() == sides.len() {
        return Ok(given.to_vec());
    }
    let allowed = format!("one for each of the {} sides", sides.len());
    Err(BuildError::value(format!("fabric.{key}"), format!("{} of them", given.len()), allowed))
}
