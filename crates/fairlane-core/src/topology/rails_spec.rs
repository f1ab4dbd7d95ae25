//! The parameters of rails: how many adapters each host has, and what they are joined to.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::units::{BitsPerSec, Picoseconds};

/// How many adapters each host has, and what they are joined to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Rails")]
pub struct RailsSpec {
    /// Adapters of each host.
    pub count: u8,
    /// The rails that they are joined to.
    #[serde(default)]
    pub wiring: Wiring,
    /// The properties of each adapter; all alike if absent.
    #[serde(default)]
    pub adapters: Vec<Adapter>,
}

/// The rails that the adapters of a host are joined to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Wiring {
    /// Each to a fabric of its own, with switches of its own: as many copies of the topology as there are rails.
    #[default]
    Planes,
    /// All to one fabric: the topology's hosts are adapters, and consecutive ones make a host.
    Shared,
    /// All to one fabric, as clusters of accelerators are cabled: each switch with hosts serves one rail of a group of hosts.
    /// With `n` rails, `n` consecutive switches of the topology make a group, with as many hosts as one of them has.
    RailOptimised,
}

impl Wiring {
    /// Its name in specifications.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Planes => "planes",
            Self::Shared => "shared",
            Self::RailOptimised => "rail_optimised",
        }
    }
}

/// An adapter that is not like the topology's links say.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Adapter {
    /// Bandwidth of its cable, in both directions.
    #[serde(default)]
    pub bandwidth: Option<BitsPerSec>,
    /// Latency of its cable, in both directions.
    #[serde(default)]
    pub latency: Option<Picoseconds>,
    /// The least time from one message that it sends to the next: LogP's gap, the inverse of its message rate.
    #[serde(default)]
    pub message_gap: Picoseconds,
}
