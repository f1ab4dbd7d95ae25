//! Input-queued switches: packets wait in the input buffers, cross a crossbar that an allocator schedules, and wait for the
//! output link in a small output buffer.
//!
//! See "Switch architecture" on the model page. The allocator follows N. McKeown, "The iSLIP scheduling algorithm for
//! input-queued switches", IEEE/ACM Transactions on Networking 7(2), 1999, for packets of any length: it runs whenever an
//! input, an output, or room at an output becomes free.
//!
//! [`crossbar`] is the state of a switch, [`window`] runs one through a window with its output ports, [`allocate`] matches
//! inputs with outputs, [`cross`] moves a packet.

mod allocate;
mod cross;
mod crossbar;
mod window;

use schemars::{JsonSchema, schema_for};
use serde::Deserialize;

use super::{Architecture, Entry};
use crate::error::BuildError;
use crate::units::Bytes;
pub(in crate::network) use crossbar::{Crossbars, Event, Queue};

/// The architecture's line in the table.
pub const ENTRY: Entry = Entry {
    name: "input_queued",
    summary: "queues at the inputs, a crossbar with a speed-up, an allocator, and small output buffers",
    schema: || schema_for!(Params),
    build: |json, full| {
        crate::table::params::<Params>("network.switch", json)?.check(full).map(Architecture::InputQueued)
    },
};

/// Queues at the inputs and a crossbar.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(extend("examples" = [
    {},
    { "queues": "fifo", "speedup": 1.0, "iterations": 1 },
    { "queues": "fifo", "allocator": "oldest_first", "output_buffer": 16_000 },
    { "speedup": 1.5, "allocator": "oldest_first", "iterations": 2 },
]))]
struct Params {
    /// How an input buffer is organised: one queue per lane, or one queue per lane and output port. Default: `voq`.
    queues: Queues,
    /// Rate of the crossbar, as a multiple of the bandwidth of the switch's fastest link: 1 to 64, in thousandths. Default: 2.
    #[schemars(range(min = 1.0, max = 64.0))]
    speedup: f64,
    /// How inputs are matched with outputs. Default: `round_robin`.
    allocator: Allocator,
    /// Iterations of request, grant and accept: 1 to 64. Default: 4.
    #[schemars(range(min = 1, max = 64))]
    iterations: u8,
    /// Buffer of each lane of an output port, at least one full packet. Default: two full packets.
    output_buffer: Option<Bytes>,
}

impl Default for Params {
    fn default() -> Self {
        Self { queues: Queues::Voq, speedup: 2.0, allocator: Allocator::RoundRobin, iterations: 4, output_buffer: None }
    }
}

/// How an input buffer is organised.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(in crate::network) enum Queues {
    /// One queue for each lane: a packet also waits for those ahead of it that leave through other ports (head-of-line
    /// blocking).
    Fifo,
    /// One queue for each lane and output port (virtual output queues).
    Voq,
}

/// How inputs are matched with outputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(in crate::network) enum Allocator {
    /// Each output grants, and each input accepts, in cyclic order (iSLIP).
    RoundRobin,
    /// Each output grants, and each input accepts, the packet that has waited longest at its input.
    OldestFirst,
}

/// The architecture with its parameters checked.
#[derive(Clone, Debug)]
pub struct InputQueued {
    pub(in crate::network) queues: Queues,
    pub(in crate::network) allocator: Allocator,
    pub(in crate::network) iterations: u8,
    /// Speed-up of the crossbar, in thousandths.
    pub(in crate::network) thousandths: u32,
    /// Bytes of an output buffer.
    pub(in crate::network) output_buffer: u32,
}

impl Params {
    fn check(&self, full: Bytes) -> Result<InputQueued, BuildError> {
        let thousandths = (self.speedup * 1000.0).round();
        if !(1000.0..=64_000.0).contains(&thousandths) || (self.speedup * 1000.0 - thousandths).abs() > 1e-6 {
            let allowed = "1 to 64, with at most three decimals";
            return Err(BuildError::value("network.switch.speedup", self.speedup, allowed));
        }
        if !(1..=64).contains(&self.iterations) {
            return Err(BuildError::value("network.switch.iterations", self.iterations, "1 to 64"));
        }
        let output_buffer = self.output_buffer.unwrap_or(Bytes(2 * full.0));
        let fits = u32::try_from(output_buffer.0).ok().filter(|_| output_buffer >= full);
        let allowed = || format!("at least one full packet (mtu + header = {} bytes), below 4 GiB", full.0);
        let refused = || BuildError::value("network.switch.output_buffer", output_buffer.0, allowed());
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "1000 to 64000")]
        let thousandths = thousandths as u32;
        Ok(InputQueued {
            queues: self.queues,
            allocator: self.allocator,
            iterations: self.iterations,
            thousandths,
            output_buffer: fits.ok_or_else(refused)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::network::switch::build;
    use crate::table::Named;

    #[test]
    fn wrong_parameters_are_named() {
        let refused = |params| {
            let spec = Named { name: "input_queued".into(), params };
            build(&spec, Bytes(4122)).unwrap_err().to_string()
        };
        assert!(refused(json!({ "speedup": 0.9 })).starts_with("network.switch.speedup = 0.9: 1 to 64"));
        assert!(refused(json!({ "speedup": 1.0005 })).contains("three decimals"));
        assert!(refused(json!({ "iterations": 0 })).starts_with("network.switch.iterations = 0: 1 to 64"));
        assert!(refused(json!({ "output_buffer": 4121 })).contains("at least one full packet"));
        assert!(refused(json!({ "output_buffer": 1_u64 << 32 })).contains("below 4 GiB"));
        assert!(refused(json!({ "queues": "lifo" })).contains("lifo"));
    }
}
