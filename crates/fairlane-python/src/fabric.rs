//! A fabric without traffic: its graph and its routes.

use std::collections::BTreeSet;
use std::sync::Arc;

use fairlane_core::ids::{HostId, LinkId, SwitchId};
use fairlane_core::mpi::Mpi;
use fairlane_core::network::{Network, longest_round_trip};
use fairlane_core::program::Op;
use fairlane_core::routing::{self, Routing};
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
use crate::tables::registry;

/// What `Fabric.coverage` returns.
type CoverageRow<'py> = (Bound<'py, PyBytes>, usize, bool, f64, Option<f64>, (usize, usize));

/// Hosts, switches and links, and the routes between them.
#[pyclass(frozen, module = "fairlane._core")]
pub struct Fabric {
    graph: Arc<Graph>,
    routing: Arc<dyn Routing>,
    rails: RailMap,
}

#[pymethods]
impl Fabric {
    #[new]
    fn new(spec: &str) -> PyResult<Self> {
        let spec: FabricSpec = serde_json::from_str(spec).map_err(|error| errors::shape("fabric", error))?;
        let registry = registry();
        let graph = spec.build(&registry).map_err(|error| errors::build(&error))?;
        let routing = spec.route(&registry, &graph).map_err(|error| errors::build(&error))?;
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
        py.detach(|| Simulation::check(&registry(), graph, routing, spec, programs))
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

    /// What the routing uses of the fabric: a byte for each link, 1 if a route takes it; destinations whose routes were
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

    /// What each link carries (64-bit floats) if `hosts[i]` sends `bytes[i * hosts.len() + j]` to `hosts[j]`, in equal parts over
    /// their rail pairs.
    fn loads<'py>(&self, py: Python<'py>, hosts: Vec<u32>, bytes: &[u8]) -> PyResult<Bound<'py, PyBytes>> {
        let (numbers, rest) = bytes.as_chunks::<{ size_of::<f64>() }>();
        if !rest.is_empty() || numbers.len() != hosts.len() * hosts.len() {
            return Err(PyValueError::new_err("needs a 64-bit float for each pair of hosts"));
        }
        let hosts: Vec<HostId> = hosts.into_iter().map(HostId).collect();
        let numbers: Vec<f64> = numbers.iter().copied().map(f64::from_le_bytes).collect();
        let loads = py.detach(|| routing::link_loads(&self.graph, &*self.routing, &self.rails, &hosts, &numbers));
        let loads = loads.map_err(|error| errors::path(&error))?;
        Ok(PyBytes::new(py, &loads.into_iter().flat_map(f64::to_le_bytes).collect::<Vec<_>>()))
    }
}

impl Fabric {
    /// The links that leave each host.
    fn hosts_ports(&self) -> impl Iterator<Item = impl ExactSizeIterator<Item = LinkId> + use<>> {
        (0..).take(self.graph.hosts()).map(|host| self.graph.ports(Vertex::Host(HostId(host))))
    }
}

/// Hosts, switches and links that a fabric will have: nothing is built.
#[pyfunction]
pub fn fabric_size(spec: &str) -> PyResult<(u64, u64, u64)> {
    let spec: FabricSpec = serde_json::from_str(spec).map_err(|error| errors::shape("fabric", error))?;
    let size = spec.size(&registry()).and_then(Size::check).map_err(|error| errors::build(&error))?;
    Ok((size.hosts, size.switches, size.links))
}

/// Bytes that a port with so many lanes, a rank and an operation of a program take, for estimates.
#[pyfunction]
pub fn footprint(lanes: usize, adaptive: bool) -> (u64, usize, usize) {
    const ARBITER_WORDS_PER_LANE: usize = 4;
    let port = Network::most_bytes_per_port(lanes, ARBITER_WORDS_PER_LANE * lanes, adaptive);
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
