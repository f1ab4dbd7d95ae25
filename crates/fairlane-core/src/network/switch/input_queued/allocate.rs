//! The allocator: matches free inputs with free outputs in iterations of request, grant and accept.

use std::sync::Arc;

use super::super::allocator::{Allocator, CrossbarRequest};
use super::window::ActiveSwitch;
use crate::network::features::Instance;
use crate::network::index::LaneIdx;
use crate::units::{Bytes, Instant};

/// A choice among several: the lowest is taken.
type Rank = (u64, u32);

impl<I: Instance> ActiveSwitch<'_, I> {
    /// Matches inputs with outputs, and starts the crossings.
    pub(super) fn allocate(&mut self, now: Instant) {
        self.collect(now);
        let params = self.shard.config.fabric.input_queued.as_ref().expect("invariant: the switch is input-queued");
        let (allocator, iterations) = (Arc::clone(&params.allocator), params.iterations);
        for iteration in 0..iterations {
            if self.requests.is_empty() {
                break;
            }
            let matches = self.matches(&*allocator);
            for &CrossbarRequest { input, output, lane, .. } in &matches {
                if iteration == 0 {
                    self.crossbar.outputs[output as usize].pointer = next(input, self.crossbar.inputs.len());
                    self.crossbar.inputs[input as usize].line.pointer = next(output, self.crossbar.outputs.len());
                }
                self.crossbar.inputs[input as usize].lane = u32::from(lane) + 1;
                self.cross(input, output, LaneIdx(lane), now);
            }
            let taken =
                |it: &CrossbarRequest| matches.iter().any(|one| one.input == it.input || one.output == it.output);
            self.requests.retain(|request| !taken(request));
        }
    }

    /// Collects all requests.
    fn collect(&mut self, now: Instant) {
        self.requests.clear();
        let (crossbar, lanes) = (&*self.crossbar, self.shard.config.fabric.lanes);
        for (number, input) in (0_u32..).zip(&crossbar.inputs) {
            if input.line.busy_until > now {
                continue;
            }
            let mut waiting = input.waiting;
            while waiting != 0 {
                let lane = LaneIdx::first_of(waiting);
                waiting &= waiting - 1;
                for packet in crossbar.heads(number as usize * lanes + lane.index()) {
                    let packet = &self.shard.in_flight.packets[packet];
                    let output = crossbar.output_of(packet);
                    let room = &crossbar.rooms[output as usize * lanes + packet.lane.index()];
                    if crossbar.outputs[output as usize].busy_until <= now && packet.bytes <= room.free {
                        self.requests.push(CrossbarRequest {
                            input: number,
                            output,
                            lane: lane.0,
                            joined: packet.time,
                            injected: packet.offered,
                            bytes: Bytes(u64::from(packet.bytes)),
                            traffic: packet.traffic,
                        });
                    }
                }
            }
        }
    }

    /// One iteration: each output grants a request, each input accepts a grant.
    fn matches(&self, allocator: &dyn Allocator) -> Vec<CrossbarRequest> {
        let Self { crossbar, requests, .. } = self;
        let to_output = |it: &CrossbarRequest| {
            let pointer = crossbar.outputs[it.output as usize].pointer;
            (allocator.rank(it, distance(it.input, pointer, crossbar.inputs.len())), it.input)
        };
        let grants = best(requests, |it| it.output, to_output);
        let from_input = |it: &CrossbarRequest| {
            let pointer = crossbar.inputs[it.input as usize].line.pointer;
            (allocator.rank(it, distance(it.output, pointer, crossbar.outputs.len())), it.output)
        };
        let accepted = best(&grants, |it| it.input, from_input);
        let lane_of = |pair: &CrossbarRequest| {
            let lanes = requests.iter().filter(|it| (it.input, it.output) == (pair.input, pair.output));
            let pointer = crossbar.inputs[pair.input as usize].lane;
            let lane_count = self.shard.config.fabric.lanes;
            lanes.min_by_key(|it| (allocator.rank(it, distance(it.lane.into(), pointer, lane_count)), it.lane))
        };
        accepted.iter().filter_map(lane_of).copied().collect()
    }
}

/// Of the requests that share a port, the one of the lowest rank.
fn best(
    requests: &[CrossbarRequest],
    port: impl Fn(&CrossbarRequest) -> u32,
    rank: impl Fn(&CrossbarRequest) -> Rank,
) -> Vec<CrossbarRequest> {
    let mut ranked: Vec<_> = requests.iter().map(|request| (port(request), rank(request), *request)).collect();
    ranked.sort_by_key(|&(port, rank, _)| (port, rank));
    ranked.dedup_by_key(|&mut (port, ..)| port);
    ranked.into_iter().map(|(.., request)| request).collect()
}

/// How far a port (or lane) is from the one at the pointer, in cyclic order.
fn distance(port: u32, pointer: u32, ports: usize) -> u32 {
    let ports = u32::try_from(ports).expect("invariant: links have 27-bit numbers");
    if port >= pointer { port - pointer } else { port + ports - pointer }
}

/// The port after this one, in cyclic order.
fn next(port: u32, ports: usize) -> u32 {
    if port as usize + 1 == ports { 0 } else { port + 1 }
}
