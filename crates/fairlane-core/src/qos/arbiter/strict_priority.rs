//! Strict priority, with optional shares of the link.
//!
//! A lane is served only when no lane of higher priority is ready. A lane with a share may send that percentage of
//! what the link carries in an interval; once it has, it is served only when no lane within its share is ready, until
//! the next interval begins. Intervals start at multiples of their length. A packet counts where it starts, and one
//! that starts within the share is sent whole. (The same rule is used in M. Mubarak et al., "Evaluating quality of
//! service traffic classes on the megafly network", ISC High Performance 2019.)

use schemars::{JsonSchema, schema_for};
use serde::Deserialize;

use super::{Arbiter, Entry, Lanes, Ports, Queues};
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
    build: |json, lanes| Ok(Ports::none(StrictPriority::new(&crate::table::params("qos.arbiter", json)?, lanes)?)),
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

/// The part of its shares that a port has sent in an interval.
#[derive(Clone)]
struct Sent {
    /// The end of the interval.
    end: Instant,
    /// The lanes that have used their share.
    spent: Lanes,
    /// The bytes used by each lane, and what it may use on this link.
    lanes: Box<[(u32, u32)]>,
}

struct StrictPriority {
    /// Lanes from highest to lowest.
    order: Box<[VirtualLane]>,
    shares: Option<BandwidthShares>,
}

/// The share of each lane in an interval.
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

    /// The share of a lane of a link in an interval. Bytes are whole: the share is used up by the first byte count that is
    /// not below it.
    fn allowance(&self, percent: u8, bandwidth: BitsPerSec) -> u32 {
        const SCALE: u128 = 8 * 100 * 1_000_000_000_000;
        let share = u128::from(bandwidth.0) * u128::from(self.interval) * u128::from(percent);
        u32::try_from(share.div_ceil(SCALE)).unwrap_or(UNBOUNDED)
    }

    /// The lanes of `ready` within their shares, or all of them if there is none.
    #[inline]
    fn within(&self, sent: &mut Sent, ready: Lanes, now: Instant) -> Lanes {
        if now >= sent.end {
            sent.end = Instant((now.0 / self.interval + 1).saturating_mul(self.interval));
            sent.spent = Lanes::default();
            sent.lanes.iter_mut().for_each(|(used, _)| *used = 0);
        }
        let within = Lanes(ready.0 & !sent.spent.0);
        if within.is_empty() { ready } else { within }
    }
}

impl Arbiter for StrictPriority {
    type State = Option<Sent>;

    fn begin(&self, bandwidth: BitsPerSec) -> Option<Sent> {
        let shares = self.shares.as_ref()?;
        let allowed = |percent: &Option<u8>| percent.map_or(UNBOUNDED, |percent| shares.allowance(percent, bandwidth));
        let lanes = shares.percents.iter().map(|percent| (0, allowed(percent))).collect();
        Some(Sent { end: Instant::ZERO, spent: Lanes::default(), lanes })
    }

    #[inline]
    fn pick(&self, sent: &mut Option<Sent>, ready: Lanes, _queues: &dyn Queues, now: Instant) -> VirtualLane {
        let set =
            self.shares.as_ref().zip(sent.as_mut()).map_or(ready, |(shares, sent)| shares.within(sent, ready, now));
        let lowest = set.next_from(VirtualLane(0)).expect("invariant: a lane is ready");
        let alone = set.0 >> lowest.0 == 1;
        if alone {
            return lowest;
        }
        *self.order.iter().find(|lane| set.contains(**lane)).expect("invariant: every lane has a priority")
    }

    #[inline]
    fn sent(&self, sent: &mut Option<Sent>, lane: VirtualLane, bytes: Bytes, _now: Instant) {
        let Some(sent) = sent else { return };
        let (used, allowed) = &mut sent.lanes[lane.index()];
        if *allowed == UNBOUNDED {
            return;
        }
        *used = used.saturating_add(u32::try_from(bytes.0).unwrap_or(u32::MAX));
        if *used >= *allowed {
            sent.spent.0 |= 1 << lane.0;
        }
    }
}
