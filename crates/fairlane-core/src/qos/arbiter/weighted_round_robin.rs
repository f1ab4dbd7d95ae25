//! Weighted round robin in packets.
//!
//! The current lane is served while it is ready and has packets left of its weight; then the next ready lane in cyclic
//! order becomes current, with its full weight. Under saturation lanes share *packets* in proportion to their weights.

use schemars::{JsonSchema, schema_for};
use serde::Deserialize;

use super::{Arbiter, Entry, Lanes, MAX_VIRTUAL_LANES, Ports, Queues};
use crate::error::BuildError;
use crate::ids::VirtualLane;
use crate::units::{BitsPerSec, Bytes, Instant};

/// Weighted round robin's line in the table.
pub const ENTRY: Entry = Entry {
    name: "weighted_round_robin",
    summary: "round-robin over the ready lanes, each sending as many packets as its weight",
    schema: || schema_for!(Params),
    build: |json, lanes| {
        let params: Params = crate::table::params("qos.arbiter", json)?;
        Ok(Ports::none(WeightedRoundRobin::new(&params.weights, lanes)?))
    },
};

/// Weighted round robin among virtual lanes.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("examples" = [{ "weights": [7, 2] }, { "weights": 4 }]))]
struct Params {
    /// Packets per round, 1 to 65535: a list with the weight of each lane, or one number for all. Default: 1.
    #[serde(default)]
    weights: Weights,
}

/// Weights as they are written.
#[derive(Deserialize, JsonSchema)]
#[serde(untagged)]
enum Weights {
    /// The same for every lane.
    All(u32),
    /// One for each lane, in order of lane number.
    Each(Vec<u32>),
}

impl Default for Weights {
    fn default() -> Self {
        Self::All(1)
    }
}

/// The state of a port.
#[derive(Clone)]
struct Turn {
    /// The current lane; before the first turn the last, with no packets left.
    lane: VirtualLane,
    /// Packets left to it.
    left: u16,
}

/// After it comes lane 0.
#[allow(clippy::cast_possible_truncation, reason = "31")]
const LAST: VirtualLane = VirtualLane(MAX_VIRTUAL_LANES as u8 - 1);

struct WeightedRoundRobin {
    weights: [u16; MAX_VIRTUAL_LANES],
}

impl WeightedRoundRobin {
    fn new(weights: &Weights, lanes: u8) -> Result<Self, BuildError> {
        let path = "qos.arbiter.weights";
        let each = match weights {
            Weights::All(weight) => vec![*weight; usize::from(lanes)],
            Weights::Each(each) => each.clone(),
        };
        if each.len() != usize::from(lanes) {
            let allowed = format!("as many weights as there are virtual lanes, {lanes}");
            return Err(BuildError::value(path, format!("{each:?}"), allowed));
        }
        let mut table = [1; MAX_VIRTUAL_LANES];
        for (lane, weight) in each.iter().enumerate() {
            let checked = u16::try_from(*weight).ok().filter(|weight| *weight >= 1);
            let out_of_range = || BuildError::value(format!("{path}[{lane}]"), weight, "1 to 65535 packets per round");
            table[lane] = checked.ok_or_else(out_of_range)?;
        }
        Ok(Self { weights: table })
    }
}

impl Arbiter for WeightedRoundRobin {
    type State = Turn;

    fn begin(&self, _bandwidth: BitsPerSec) -> Turn {
        Turn { lane: LAST, left: 0 }
    }

    #[inline]
    fn pick(&self, turn: &mut Turn, ready: Lanes, _queues: &dyn Queues, _now: Instant) -> VirtualLane {
        if turn.left > 0 && ready.contains(turn.lane) {
            return turn.lane;
        }
        let lane = ready.next_from(VirtualLane(turn.lane.0 + 1)).expect("invariant: a lane is ready");
        *turn = Turn { lane, left: self.weights[lane.index()] };
        lane
    }

    #[inline]
    fn serve_alone(&self, turn: &mut Turn, lane: VirtualLane, _bytes: Bytes, _now: Instant) {
        let left = if turn.lane == lane { turn.left } else { 0 };
        let full = self.weights[lane.index() % MAX_VIRTUAL_LANES];
        *turn = Turn { lane, left: if left == 0 { full } else { left } - 1 };
    }

    #[inline]
    fn sent(&self, turn: &mut Turn, _lane: VirtualLane, _bytes: Bytes, _now: Instant) {
        turn.left = turn.left.saturating_sub(1);
    }
}
