//! InfiniBand's arbitration: two weighted tables, the high one served first within a limit.
//!
//! InfiniBand Architecture Specification, volume 1, release 1.4, section 7.6.9; names are OpenSM's. Weights count
//! units of 64 bytes on the wire, and a packet may overdraw what is left of a weight. `high_limit` bounds the bytes of
//! high-priority packets in a row that start while a low-priority lane is ready.

use schemars::{JsonSchema, schema_for};
use serde::Deserialize;

use super::{Arbiter, Entry, Lanes, Ports, Queues};
use crate::error::BuildError;
use crate::ids::VirtualLane;
use crate::units::{BitsPerSec, Bytes, Instant};

/// The arbitration's line in the table.
pub const ENTRY: Entry = Entry {
    name: "vlarb",
    summary: "InfiniBand's high and low tables of virtual lanes and weights",
    schema: || schema_for!(Params),
    build: |json, lanes| Ok(Ports::none(Vlarb::new(&crate::table::params("qos.arbiter", json)?, lanes)?)),
};

/// InfiniBand's two-table arbitration. Every lane in use stands in one of the tables, or in both.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("examples" = [{ "vlarb_high": [[1, 64]], "vlarb_low": [[0, 64]], "high_limit": 4 }]))]
struct Params {
    /// The high-priority table: pairs of virtual lane and weight, at most 64. The weight, 0 to 255, counts units of 64
    /// bytes; an entry of weight 0 is skipped. Default: empty.
    #[serde(default)]
    vlarb_high: Vec<(u8, u8)>,
    /// The low-priority table, in the same form. Default: every lane that `vlarb_high` leaves out, with weight 64.
    #[serde(default)]
    vlarb_low: Option<Vec<(u8, u8)>>,
    /// Bytes of the high table that may be sent while the low table waits: units of 4096 bytes; 0 means one packet, 255
    /// means no bound. Default: 0.
    #[serde(default)]
    high_limit: u8,
}

/// Bytes in a unit of weight.
const WEIGHT_UNIT: u32 = 64;
/// Bytes in a unit of `high_limit`.
const LIMIT_UNIT: u32 = 4096;
/// The weight of lanes in the default low table.
const DEFAULT_WEIGHT: u8 = 64;
const MAX_ENTRIES: usize = 64;

/// The state of a port.
#[derive(Clone, Default)]
struct Turns {
    high: Turn,
    low: Turn,
    served: Served,
    /// Bytes of high-priority packets in a row.
    in_a_row: u32,
}

/// The state of a table.
#[derive(Clone, Default)]
struct Turn {
    /// The entry after the current one.
    after: usize,
    /// Bytes left to the current one.
    left: u32,
}

/// The table of the last pick.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Served {
    /// The high one, while a low-priority lane was ready.
    #[default]
    High,
    /// The high one, and no low-priority lane was ready.
    Unopposed,
    /// The low one.
    Low,
}

struct Vlarb {
    high: ArbitrationTable,
    low: ArbitrationTable,
    /// Fewer bytes in a row than this leave the turn to the high table.
    limit: u32,
}

/// One table, without the entries of weight zero.
struct ArbitrationTable {
    entries: Box<[(VirtualLane, u32)]>,
    /// The lanes in it.
    lanes: u32,
}

impl ArbitrationTable {
    fn new(name: &str, pairs: &[(u8, u8)], lanes: u8) -> Result<Self, BuildError> {
        let path = format!("qos.arbiter.{name}");
        if pairs.len() > MAX_ENTRIES {
            return Err(BuildError::value(path, format!("{} entries", pairs.len()), "at most 64 entries"));
        }
        if let Some(index) = pairs.iter().position(|(lane, weight)| *weight > 0 && *lane >= lanes) {
            let allowed = format!("a virtual lane in use, 0 to {}", lanes - 1);
            return Err(BuildError::value(format!("{path}[{index}]"), pairs[index].0, allowed));
        }
        let entries: Box<[_]> = pairs
            .iter()
            .filter(|(_, weight)| *weight > 0)
            .map(|(lane, weight)| (VirtualLane(*lane), u32::from(*weight) * WEIGHT_UNIT))
            .collect();
        let lanes = entries.iter().fold(0, |set, (lane, _)| set | 1 << lane.0);
        Ok(Self { entries, lanes })
    }

    /// Picks among `ready`, of which at least one lane is in the table.
    #[inline]
    fn pick(&self, turn: &mut Turn, ready: u32) -> VirtualLane {
        if turn.left > 0
            && let Some(&(lane, _)) = self.entries.get(turn.after.wrapping_sub(1))
            && ready >> lane.0 & 1 == 1
        {
            return lane;
        }
        let mut index = turn.after;
        for _ in 0..self.entries.len() {
            if index >= self.entries.len() {
                index = 0;
            }
            let (lane, weight) = self.entries[index];
            index += 1;
            if ready >> lane.0 & 1 == 1 {
                *turn = Turn { after: index, left: weight };
                return lane;
            }
        }
        unreachable!("invariant: a lane of the table is ready")
    }
}

impl Vlarb {
    fn new(params: &Params, lanes: u8) -> Result<Self, BuildError> {
        let high = ArbitrationTable::new("vlarb_high", &params.vlarb_high, lanes)?;
        let rest =
            || (0..lanes).filter(|lane| high.lanes >> lane & 1 == 0).map(|lane| (lane, DEFAULT_WEIGHT)).collect();
        let low = ArbitrationTable::new("vlarb_low", &params.vlarb_low.clone().unwrap_or_else(rest), lanes)?;
        if let Some(lane) = (0..lanes).find(|lane| (high.lanes | low.lanes) >> lane & 1 == 0) {
            let problem = format!(
                "virtual lane {lane} has a weight above zero neither in vlarb_high nor in vlarb_low: its packets would \
                 never move"
            );
            return Err(BuildError::Shape { path: "qos.arbiter".to_owned(), problem });
        }
        let limit = match params.high_limit {
            0 => 1,
            255 => u32::MAX,
            units => u32::from(units) * LIMIT_UNIT,
        };
        Ok(Self { high, low, limit })
    }
}

impl Arbiter for Vlarb {
    type State = Turns;

    fn begin(&self, _bandwidth: BitsPerSec) -> Turns {
        Turns::default()
    }

    #[inline]
    fn pick(&self, state: &mut Turns, ready: Lanes, _queues: &dyn Queues, _now: Instant) -> VirtualLane {
        let high = ready.0 & self.high.lanes;
        let opposed = ready.0 & self.low.lanes != 0;
        if high != 0 && (!opposed || state.in_a_row < self.limit) {
            state.served = if opposed { Served::High } else { Served::Unopposed };
            return self.high.pick(&mut state.high, high);
        }
        state.served = Served::Low;
        self.low.pick(&mut state.low, ready.0)
    }

    #[inline]
    fn sent(&self, state: &mut Turns, _lane: VirtualLane, bytes: Bytes, _now: Instant) {
        let bytes = u32::try_from(bytes.0).unwrap_or(u32::MAX);
        let turn = if state.served == Served::Low { &mut state.low } else { &mut state.high };
        turn.left = turn.left.saturating_sub(bytes);
        // One below the largest number: without a bound the limit is never reached.
        state.in_a_row =
            if state.served == Served::High { state.in_a_row.saturating_add(bytes).min(u32::MAX - 1) } else { 0 };
    }
}
