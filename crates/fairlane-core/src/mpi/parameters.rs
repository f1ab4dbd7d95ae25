//! What message passing costs a rank, and which protocol and algorithms it uses.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::BuildError;
use crate::units::{BitsPerSec, Bytes, Picoseconds};

/// Costs and choices of the MPI library; see the model page for what each does.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Parameters {
    /// Largest payload that is sent at once, without asking the receiver.
    pub eager_threshold: Bytes,
    /// CPU time of a send.
    pub send_overhead: Picoseconds,
    /// CPU time of a completed receive.
    pub receive_overhead: Picoseconds,
    /// Payload of a rendezvous request, get and acknowledgement.
    pub control_bytes: Bytes,
    /// Latency between ranks of one host.
    pub memory_latency: Picoseconds,
    /// Bandwidth between ranks of one host.
    pub memory_bandwidth: BitsPerSec,
    /// A rank sends and receives one message through memory at a time, as over a link of its own to a switch in the host.
    pub memory_contention: bool,
    /// How many messages can have been sent and not received, of all jobs together: more end the run with an error.
    pub max_messages: u64,
    /// Rate at which a rank combines operands of a reduction.
    pub reduction_bandwidth: BitsPerSec,
    /// Algorithms to use instead of the default choice: kind of collective to name.
    pub collectives: BTreeMap<String, String>,
}

impl Default for Parameters {
    /// Eager up to 16 KiB, 200 ns a send or receive, 64-byte control messages, 200 ns and 80 Gb/s through memory
    /// with contention, 80 Gb/s of reduction, 2^23 messages.
    fn default() -> Self {
        Self {
            eager_threshold: Bytes(16384),
            send_overhead: Picoseconds::from_nanos(200),
            receive_overhead: Picoseconds::from_nanos(200),
            control_bytes: Bytes(64),
            memory_latency: Picoseconds::from_nanos(200),
            memory_bandwidth: BitsPerSec(80_000_000_000),
            memory_contention: true,
            max_messages: 1 << 23,
            reduction_bandwidth: BitsPerSec(80_000_000_000),
            collectives: BTreeMap::new(),
        }
    }
}

impl Parameters {
    /// Checks rates and times. Names of collectives are checked by [`Preferences::new`](super::collectives::Preferences::new).
    ///
    /// # Errors
    /// [`BuildError`] with the key under `mpi`.
    pub fn check(&self) -> Result<(), BuildError> {
        for (key, rate) in
            [("memory_bandwidth", self.memory_bandwidth), ("reduction_bandwidth", self.reduction_bandwidth)]
        {
            if rate.0 < 1_000_000 {
                return Err(BuildError::value(format!("mpi.{key}"), rate.0, "at least 1 Mb/s"));
            }
        }
        if self.max_messages == 0 {
            return Err(BuildError::value("mpi.max_messages", 0, "at least one message"));
        }
        for (key, span) in [
            ("send_overhead", self.send_overhead),
            ("receive_overhead", self.receive_overhead),
            ("memory_latency", self.memory_latency),
        ] {
            if span.0 > 1_000_000_000_000 {
                return Err(BuildError::value(format!("mpi.{key}"), span, "at most one second"));
            }
        }
        Ok(())
    }
}
