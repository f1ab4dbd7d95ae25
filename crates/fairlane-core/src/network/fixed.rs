//! What does not change while packets move: the fabric, its policies and parameters.

use std::sync::Arc;

use super::packet::{Packet, ROUTE, Step};
use super::parameters::{Parameters, Switching};
use crate::ids::{HostId, LinkId, SwitchId};
use crate::kernel::NONE;
use crate::observe;
use crate::qos::arbiter::Arbiter;
use crate::routing::{Hop, Routing};
use crate::topology::Graph;
use crate::units::Bytes;

#[derive(Clone)]
pub(super) struct Fixed {
    pub graph: Arc<Graph>,
    pub routing: Arc<dyn Routing>,
    pub arbiter: Arc<dyn Arbiter>,
    pub parameters: Parameters,
    pub observe: observe::Parameters,
    /// A full packet on the wire, and the part of every packet that is not payload; in bytes.
    pub full: u32,
    pub header: u32,
    /// Lanes of every port: the pairs of virtual lane and virtual channel in use.
    pub lanes: usize,
    /// The first lane of each virtual lane; one more at the end.
    pub first_lane: Vec<u8>,
    /// The virtual lane of each lane.
    pub vls_of_lanes: Vec<u8>,
    /// Some virtual lane has several virtual channels.
    pub channels: bool,
    /// Packets are routed when they are at a switch.
    pub adaptive: bool,
    /// Words of the arbiter's state.
    pub state_words: usize,
    /// NIC ports are those below this number.
    pub nics: u32,
    /// The host of each NIC port.
    pub nic_host: Vec<u32>,
    /// The first NIC port of each host; one more at the end.
    pub first_nic: Vec<u32>,
    /// Adapters of each host that have an address of their own.
    pub rails: u32,
    /// The least time between two messages of each NIC, in picoseconds; empty where there is none.
    pub gaps: Vec<u64>,
    /// The switch at the far end of each link, or [`NONE`].
    pub far_switch: Vec<u32>,
    /// Every link has the same bandwidth.
    pub one_rate: bool,
}

impl Fixed {
    /// The NIC ports of `host`.
    #[inline]
    pub fn nics_of(&self, host: HostId) -> std::ops::Range<u32> {
        self.first_nic[host.index()]..self.first_nic[host.index() + 1]
    }

    /// What packets to a host are addressed to: the host, or its adapter of this rail.
    #[inline]
    pub fn endpoint(&self, host: HostId, rail: u8) -> u32 {
        if self.rails == 1 { host.0 } else { host.0 * self.rails + u32::from(rail) }
    }

    /// The lane of a virtual lane and a virtual channel.
    #[inline]
    pub fn lane(&self, vl: u8, channel: u8) -> u8 {
        self.first_lane[usize::from(vl)] + channel
    }

    /// Virtual lanes in use.
    pub fn vls(&self) -> u8 {
        u8::try_from(self.first_lane.len() - 1).expect("invariant: at most 32 lanes")
    }

    /// The virtual lane of a lane.
    #[inline]
    pub fn vl_of(&self, lane: u8) -> u8 {
        self.vls_of_lanes[usize::from(lane)]
    }

    /// The lanes of a virtual lane.
    #[inline]
    pub fn lanes_of(&self, vl: u8) -> std::ops::Range<u8> {
        self.first_lane[usize::from(vl)]..self.first_lane[usize::from(vl) + 1]
    }

    /// How many packets a message of this payload makes. Most make one: no division for them.
    #[inline]
    pub fn packets_of(&self, bytes: u64) -> u64 {
        if bytes <= self.parameters.mtu.0 { 1 } else { bytes.div_ceil(self.parameters.mtu.0) }
    }

    /// Payload of the next packet of a message of which this much is left.
    #[inline]
    #[allow(clippy::cast_possible_truncation, reason = "at most one MTU")]
    pub fn payload(&self, left: u64) -> u32 {
        left.min(self.parameters.mtu.0) as u32
    }

    /// Wire time of a packet on a link.
    pub fn wire_time(&self, link: u32, bytes: u32) -> u64 {
        self.graph.link(LinkId(link)).bandwidth.serialization(Bytes(u64::from(bytes))).0
    }

    /// How much later than its head a packet that comes over a link is ready at its next switch, which sends it on over
    /// `next`: all of it with store-and-forward, what a faster link would run ahead with cut-through. `wire_time` is that of
    /// the link it comes over, asked for only if it matters.
    #[inline]
    pub fn held_back(&self, wire_time: impl FnOnce() -> u64, bytes: u32, next: u32) -> u64 {
        match self.parameters.switching {
            Switching::StoreAndForward => wire_time(),
            Switching::CutThrough if self.one_rate => 0,
            Switching::CutThrough => wire_time().saturating_sub(self.wire_time(next, bytes)),
        }
    }

    /// Fills in the next hops of a packet that has come to the end of those it carries.
    pub fn extend_route(&self, packet: &mut Packet) {
        let mut step = packet.route[usize::from(packet.hop)];
        packet.route = [Step::NONE; ROUTE];
        packet.route[0] = step;
        packet.hop = 0;
        packet.hops = 1;
        for place in &mut packet.route[1..] {
            let at = self.far_switch[step.link() as usize];
            if at == NONE {
                break;
            }
            let previous = Hop { link: LinkId(step.link()), channel: step.channel() };
            step = Step::new(self.routing.next_hop(SwitchId(at), previous, HostId(packet.to)));
            *place = step;
            packet.hops += 1;
        }
    }
}
