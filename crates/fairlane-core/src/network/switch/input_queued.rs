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

use std::fmt;
use std::sync::Arc;

use schemars::{JsonSchema, schema_for};
use serde::Deserialize;

use super::allocator::{self, Allocator, Allocators};
use super::{Architecture, Entry, Surroundings, Switches};
use crate::error::BuildError;
use crate::table::{Choice, Kind};
use crate::units::Bytes;
pub(in crate::network) use crossbar::{Crossbars, Event, Queue};

/// The architecture's line in the table.
pub const ENTRY: Entry = Entry {
    name: "input_queued",
    summary: "queues at the inputs, a crossbar with a speed-up, an allocator, and small output buffers",
    schema: || schema_for!(Params),
    build: |json, surroundings| {
        crate::table::params::<Params>(Switches::PATH, json)?.build(surroundings).map(Architecture::InputQueued)
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
    { "speedup": 1.25, "allocator": "age_based" },
]))]
struct Params {
    /// How an input buffer is organised: one queue per lane, or one queue per lane and output port. Default: `voq`.
    queues: InputQueues,
    /// Rate of the crossbar, as a multiple of the bandwidth of the switch's fastest link: 1 to 64, in thousandths. Default: 2.
    #[schemars(range(min = 1.0, max = 64.0))]
    speedup: f64,
    /// How inputs are matched with outputs: an allocator by name, or a name with parameters. Default: `round_robin`.
    allocator: Choice,
    /// Iterations of request, grant and accept: 1 to 64. Default: 4.
    #[schemars(range(min = 1, max = 64))]
    iterations: u8,
    /// Buffer of each lane of an output port, at least one full packet. Default: two full packets.
    output_buffer: Option<Bytes>,
}

impl Default for Params {
    fn default() -> Self {
        Self {
            queues: InputQueues::Voq,
            speedup: 2.0,
            allocator: Choice::Name(allocator::DEFAULT.to_owned()),
            iterations: 4,
            output_buffer: None,
        }
    }
}

impl Params {
    fn build(&self, given: Surroundings) -> Result<InputQueued, BuildError> {
        let (name, params) = self.allocator.parts();
        let path = Allocators::PATH;
        let allocator = given.allocators.build(name, params, ()).map_err(|error| error.of(path, path, name))?;
        let output_buffer = self.output_buffer.unwrap_or(Bytes(2 * given.full_packet.0));
        InputQueued::new(self.queues, allocator.into(), self.iterations, self.speedup, output_buffer, given)
    }
}

/// How an input buffer is organised.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum InputQueues {
    /// One queue for each lane: a packet also waits for those ahead of it that leave through other ports (head-of-line
    /// blocking).
    Fifo,
    /// One queue for each lane and output port (virtual output queues).
    Voq,
}

/// The parameters of input-queued switches, checked.
#[derive(Clone)]
pub struct InputQueued {
    pub(in crate::network) queues: InputQueues,
    pub(in crate::network) allocator: Arc<dyn Allocator>,
    pub(in crate::network) iterations: u8,
    /// Speed-up of the crossbar, in thousandths.
    pub(in crate::network) thousandths: u32,
    /// Bytes of an output buffer.
    pub(in crate::network) output_buffer: u32,
}

impl fmt::Debug for InputQueued {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.debug_struct("InputQueued").field("queues", &self.queues).finish_non_exhaustive()
    }
}

impl InputQueued {
    /// Input-queued switches.
    ///
    /// `iterations` is 1 to 64; `speedup`, the rate of the crossbar as a multiple of the bandwidth of the switch's fastest link,
    /// is 1 to 64 in thousandths; `output_buffer`, that of each lane of an output port, holds at least one full packet.
    ///
    /// # Errors
    /// [`BuildError::Value`] names the parameter that is out of its range.
    pub fn new(
        queues: InputQueues,
        allocator: Arc<dyn Allocator>,
        iterations: u8,
        speedup: f64,
        output_buffer: Bytes,
        given: Surroundings,
    ) -> Result<Self, BuildError> {
        let thousandths = (speedup * 1000.0).round();
        if !(1000.0..=64_000.0).contains(&thousandths) || (speedup * 1000.0 - thousandths).abs() > 1e-6 {
            return Err(BuildError::value("network.switch.speedup", speedup, "1 to 64, with at most three decimals"));
        }
        if !(1..=64).contains(&iterations) {
            return Err(BuildError::value("network.switch.iterations", iterations, "1 to 64"));
        }
        let full = given.full_packet;
        let Some(fits) = u32::try_from(output_buffer.0).ok().filter(|_| output_buffer >= full) else {
            let allowed = format!("at least one full packet (mtu + header = {} bytes), below 4 GiB", full.0);
            return Err(BuildError::value("network.switch.output_buffer", output_buffer.0, allowed));
        };
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "1000 to 64000")]
        let thousandths = thousandths as u32;
        Ok(Self { queues, allocator, iterations, thousandths, output_buffer: fits })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::table::Table;

    #[test]
    fn wrong_parameters_are_named() {
        let refused = |params| {
            let given = Surroundings { full_packet: Bytes(4122), allocators: &Table::default() };
            Table::<Switches>::default().build("input_queued", &params, given).unwrap_err().to_string()
        };
        assert!(refused(json!({ "speedup": 0.9 })).starts_with("network.switch.speedup = 0.9: 1 to 64"));
        assert!(refused(json!({ "speedup": 1.0005 })).contains("three decimals"));
        assert!(refused(json!({ "iterations": 0 })).starts_with("network.switch.iterations = 0: 1 to 64"));
        assert!(refused(json!({ "output_buffer": 4121 })).contains("at least one full packet"));
        assert!(refused(json!({ "output_buffer": 1_u64 << 32 })).contains("below 4 GiB"));
        assert!(refused(json!({ "queues": "lifo" })).contains("lifo"));
        let unknown = refused(json!({ "allocator": "oldest_frst" }));
        assert!(
            unknown.starts_with(
                "network.switch.allocator: unknown switch allocator \"oldest_frst\"; allowed: round_robin"
            )
        );
        assert!(unknown.ends_with("did you mean \"oldest_first\"?"), "{unknown}");
        let surplus = refused(json!({ "allocator": { "name": "age_based", "params": { "by": 1 } } }));
        assert!(surplus.starts_with("network.switch.allocator: unknown field `by`"), "{surplus}");
    }
}
