//! A fabric without traffic: its graph and its routes.

use std::collections::BTreeSet;
use std::sync::Arc;

use fairlane_core::ids::{HostId, LinkId, Rank, SwitchId};
use fairlane_core::mpi::{Mpi, RailPolicy};
use fairlane_core::network::{Network, longest_round_trip};
use fairlane_core::program::Op;
use fairlane_core::routing::{self, PathError, Routing};
use fairlane_core::simulation::{self, FabricSpec, Simulation};
use fairlane_core::topology::{Graph, RailMap, Size, Vertex, is_tree};
use fairlane_core::units::Bytes;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use serde_json::json;

use crate::builder::Program;
use crate::columns::into_dict;
use crate::errors;
use crate::plugins::registry;

/// The result of `Fabric.coverage`.
type CoverageRow<'py> = (Bound<'py, PyBytes>, usize, bool, f64, Option<f64>, (usize, usize));

/// Hosts, switches and links, and the routes between them.
#[pyclass(frozen, module = "fairlane._core")]
pub struct Fabric {
    /// Hosts, switches and links; simulations on it share them.
    pub graph: Arc<Graph>,
    routing: Arc<dyn Routing>,
    rails: RailMap,
}

#[pymethods]
impl Fabric {
    #[new]
    fn new(spec: &str) -> PyResult<Self> {
        let spec: FabricSpec = serde_json::from_str(spec).map_err(|error| errors::shape("fabric", error))?;
        let registry = registry();
        let graph = spec.build(registry).map_err(|error| errors::build(&error))?;
        let routing = spec.route(registry, &graph).map_err(|error| errors::build(&error))?;
        let rails = RailMap::new(&graph, &BTreeSet::new());
        Ok(Self { graph: Arc::new(graph), routing: routing.into(), rails })
    }

    #[getter]
    fn hosts(&self) -> usize {
        self.graph.hosts()
    }

    #[getter]
    fn switches(&self) -> usize {
        self.graph.switches()
    }

    fn classes(&self) -> Vec<String> {
        self.graph.classes().to_vec()
    }

    /// How the switches are laid out, as JSON.
    fn plan(&self) -> String {
        json!(self.graph.layout()).to_string()
    }

    /// The names of all hosts.
    fn host_names(&self) -> Vec<String> {
        self.graph.host_names()
    }

    /// The names of all switches.
    fn switch_names(&self) -> Vec<String> {
        self.graph.switch_names()
    }

    /// The level of each switch; 0 where there are no levels.
    fn levels(&self) -> Vec<u8> {
        (0..).take(self.graph.switches()).map(|switch| self.graph.level(SwitchId(switch))).collect()
    }

    /// Whether the levels describe the fabric as a tree.
    fn is_tree(&self) -> bool {
        is_tree(&self.graph)
    }

    /// Virtual channels of the routing.
    #[getter]
    fn virtual_channels(&self) -> u8 {
        self.routing.virtual_channels()
    }

    /// Every pair of virtual lane and virtual channel that takes a lane of a port.
    fn required_virtual_lanes(&self, virtual_lanes: u8) -> Vec<(u8, u8)> {
        simulation::required_virtual_lanes(&*self.routing, virtual_lanes)
    }

    /// One row per link: ends (-1 where the end is of the other kind), level of the switches, class, role, rate, latency.
    fn links<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        into_dict(py, &self.graph.link_table())
    }

    fn link_kinds<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        into_dict(py, &self.graph.link_kinds())
    }

    /// Mean bandwidth of the hosts' links (bits per second), and mean latency of all links (picoseconds).
    fn wires(&self) -> (f64, f64) {
        (self.graph.mean_host_bandwidth(), self.graph.mean_latency())
    }

    /// How many adapters each host has: an unsigned 32-bit number each.
    fn adapters<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        column(py, self.hosts_ports().map(|ports| u32::try_from(ports.len()).unwrap_or(u32::MAX)), u32::to_le_bytes)
    }

    /// The switch at each host's first link, -1 for a host joined to another host: a signed 32-bit number each.
    fn leaves<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        let leaves = self.hosts_ports().map(|mut ports| match ports.next().map(|link| self.graph.link(link).to) {
            Some(Vertex::Switch(switch)) => i32::try_from(switch.0).unwrap_or(-1),
            _ => -1,
        });
        column(py, leaves, i32::to_le_bytes)
    }

    /// The bandwidth of each host's adapters, by host and then by adapter, bits per second: an unsigned 64-bit number each.
    fn bandwidths<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        let links = self.hosts_ports().flatten().map(|link| self.graph.link(link).bandwidth.0);
        column(py, links, u64::to_le_bytes)
    }

    /// Raises an error if there can be no simulation of this specification, which is of this fabric, and these programs.
    fn check_simulation(&self, py: Python<'_>, spec: &str, programs: Vec<Py<Program>>) -> PyResult<()> {
        let spec = serde_json::from_str(spec).map_err(|error| errors::shape("scenario", error))?;
        let programs = programs.iter().map(|program| program.get().inner.clone()).collect();
        let (graph, routing) = (Arc::clone(&self.graph), Arc::clone(&self.routing));
        py.detach(|| Simulation::check(registry(), graph, routing, spec, programs))
            .map_err(|error| errors::build(&error))
    }

    /// The most adapters that a host has.
    #[getter]
    fn rails(&self) -> u32 {
        self.graph.rails()
    }

    /// The links of the path from adapter `rail` of one host to adapter `to_rail` of another; by default the one that it is
    /// paired with.
    #[pyo3(signature = (source, destination, rail = 0, to_rail = None))]
    fn route(&self, source: u32, destination: u32, rail: u32, to_rail: Option<u32>) -> PyResult<Vec<u32>> {
        let (from, to) = ((HostId(source), rail), (HostId(destination), to_rail));
        let path =
            routing::path(&self.graph, &*self.routing, &self.rails, from, to).map_err(|error| errors::path(&error))?;
        Ok(path.into_iter().map(|link| link.0).collect())
    }

    /// Forwarding tables: by switch and endpoint the number of the port, 0 where no packets pass, an unsigned 32-bit number
    /// each; none if that depends on where packets come from.
    fn forwarding<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyBytes>> {
        let ports = py.detach(|| routing::forwarding(&self.graph, &*self.routing));
        ports.map(|ports| column(py, ports.into_iter(), u32::to_le_bytes))
    }

    /// The round trip, ps, of a full packet and an answer of so many bytes on the longest path without load; `network` has the
    /// parameters of the network as JSON.
    fn round_trip(&self, py: Python<'_>, network: &str, answer: u64) -> PyResult<u64> {
        let parameters = serde_json::from_str(network).map_err(|error| errors::shape("network", error))?;
        Ok(py.detach(|| longest_round_trip(&self.graph, &*self.routing, &parameters, Bytes(answer))).0)
    }

    /// The part of the fabric that the routing uses: a byte for each link, 1 if a route takes it; destinations whose routes were
    /// followed; whether the links are exact; the shares of minimal paths and of minimal routes; sources, of how many.
    fn coverage<'py>(&self, py: Python<'py>, budget: u64) -> CoverageRow<'py> {
        let found = py.detach(|| routing::coverage(&self.graph, &*self.routing, budget));
        let used: Vec<u8> = found.used.iter().map(|used| u8::from(*used)).collect();
        let bytes = PyBytes::new(py, &used);
        let routes = found.minimal_routes;
        (bytes, found.destinations, found.is_exact, found.minimal_paths, routes, found.sources)
    }

    /// The adapters through which messages from one host to another go: pairs of the sender's and the receiver's.
    fn rail_pairs(&self, source: u32, destination: u32) -> Vec<(u8, u8)> {
        let pairs = self.rails.pairs(HostId(source), HostId(destination)).iter();
        pairs.map(|[rail, other]| (*rail, *other)).collect()
    }

    /// The load of each link in bytes (64-bit floats) if the rank at `hosts[i]` sends `bytes[i * hosts.len() + j]` to that at `hosts[j]`
    /// over the adapters of `rails`, a rail policy as JSON; without one over all that are joined. With `answers` it is what the
    /// answers to these messages take, as many bytes.
    #[pyo3(signature = (hosts, bytes, rails = None, *, answers = false))]
    fn loads<'py>(
        &self,
        py: Python<'py>,
        hosts: Vec<u32>,
        bytes: &[u8],
        rails: Option<&str>,
        answers: bool,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let (numbers, rest) = bytes.as_chunks::<{ size_of::<f64>() }>();
        if !rest.is_empty() || numbers.len() != hosts.len() * hosts.len() {
            return Err(PyValueError::new_err("needs a 64-bit float for each pair of ranks"));
        }
        let policy = self.policy(&hosts, rails)?;
        let hosts: Vec<HostId> = hosts.into_iter().map(HostId).collect();
        let numbers: Vec<f64> = numbers.iter().copied().map(f64::from_le_bytes).collect();
        let pairs = |sender, receiver| {
            if !answers {
                return self.pairs_of(policy.as_ref(), &hosts, sender, receiver);
            }
            let pairs = self.pairs_of(policy.as_ref(), &hosts, receiver, sender);
            pairs.into_iter().map(|[rail, other]| [other, rail]).collect()
        };
        let loads = py.detach(|| routing::link_loads(&self.graph, &*self.routing, &hosts, &numbers, pairs));
        let loads = loads.map_err(|error| errors::path(&error))?;
        Ok(PyBytes::new(py, &loads.into_iter().flat_map(f64::to_le_bytes).collect::<Vec<_>>()))
    }

    /// The adapters of messages from a rank to each other rank on another host, by a rail policy as JSON; without one all that are
    /// joined: the number of the receiver, the adapter of the sender's host and that of the receiver's, 32 bits each.
    #[pyo3(signature = (hosts, sender, rails = None))]
    fn message_rails<'py>(
        &self,
        py: Python<'py>,
        hosts: Vec<u32>,
        sender: usize,
        rails: Option<&str>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let policy = self.policy(&hosts, rails)?;
        let hosts: Vec<HostId> = hosts.into_iter().map(HostId).collect();
        let rows = (0..hosts.len()).filter(|receiver| hosts[*receiver] != hosts[sender]).flat_map(|receiver| {
            let number = u32::try_from(receiver).unwrap_or(u32::MAX);
            let pairs = self.pairs_of(policy.as_ref(), &hosts, sender, receiver);
            pairs.into_iter().flat_map(move |[rail, other]| [number, rail.into(), other.into()])
        });
        Ok(column(py, rows, u32::to_le_bytes))
    }
}

impl Fabric {
    /// The rail policy of a job whose ranks are on these hosts.
    fn policy(&self, hosts: &[u32], rails: Option<&str>) -> PyResult<Option<RailPolicy>> {
        let policy = rails.map(serde_json::from_str::<RailPolicy>).transpose();
        let policy = policy.map_err(|error| errors::shape("rails", error))?;
        if let Some(RailPolicy::ByRank { ranks }) = &policy
            && ranks.len() != hosts.len()
        {
            return Err(PyValueError::new_err("needs a rail for each rank"));
        }
        let known = self.graph.hosts();
        let beyond = hosts.iter().map(|host| HostId(*host)).find(|host| host.index() >= known);
        match beyond {
            Some(host) => Err(errors::path(&PathError::Host { host, hosts: known })),
            None => Ok(policy),
        }
    }

    /// The adapters of messages between two ranks on different hosts.
    fn pairs_of(&self, policy: Option<&RailPolicy>, hosts: &[HostId], sender: usize, receiver: usize) -> Vec<[u8; 2]> {
        let end = |rank: usize| (Rank(u32::try_from(rank).unwrap_or(u32::MAX)), hosts[rank]);
        match policy {
            Some(policy) => policy.pairs(&self.rails, end(sender), end(receiver)),
            None => self.rails.joined(hosts[sender], hosts[receiver]),
        }
    }

    /// The links that leave each host.
    fn hosts_ports(&self) -> impl Iterator<Item = impl ExactSizeIterator<Item = LinkId> + use<>> {
        (0..).take(self.graph.hosts()).map(|host| self.graph.ports(Vertex::Host(HostId(host))))
    }
}

/// Hosts, switches and links that a fabric will have: nothing is built.
#[pyfunction]
pub fn fabric_size(spec: &str) -> PyResult<(u64, u64, u64)> {
    let spec: FabricSpec = serde_json::from_str(spec).map_err(|error| errors::shape("fabric", error))?;
    let size = spec.size(registry()).and_then(Size::check).map_err(|error| errors::build(&error))?;
    Ok((size.hosts, size.switches, size.links))
}

/// Bytes that a port with so many lanes, a rank and an operation of a program take, for estimates.
#[pyfunction]
pub fn footprint(lanes: usize, adaptive: bool) -> (u64, usize, usize) {
    // The largest state of those built in.
    let arbiter = 40 + 8 * lanes;
    let port = Network::most_bytes_per_port(lanes, arbiter, adaptive);
    (port.0, Mpi::BYTES_PER_RANK, size_of::<Op>())
}

/// Numbers, of N bytes each, one after the other.
fn column<'py, T, const N: usize>(
    py: Python<'py>,
    numbers: impl Iterator<Item = T>,
    bytes: fn(T) -> [u8; N],
) -> Bound<'py, PyBytes> {
    PyBytes::new(py, &numbers.flat_map(bytes).collect::<Vec<u8>>())
}
