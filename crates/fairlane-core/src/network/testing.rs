//! Plans and hosts for unit tests of the network.

use std::sync::Arc;

use serde_json::json;

use super::{Architecture, Delivery, Endpoint, Injection, Parameters, Pause, Plan, Prefetch, transport};
use crate::error::RunError;
use crate::ids::{HostId, JobId, Rank, TrafficId, VirtualLane};
use crate::observe;
use crate::qos::arbiter;
use crate::qos::levels::TrafficKind;
use crate::routing::Routing;
use crate::topology::Graph;
use crate::units::{Bytes, Instant};

/// A plan with defaults for all that is not given.
pub fn plan(graph: &Arc<Graph>, routing: Arc<dyn Routing>, virtual_lanes: u8) -> Plan {
    Plan {
        graph: Arc::clone(graph),
        routing,
        arbiter: arbiter::build("weighted_round_robin", &json!({}), virtual_lanes).unwrap(),
        transport: transport::default().into(),
        job_transports: Vec::new(),
        lossy: Vec::new(),
        trim_vl: None,
        architecture: Architecture::OutputQueued,
        virtual_lanes,
        jobs: 1,
        traffic: Vec::new(),
        parameters: Parameters::default(),
        observe: observe::Parameters::default(),
    }
}

/// Hosts that each send one message at instant zero: its destination and payload until it has been sent. Host `n` sends for job `n`.
pub struct Senders(pub Vec<Option<(HostId, Bytes)>>);

impl Endpoint for Senders {
    type Mail = ();

    fn run(
        &mut self,
        host: HostId,
        _until: Instant,
        _deliveries: &[Delivery],
        injections: &mut Vec<Injection>,
    ) -> Result<Pause, Box<RunError>> {
        let message = |(to, bytes)| Injection {
            at: Instant::ZERO,
            from: host,
            to,
            bytes,
            rails: [0, 0],
            vl: VirtualLane(0),
            job: JobId(u16::try_from(host.0).unwrap()),
            traffic: TrafficId(u16::try_from(host.0).unwrap()),
            kind: TrafficKind::Eager,
            sender: Rank(0),
            receiver: Rank(0),
            token: 0,
            stage: 0,
            urgent: false,
        };
        injections.extend(self.0[host.index()].take().map(message));
        Ok(Pause { at: None, deferrable: false })
    }

    fn post(&mut self, _shard: usize, _mail: &mut ()) {}

    fn accept(&mut self, _shard: usize, _mail: &mut ()) {}

    fn end_window(&mut self, _until: Instant) -> bool {
        false
    }
}

impl Prefetch for Senders {}
