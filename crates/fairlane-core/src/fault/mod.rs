//! Faults: what happens to a fabric while it runs.
//!
//! A fault is one file that exports an [`Entry`]; [`TABLE`] lists them. It begins at an instant, and ends at another or lasts to
//! the end of the run. The [`Condition`] of the fabric is recomputed from all active faults whenever one begins or ends, so
//! faults that overlap need not know of each other.
//!
//! Between two changes the fabric is static: no fault is consulted for a packet.

mod adapter_down;
mod bit_errors;
mod degraded_link;
mod link_down;
mod log;
mod pause_storm;
mod slow_host;
mod switch_down;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

pub use log::{FaultLog, GivenUp, Sweep};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::BuildError;
use crate::ids::{HostId, LinkId, VirtualLane};
use crate::table::{Constructor, Item, Kind, Named, Table};
use crate::topology::Graph;
use crate::units::{BitsPerSec, Picoseconds};

/// Current deviations of the fabric from what was built.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Condition {
    bandwidths: BTreeMap<LinkId, BitsPerSec>,
    down: BTreeSet<LinkId>,
    errors: BTreeMap<LinkId, LinkErrors>,
    slow: BTreeMap<HostId, Slowness>,
    storms: BTreeSet<(LinkId, Option<VirtualLane>)>,
}

/// Errors per bit, in units of 2^-64.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct BitErrorRate(pub u64);

impl BitErrorRate {
    /// The probability that a packet of so many bytes has an error, in units of 2^-32. By multiplications alone, so that it is the
    /// same on every platform.
    #[must_use]
    pub fn chance_of_error(self, bytes: u32) -> u64 {
        let Self(rate) = self;
        #[allow(clippy::cast_precision_loss, reason = "a rate")]
        let (mut factor, mut good) = (1.0 - rate as f64 / (u64::MAX as f64 + 1.0), 1.0);
        let mut bits = u64::from(bytes) * 8;
        while bits > 0 {
            if bits & 1 == 1 {
                good *= factor;
            }
            factor *= factor;
            bits >>= 1;
        }
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "from 0 to 2^32")]
        {
            ((1.0_f64 - good) * 4_294_967_296.0) as u64
        }
    }
}

/// The errors of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkErrors {
    /// How frequent they are.
    pub rate: BitErrorRate,
    /// Packets with errors are lost; otherwise the link repeats them.
    pub lost: bool,
}

/// How many times as long computations take, in thousandths.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Slowness(pub u32);

impl Condition {
    /// Limits a link to this bandwidth; the lowest of several limits applies.
    pub fn limit(&mut self, link: LinkId, bandwidth: BitsPerSec) {
        let known = self.bandwidths.entry(link).or_insert(bandwidth);
        *known = bandwidth.min(*known);
    }

    /// A cable is down, both directions of it: `link` is one.
    pub fn cut(&mut self, graph: &Graph, link: LinkId) {
        self.down.extend([link, graph.link(link).reverse]);
    }

    /// Bits on a link are wrong at this rate; the highest of several rates applies, and packets are lost if they are with any.
    pub fn disturb(&mut self, link: LinkId, LinkErrors { rate, lost }: LinkErrors) {
        let known = self.errors.entry(link).or_insert(LinkErrors { rate, lost });
        *known = LinkErrors { rate: rate.max(known.rate), lost: lost || known.lost };
    }

    /// Computations on a host take longer; the highest of several factors applies.
    pub fn slow_down(&mut self, host: HostId, slowness: Slowness) {
        let known = self.slow.entry(host).or_insert(slowness);
        *known = slowness.max(*known);
    }

    /// The host at the end of a link pauses a virtual lane without a reason; without one, all that lose nothing.
    pub fn pause(&mut self, link: LinkId, vl: Option<VirtualLane>) {
        self.storms.insert((link, vl));
    }

    /// The links and virtual lanes that hosts pause without a reason.
    #[must_use]
    pub const fn storms(&self) -> &BTreeSet<(LinkId, Option<VirtualLane>)> {
        &self.storms
    }

    /// Links that are down.
    #[must_use]
    pub const fn down(&self) -> &BTreeSet<LinkId> {
        &self.down
    }

    /// Links with errors.
    #[must_use]
    pub const fn errors(&self) -> &BTreeMap<LinkId, LinkErrors> {
        &self.errors
    }

    /// Hosts that are slow.
    #[must_use]
    pub const fn slow(&self) -> &BTreeMap<HostId, Slowness> {
        &self.slow
    }

    /// Links with a limit, and the limit.
    #[must_use]
    pub const fn bandwidths(&self) -> &BTreeMap<LinkId, BitsPerSec> {
        &self.bandwidths
    }
}

/// Something that is wrong with a fabric for a time.
pub trait Fault: Send + Sync {
    /// Adds what it does to the fabric, which is `graph` as it was built.
    fn apply(&self, graph: &Graph, condition: &mut Condition);

    /// Whether packets can be lost by it.
    fn loses_packets(&self) -> bool {
        false
    }
}

/// A fault and its time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FaultSpec {
    /// The fault, with its parameters.
    pub fault: Named,
    /// When it begins: at the end of the window in which this instant lies, which is at most one link latency later.
    pub at: Picoseconds,
    /// When it ends, likewise; by default it lasts to the end of the run.
    #[serde(default)]
    pub until: Option<Picoseconds>,
}

/// The kind of entry that faults are.
#[derive(Debug)]
pub enum Faults {}

/// A fault that can be asked for by name.
pub type Entry = Item<Faults>;

/// Where a fault stands in a specification, for errors.
pub(crate) const PATH: &str = "fault";

/// The built-in faults.
pub const TABLE: &[Entry] = &[
    adapter_down::ENTRY,
    bit_errors::ENTRY,
    degraded_link::ENTRY,
    link_down::ENTRY,
    pause_storm::ENTRY,
    slow_host::ENTRY,
    switch_down::ENTRY,
];

impl Kind for Faults {
    const KIND: &'static str = "fault";
    const PATH: &'static str = PATH;
    const BUILT_IN: &'static [Entry] = TABLE;
    type Given<'a> = &'a Graph;
    type Built = Arc<dyn Fault>;
    type Build = Constructor<Self>;

    fn build(
        entry: &'static Entry,
        _table: &Table<Faults>,
        params: &serde_json::Value,
        graph: &Graph,
    ) -> Result<Arc<dyn Fault>, BuildError> {
        (entry.build)(params, graph)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_of_many_bits_has_an_error_more_often() {
        let rate = (1e-6 * 2_f64.powi(64)) as u64;
        for bytes in [0, 1, 64, 4122, 1 << 19] {
            let expected = 1.0 - (-1e-6 * 8.0 * f64::from(bytes)).exp();
            let chance = BitErrorRate(rate).chance_of_error(bytes) as f64 / 2_f64.powi(32);
            assert!((chance - expected).abs() < 1e-5, "{bytes}: {chance}, not {expected}");
        }
    }
}
