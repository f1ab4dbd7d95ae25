//! The costs of message passing for a rank, and the protocol and algorithms that it uses.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::BuildError;
use crate::units::{BitsPerSec, Bytes, Picoseconds};

/// The cost of a message of a size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TimeBySize {
    /// Payload of the message.
    pub size: Bytes,
    /// Its time.
    pub time: Picoseconds,
}

/// The time of so many bytes, ps: linear between two sizes, from `none` at 0, and that of the last beyond it.
#[inline]
fn between(none: Picoseconds, sizes: &[TimeBySize], bytes: u64) -> u64 {
    let (mut size, mut time) = (0, none.0);
    for next in sizes {
        if bytes < next.size.0 {
            let [span, beyond] = [next.size.0 - size, bytes - size].map(u128::from);
            let weighted = u128::from(time) * (span - beyond) + u128::from(next.time.0) * beyond;
            return u64::try_from(weighted / span).expect("invariant: a mean of two times");
        }
        (size, time) = (next.size.0, next.time.0);
    }
    time
}

/// Costs and choices of the MPI library; see the model page for what each does.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Parameters {
    /// Largest payload that is sent at once, without asking the receiver.
    pub eager_threshold: Bytes,
    /// Largest payload of an eager message that comes unasked: the receiver's adapter fetches larger ones. Default: all come so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mailbox_threshold: Option<Bytes>,
    /// CPU time of a send; with `send_overheads`, of one without payload.
    pub send_overhead: Picoseconds,
    /// CPU time of larger sends, in order of size: linear between two of them, that of the last beyond it.
    pub send_overheads: Vec<TimeBySize>,
    /// How long after it was handed over the first packet of a message can leave an adapter, in order of size: linear
    /// from 0 without payload. Neither CPU nor link is busy meanwhile.
    pub adapter_delays: Vec<TimeBySize>,
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
            mailbox_threshold: None,
            send_overhead: Picoseconds::from_nanos(200),
            send_overheads: Vec::new(),
            adapter_delays: Vec::new(),
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
    /// CPU time of a send of so many bytes, ps.
    #[inline]
    pub(super) fn send_overhead_of(&self, bytes: u64) -> u64 {
        between(self.send_overhead, &self.send_overheads, bytes)
    }

    /// How long an adapter has a message of so many bytes before its first packet can leave, ps.
    #[inline]
    pub(super) fn adapter_delay_of(&self, bytes: u64) -> u64 {
        between(Picoseconds::ZERO, &self.adapter_delays, bytes)
    }

    /// Whether a message may overtake an earlier one of the same ranks: a delay depends on its size, or some are fetched.
    pub(super) fn overtake(&self) -> bool {
        !self.adapter_delays.is_empty() || self.mailbox_threshold.is_some()
    }

    /// Whether the receiver's adapter fetches the payload of an eager message.
    #[inline]
    pub(super) fn is_fetched(&self, bytes: Bytes) -> bool {
        self.mailbox_threshold.is_some_and(|largest| bytes > largest)
    }

    /// Checks rates and times. Names of collectives are checked by [`Preferences::new`](super::collective::algorithms::Preferences::new).
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
        let lists = [("send_overheads", &self.send_overheads), ("adapter_delays", &self.adapter_delays)];
        for (key, list) in lists {
            let mut least = 1;
            for (place, TimeBySize { size, .. }) in list.iter().enumerate() {
                if size.0 < least {
                    let allowed = format!("at least {least} bytes: sizes in ascending order");
                    return Err(BuildError::value(format!("mpi.{key}.{place}.size"), size.0, allowed));
                }
                least = size.0.saturating_add(1);
            }
        }
        let sized = lists.into_iter().flat_map(|(key, list)| {
            list.iter().enumerate().map(move |(place, one)| (format!("{key}.{place}.time"), one.time))
        });
        let plain = [
            ("send_overhead", self.send_overhead),
            ("receive_overhead", self.receive_overhead),
            ("memory_latency", self.memory_latency),
        ];
        for (key, span) in plain.into_iter().map(|(key, span)| (key.to_owned(), span)).chain(sized) {
            if span.0 > 1_000_000_000_000 {
                return Err(BuildError::value(format!("mpi.{key}"), span, "at most one second"));
            }
        }
        Ok(())
    }
}
