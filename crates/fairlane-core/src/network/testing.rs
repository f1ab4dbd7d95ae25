//! Hosts for unit tests of the network: each sends one message at instant zero.

use super::{Delivery, Endpoint, Injection, Pause, Prefetch};
use crate::error::RunError;
use crate::ids::{HostId, JobId, Rank, VirtualLane};
use crate::qos::levels::TrafficKind;
use crate::units::{Bytes, Instant};

/// For each host the destination and the payload of its message, until it has been sent. Host `n` sends for job `n`.
pub struct Senders(pub Vec<Option<(HostId, Bytes)>>);

impl Endpoint for Senders {
    type Mail = ();

    fn run(
        &mut self,
        host: HostId,
        _until: Instant,
        _deliveries: &[Delivery],
        injections: &mut Vec<Injection>,
    ) -> Result<Pause, RunError> {
        let message = |(to, bytes)| Injection {
            at: Instant::ZERO,
            from: host,
            to,
            bytes,
            rails: [0, 0],
            vl: VirtualLane(0),
            job: JobId(u16::try_from(host.0).unwrap()),
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
