//! InfiniBand's arbitration: two weighted tables, the high one served first within a limit.
//!
//! InfiniBand Architecture Specification, volume 1, release 1.4, section 7.6.9; names are OpenSM's. Weights count
//! units of 64 bytes on the wire, and a packet may overdraw what is left of a weight. `high_limit` bounds the bytes of
//! high-priority packets in a row that start while a low-priority lane is ready.

use schemars::{JsonSchema, schema_for};
use serde::Deserialize;

use super::{Arbiter, Entry, Lanes, Queues, State};
use crate::error::BuildError;
use crate::ids::VirtualLane;
use crate::units::{Bytes, Instant};

/// The arbitration's line in the table.
pub const ENTRY: Entry = Entry {
    name: "vlarb",
    summary: "InfiniBand's high and low tables of virtual lanes and weights",
    schema: || schema_for!(Params),
    build: |json, lanes| Ok(Box::new(Vlarb::new(&crate::table::params("qos.arbiter", json)?, lanes)?)),
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

/// Words of the state: of each table the entry after the current one and the bytes left to the current; then the
/// table of the last pick and the bytes of high-priority packets in a row.
const HIGH: usize = 0;
const LOW: usize = 2;
const SERVED: usize = 4;
const IN_A_ROW: usize = 5;
const WORDS: usize = 6;

/// Set in [`SERVED`] beside the table, when the packet held up no low-priority lane.
const UNOPPOSED: u32 = 1 << 8;

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

    /// Picks among `ready`, of which at least one lane is in the table. `state`: entry after the current, bytes left.
    #[inline]
    fn pick(&self, state: &mut State, ready: u32) -> VirtualLane {
        let current = state[0].wrapping_sub(1) as usize;
        if state[1] > 0
            && let Some(&(lane, _)) = self.entries.get(current)
            && ready >> lane.0 & 1 == 1
        {
            return lane;
        }
        let mut index = state[0] as usize;
        for _ in 0..self.entries.len() {
            if index >= self.entries.len() {
                index = 0;
            }
            let (lane, weight) = self.entries[index];
            index += 1;
            if ready >> lane.0 & 1 == 1 {
                #[allow(clippy::cast_possible_truncation, reason = "at most 64 entries")]
                let after = index as u32;
                (state[0], state[1]) = (after, weight);
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
    fn state_words(&self) -> usize {
        WORDS
    }

    #[inline]
    fn pick(&self, state: &mut State, ready: Lanes, _queues: &dyn Queues, _now: Instant) -> VirtualLane {
        let high = ready.0 & self.high.lanes;
        let opposed = ready.0 & self.low.lanes != 0;
        if high != 0 && (!opposed || state[IN_A_ROW] < self.limit) {
            state[SERVED] = if opposed { HIGH as u32 } else { HIGH as u32 | UNOPPOSED };
            return self.high.pick(&mut state[HIGH..LOW], high);
        }
        state[SERVED] = LOW as u32;
        self.low.pick(&mut state[LOW..SERVED], ready.0)
    }

    #[inline]
    fn sent(&self, state: &mut State, _lane: VirtualLane, bytes: Bytes, _now: Instant) {
        let bytes = u32::try_from(bytes.0).unwrap_or(u32::MAX);
        let served = state[SERVED];
        let left = (served & !UNOPPOSED) as usize + 1;
        state[left] = state[left].saturating_sub(bytes);
        // One below the largest number: without a bound the limit is never reached.
        state[IN_A_ROW] =
            if served == HIGH as u32 { state[IN_A_ROW].saturating_add(bytes).min(u32::MAX - 1) } else { 0 };
    }
}
