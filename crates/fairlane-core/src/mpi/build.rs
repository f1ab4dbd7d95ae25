//! Where ranks are: which shard and host each belongs to.

use std::sync::Arc;

use super::messaging::Residence;
use super::naming::Naming;
use super::p2p::transfer::RankPlace;
use super::{JobSetup, Shards, count};
use crate::kernel::NONE;

/// Where each rank is, by job, then rank: numbered within each shard in this order.
pub(super) fn places(shards: &Shards<'_>, plans: &[JobSetup]) -> Arc<[RankPlace]> {
    let mut next = vec![0; shards.count];
    let hosts = plans.iter().flat_map(|plan| &plan.hosts);
    let place = hosts.map(|&host| {
        let shard = shards.of_hosts[host.index()];
        let number = next[shard];
        next[shard] += 1;
        RankPlace { id: Naming::new(shard, shards.count).translate(number), host }
    });
    place.collect()
}

/// The ranks of each host.
pub(super) fn residence(shards: &Shards<'_>, plans: &[JobSetup]) -> Residence {
    let places = places(shards, plans);
    let mut by_host: Vec<RankPlace> = places.to_vec();
    by_host.sort_by_key(|place| place.host);
    let before = |host: usize| by_host.partition_point(|place| place.host.index() < host);
    let first: Vec<u32> = (0..=shards.of_hosts.len()).map(|host| count(before(host))).collect();
    let name = |place: &RankPlace| Naming::new(shards.of_hosts[place.host.index()], shards.count).translate(place.id);
    let residents: Vec<u32> = by_host.iter().map(name).collect();
    let alone = |pair: &[u32]| if pair[1] - pair[0] == 1 { residents[pair[0] as usize] } else { NONE };
    let mut next = vec![0; shards.count];
    let number = |shard: &usize| {
        next[*shard] += 1;
        next[*shard] - 1
    };
    let numbers = if shards.count == 1 { Vec::new() } else { shards.of_hosts.iter().map(number).collect() };
    Residence { alone: first.windows(2).map(alone).collect(), first, residents, numbers }
}
