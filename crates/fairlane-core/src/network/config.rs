//! All that a shard reads and does not change while a window runs.

use super::conditions::Conditions;
use super::fabric::Fabric;
use super::features::{Features, Instance};
use super::index::PortIdx;
use super::naming::Naming;
use super::partition::{Partition, PortPlace};
use super::plan::Plan;
use crate::ids::{JobId, LinkId, SwitchId, TrafficId};
use crate::topology::Vertex;
use crate::units::Picoseconds;

/// The configuration of one shard.
#[derive(Clone)]
pub(super) struct Config {
    pub fabric: Fabric,
    pub conditions: Conditions,
    pub naming: Naming,
}

impl Config {
    /// The configurations of all shards, for windows of this width.
    pub fn of_shards(plan: &Plan, partition: &Partition, window: Picoseconds) -> Vec<Self> {
        let fabric = Fabric::new(plan, window, partition);
        let of_shard = |shard: usize| {
            let shard = u8::try_from(shard).expect("invariant: at most 32 shards");
            let naming = Naming::new(&plan.graph, partition, shard);
            let conditions = Conditions::new(plan, &fabric, &naming, window);
            Self { fabric: fabric.clone(), conditions, naming }
        };
        (0..partition.shards()).map(of_shard).collect()
    }

    /// The features of the network, known when the engine is compiled if it has none.
    #[inline(always)]
    pub const fn has<I: Instance>(&self) -> Features {
        if I::PLAIN { Features::NONE } else { self.conditions.features }
    }

    /// The job of a packet, by what it is counted for.
    #[inline(always)]
    pub fn job_of<I: Instance>(&self, traffic: TrafficId) -> JobId {
        if self.has::<I>().classes { self.fabric.job_of(traffic) } else { JobId(traffic.0) }
    }

    /// The lanes whose credits can make one of `waiting` ready.
    #[inline(always)]
    pub const fn awaited<I: Instance>(&self, waiting: u64) -> u64 {
        if self.has::<I>().pool { u64::MAX } else { waiting }
    }

    /// The longest time from a packet's start on a link to its arrival at the next port, ps; see [`Config::forwarding_delay`].
    pub fn furthest(&self) -> Picoseconds {
        let delay = if self.conditions.features.late { self.conditions.slowest() } else { Picoseconds::ZERO };
        self.fabric.longest + self.fabric.parameters.switch_latency + delay
    }

    /// The same on one link, given by its id, whatever may change on the way.
    pub fn furthest_on(&self, link: LinkId) -> Picoseconds {
        self.conditions.latency_of(link) + self.fabric.parameters.switch_latency + self.conditions.slowest()
    }

    /// How much later than its head a packet joins the output queue of a switch, ps: with store-and-forward its wire time on
    /// the link that it came over; with cut-through the time by which its transmission on a faster link `next` (an id) would
    /// otherwise overtake its arrival. `wire_time` is that of the link that it came over, evaluated only if needed.
    #[inline]
    pub fn forwarding_delay<I: Instance>(
        &self,
        wire_time: impl FnOnce() -> Picoseconds,
        bytes: u32,
        next: LinkId,
    ) -> Picoseconds {
        if !self.has::<I>().late {
            Picoseconds::ZERO
        } else if self.fabric.stores_packets() {
            wire_time()
        } else {
            wire_time().beyond(self.conditions.wire_time(next, bytes))
        }
    }

    /// The port of a link, or, if it is in another shard, that and the port there.
    #[inline(always)]
    pub fn port_of(&self, link: LinkId) -> Result<PortIdx, PortPlace> {
        let (partition, own) = (&self.fabric.partition, self.naming.shard);
        if partition.shards() == 1 {
            return Ok(PortIdx(link.0));
        }
        let place = partition.port(link);
        if place.shard == own { Ok(place.port) } else { Err(place) }
    }

    /// The shard of a switch, if it is another.
    #[inline(always)]
    pub fn other_shard_of(&self, switch: SwitchId) -> Option<u8> {
        let (partition, own) = (&self.fabric.partition, self.naming.shard);
        if partition.shards() == 1 { None } else { Some(partition.of_switch(switch)).filter(|shard| *shard != own) }
    }

    /// The difference (modulo 2^32) between the number of a link of a switch and that of its port, the same for all of
    /// its links.
    #[inline(always)]
    pub fn first_link(&self, switch: SwitchId) -> LinkId {
        if self.fabric.partition.shards() == 1 {
            return LinkId(0);
        }
        let first = self.fabric.graph.ports(Vertex::Switch(switch)).next().unwrap_or_default();
        LinkId(first.0.wrapping_sub(self.fabric.partition.port(first).port.0))
    }
}
