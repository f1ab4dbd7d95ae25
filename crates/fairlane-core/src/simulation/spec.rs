//! The specification of a simulation, but for the programs of its jobs.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::BuildError;
use crate::fault::FaultSpec;
use crate::ids::HostId;
use crate::mpi::collective::nccl::Nccl;
use crate::mpi::{self, RailPolicy};
use crate::qos::classes::ClassSpec;
use crate::registry::Registry;
use crate::routing::Routing;
use crate::table::Named;
use crate::topology::{Graph, RailsSpec, Size};
use crate::units::Picoseconds;
use crate::{network, observe};

/// The fabric, and how packets find their way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FabricSpec {
    /// Name of the topology.
    pub topology: String,
    /// Its parameters.
    #[serde(default)]
    pub params: serde_json::Value,
    /// Name of the routing.
    pub routing: String,
    /// Its parameters.
    #[serde(default)]
    pub routing_params: serde_json::Value,
    /// Adapters of each host, where there are several.
    #[serde(default)]
    pub rails: Option<RailsSpec>,
}

impl FabricSpec {
    /// How large the graph will be: nothing is built.
    ///
    /// # Errors
    /// [`BuildError`] names the key that is wrong.
    pub fn size(&self, registry: &Registry) -> Result<Size, BuildError> {
        let size = registry.topologies.size(&self.topology, &self.params)?;
        Ok(self.rails.as_ref().map_or(size, |rails| rails.size(size)))
    }

    /// Builds the graph.
    ///
    /// # Errors
    /// [`BuildError`] names the key that is wrong.
    pub fn build(&self, registry: &Registry) -> Result<Graph, BuildError> {
        let size = self.size(registry)?;
        if let Some(rails) = &self.rails {
            size.check_as("fabric.rails.count", rails.count)?;
        }
        let graph = registry.topologies.build(&self.topology, &self.params, ())?;
        self.rails.iter().try_fold(graph, Graph::with_rails)
    }

    /// Prepares the routing for the graph.
    ///
    /// # Errors
    /// [`BuildError`] names the key that is wrong.
    pub fn route(&self, registry: &Registry, graph: &Graph) -> Result<Box<dyn Routing>, BuildError> {
        registry.routings.build(&self.routing, &self.routing_params, graph)
    }
}

/// Service levels, virtual lanes and arbitration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct QosSpec {
    /// Virtual lanes of every port; those of `sl2vl` if absent.
    #[serde(default)]
    pub lanes: Option<u8>,
    /// The virtual lane of each service level; levels beyond the list take lane 0.
    #[serde(default)]
    pub sl2vl: Vec<u8>,
    /// How lanes share a link.
    pub arbiter: Named,
    /// Virtual lanes on which packets need no credits and are lost where queues are full.
    #[serde(default)]
    pub lossy: Vec<u8>,
    /// The virtual lane on which the headers of such packets go on, if packets are trimmed instead.
    #[serde(default)]
    pub trim_vl: Option<u8>,
    /// The service level of messages that have no other.
    #[serde(default)]
    pub default: u8,
    /// Service levels of traffic kinds: "control", "eager", "bulk", "collective".
    #[serde(default)]
    pub kinds: BTreeMap<String, Option<u8>>,
    /// Traffic classes; the first that selects a message is the message's.
    #[serde(default)]
    pub classes: Vec<ClassSpec>,
}

impl Default for QosSpec {
    /// One virtual lane for all service levels.
    fn default() -> Self {
        Self {
            lanes: None,
            sl2vl: vec![0],
            arbiter: Named::new("weighted_round_robin"),
            lossy: Vec::new(),
            trim_vl: None,
            default: 0,
            kinds: BTreeMap::new(),
            classes: Vec::new(),
        }
    }
}

/// A job: where its ranks live, and their service levels. Its program is given beside the specification.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct JobSpec {
    /// Its name, for errors and tables.
    pub name: String,
    /// The host of each rank.
    pub hosts: Vec<HostId>,
    /// The job's service level.
    #[serde(default)]
    pub service_level: Option<u8>,
    /// Service levels of single ranks.
    #[serde(default)]
    pub ranks: BTreeMap<u32, u8>,
    /// How its messages are shared among the adapters of its hosts; by default round robin where the fabric has rails,
    /// else over each host's first adapter.
    #[serde(default)]
    pub rails: Option<RailPolicy>,
    /// Its collectives are NCCL's; by default MPI's.
    #[serde(default)]
    pub nccl: Option<Nccl>,
    /// When NICs start its packets; by default as `network.transport` says.
    #[serde(default)]
    pub transport: Option<Named>,
    /// When its ranks begin.
    #[serde(default)]
    pub start: Picoseconds,
    /// When it ends, whatever its programs say: a rank does nothing more once it would go on at this instant or later.
    #[serde(default)]
    pub stop: Option<Picoseconds>,
    /// Keep the instant of every iteration that its ranks mark.
    #[serde(default)]
    pub marks: bool,
}

/// All of a simulation but the programs. All quantities are picoseconds, bytes and bits per second.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Spec {
    /// The fabric.
    pub fabric: FabricSpec,
    /// The network's parameters.
    #[serde(default)]
    pub network: network::Parameters,
    /// Quality of service.
    pub qos: QosSpec,
    /// The MPI library's parameters.
    #[serde(default)]
    pub mpi: mpi::Parameters,
    /// The jobs.
    pub jobs: Vec<JobSpec>,
    /// The faults of the fabric.
    #[serde(default)]
    pub faults: Vec<FaultSpec>,
    /// The observation to keep.
    #[serde(default)]
    pub observe: observe::Parameters,
}
