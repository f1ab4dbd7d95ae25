//! Strict priority, with optional shares of the link.
//!
//! A lane is served only when no lane of higher priority is ready. A lane with a share may send that percentage of
//! what the link carries in an interval; once it has, it is served only when no lane within its share is ready, until
//! the next interval begins. Intervals start at multiples of their length. A packet counts where it starts, and one
//! that starts within the share is sent whole. (The same rule is used in M. Mubarak et al., "Evaluating quality of
//! service traffic classes on the megafly network", ISC High Performance 2019.)

use schemars::{JsonSchema, schema_for};
use serde::Deserialize;

use super::{Arbiter, Entry, Lanes, Queues, State};
use crate::error::BuildError;
use crate::ids::VirtualLane;
use crate::units::{BitsPerSec, Bytes, Instant, Picoseconds};

/// The allowance of a lane without a share.
const UNBOUNDED: u32 = u32::MAX;

/// Strict priority's line in the table.
pub const ENTRY: Entry = Entry {
    name: "strict_priority",
    summary: "the ready lane of highest priority, with optional bandwidth shares",
    schema: || schema_for!(Params),
    build: |json, lanes| Ok(Box::new(StrictPriority::new(&crate::table::params("qos.arbiter", json)?, lanes)?)),
};

/// Strict priority among virtual lanes.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("examples" = [{ "order": [1, 0] }, { "shares": [[1, 25]] }]))]
struct Params {
    /// The lanes from highest to lowest priority. Default: from the highest lane number to lane 0.
    #[serde(default)]
    order: Option<Vec<u8>>,
    /// Pairs of virtual lane and percent of what the link can carry, 1 to 100, up to which its priority holds. Default:
    /// none, priority always holds.
    #[serde(default)]
    shares: Vec<(u8, u8)>,
    /// Time over which shares are counted, at most 10 ms. Default: 10 us.
    #[serde(default = "default_interval")]
    interval: Picoseconds,
}

const fn default_interval() -> Picoseconds {
    Picoseconds::from_micros(10)
}

/// So long an interval that no link carries 4 GiB in it.
const LONGEST: Picoseconds = Picoseconds::from_micros(10_000);

/// Words of the state where there are shares: the end of the interval (two words), the lanes that have used their
/// share, the bytes used by each lane, and what each may use on this link.
const END: usize = 0;
const SPENT: usize = 2;
const USED: usize = 3;

struct StrictPriority {
    /// Lanes from highest to lowest.
    order: Box<[VirtualLane]>,
    shares: Option<BandwidthShares>,
}

/// What each lane may send in an interval.
struct BandwidthShares {
    interval: u64,
    /// Percent of what the link carries, by lane.
    percents: Box<[Option<u8>]>,
}

impl StrictPriority {
    fn new(params: &Params, lanes: u8) -> Result<Self, BuildError> {
        let order = params.order.clone().unwrap_or_else(|| (0..lanes).rev().collect());
        let mut sorted = order.clone();
        sorted.sort_unstable();
        if !sorted.iter().copied().eq(0..lanes) {
            let allowed = format!("each of the {lanes} virtual lanes in use once, highest priority first");
            return Err(BuildError::value("qos.arbiter.order", format!("{order:?}"), allowed));
        }
        let shares = if params.shares.is_empty() { None } else { Some(BandwidthShares::new(params, lanes)?) };
        Ok(Self { order: order.into_iter().map(VirtualLane).collect(), shares })
    }
}

impl BandwidthShares {
    fn new(params: &Params, lanes: u8) -> Result<Self, BuildError> {
        if params.interval == Picoseconds::ZERO || params.interval > LONGEST {
            return Err(BuildError::value("qos.arbiter.interval", params.interval, "a time above zero, at most 10 ms"));
        }
        let mut percents = vec![None; usize::from(lanes)].into_boxed_slice();
        for (index, &(lane, percent)) in params.shares.iter().enumerate() {
            let path = format!("qos.arbiter.shares[{index}]");
            if lane >= lanes {
                return Err(BuildError::value(path, lane, format!("a virtual lane in use, 0 to {}", lanes - 1)));
            }
            if !(1..=100).contains(&percent) {
                return Err(BuildError::value(path, percent, "1 to 100 percent"));
            }
            percents[usize::from(lane)] = Some(percent);
        }
        Ok(Self { interval: params.interval.0, percents })
    }

    /// What a lane may send over a link in an interval. Bytes are whole: the share is used up by the first byte count that is
    /// not below it.
    fn allowance(&self, percent: u8, bandwidth: BitsPerSec) -> u32 {
        const SCALE: u128 = 8 * 100 * 1_000_000_000_000;
        let share = u128::from(bandwidth.0) * u128::from(self.interval) * u128::from(percent);
        u32::try_from(share.div_ceil(SCALE)).unwrap_or(UNBOUNDED)
    }

    fn allowances(&self) -> usize {
        USED + self.percents.len()
    }

    /// The lanes of `ready` within their shares, or all of them if there is none.
    #[inline]
    fn within(&self, state: &mut State, ready: Lanes, now: Instant) -> Lanes {
        let end = u64::from(state[END]) | u64::from(state[END + 1]) << 32;
        if now.0 >= end {
            state[SPENT..self.allowances()].fill(0);
            let next = (now.0 / self.interval + 1).saturating_mul(self.interval);
            #[allow(clippy::cast_possible_truncation, reason = "a number in two words")]
            (state[END] = next as u32);
            state[END + 1] = (next >> 32) as u32;
        }
        let within = Lanes(ready.0 & !state[SPENT]);
        if within.is_empty() { ready } else { within }
    }
}

impl Arbiter for StrictPriority {
    fn state_words(&self) -> usize {
        self.shares.as_ref().map_or(0, |shares| shares.allowances() + shares.percents.len())
    }

    fn begin(&self, state: &mut State, bandwidth: BitsPerSec) {
        let Some(shares) = &self.shares else { return };
        for (allowed, percent) in state[shares.allowances()..].iter_mut().zip(&shares.percents) {
            *allowed = percent.map_or(UNBOUNDED, |percent| shares.allowance(percent, bandwidth));
        }
    }

    #[inline]
    fn pick(&self, state: &mut State, ready: Lanes, _queues: &dyn Queues, now: Instant) -> VirtualLane {
        let set = self.shares.as_ref().map_or(ready, |shares| shares.within(state, ready, now));
        let lowest = set.next_from(VirtualLane(0)).expect("invariant: a lane is ready");
        let alone = set.0 >> lowest.0 == 1;
        if alone {
            return lowest;
        }
        *self.order.iter().find(|lane| set.contains(**lane)).expect("invariant: every lane has a priority")
    }

    #[inline]
    fn sent(&self, state: &mut State, lane: VirtualLane, bytes: Bytes, _now: Instant) {
        let Some(shares) = &self.shares else { return };
        let allowed = state[shares.allowances() + lane.index()];
        if allowed == UNBOUNDED {
            return;
        }
        let used = &mut state[USED + lane.index()];
        *used = used.saturating_add(u32::try_from(bytes.0).unwrap_or(u32::MAX));
        if *used >= allowed {
            state[SPENT] |= 1 << lane.0;
        }
    }
}
