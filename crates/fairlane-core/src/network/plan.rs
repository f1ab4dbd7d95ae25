//! The parts of which a network is made.

use std::sync::Arc;

use super::parameters::Parameters;
use super::partition::Partition;
use super::switch::Architecture;
use super::transport::Transport;
use crate::ids::JobId;
use crate::observe;
use crate::qos::arbiter::Arbitration;
use crate::routing::Routing;
use crate::topology::Graph;

/// The parts of which a network is made.
pub struct Plan {
    /// The fabric.
    pub graph: Arc<Graph>,
    /// Where packets go.
    pub routing: Arc<dyn Routing>,
    /// How lanes share a link.
    pub arbiter: Box<dyn Arbitration>,
    /// When NICs start packets.
    pub transport: Arc<dyn Transport>,
    /// The same for packets of jobs that have a transport of their own.
    pub job_transports: Vec<(JobId, Arc<dyn Transport>)>,
    /// Where packets wait in switches.
    pub architecture: Architecture,
    /// Virtual lanes in use.
    pub virtual_lanes: u8,
    /// Those on which packets need no credits and are lost at full queues.
    pub lossy: Vec<u8>,
    /// The virtual lane of the headers of packets that are trimmed instead, if they are.
    pub trim_vl: Option<u8>,
    /// Jobs that share the fabric.
    pub jobs: usize,
    /// The job of each [`TrafficId`](crate::ids::TrafficId); empty if they are the numbers of jobs.
    pub traffic: Vec<JobId>,
    /// Sizes and times.
    pub parameters: Parameters,
    /// The observation to keep.
    pub observe: observe::Parameters,
}

impl Plan {
    /// The most shards that a network of this plan can have: one if packets are logged, whose order would be lost, or if switches
    /// look at the loads of other switches.
    #[must_use]
    pub fn most_shards(&self) -> usize {
        let logged = !self.observe.departs().is_empty();
        if logged || !self.routing.sees_own_ports_only() { 1 } else { Partition::MOST_SHARDS }
    }
}
