//! Transports: when the next packet of a flow may start at its NIC.
//!
//! A transport is one file that exports an [`Entry`]; [`TABLE`] lists them. One transport object serves every NIC; what it
//! remembers of a flow is in a [`Flow`] of its own. A flow is what one NIC sends to one destination for one job on one virtual
//! lane.
//!
//! A transport does not replace flow control: a packet that it permits still needs credits and the arbiter's grant. A packet
//! whose flow may not transmit is taken out of its queue until it may, so it does not block others.
//!
//! # Congestion control
//!
//! A transport with [`Feedback`] controls congestion from end to end:
//!
//! 1. Output ports of switches mark packets of its jobs when they start on the link, by the bytes in their lane's queue
//!    ([`Marking`]), or write into them how loaded the link is ([`LinkTelemetry`]).
//! 2. The receiving NIC answers a packet with a *notice*: a control packet, which is made when the packet's tail arrives,
//!    queues at the NIC's port like others, takes credits, and crosses the fabric to the sender ([`Notices`]).
//! 3. When the tail of the notice is at a port of the sending host, the flow at the adapter that sent the packet is updated
//!    ([`Flow::noticed`]), and packets that it holds back may be released.
//!
//! Control packets belong to the job whose packet they answer. Counters of ports and the interference matrix have them among
//! its packets; latencies of messages and records of departures leave them out. [`Totals`](crate::network::Totals) counts them
//! and the marks by themselves. They are not messages: no rank sees them, and a gap between messages does not apply.
//!
//! A transport without feedback has no marks and no control packets.

mod credits_only;
mod dcqcn;
mod endpoint_cc;
mod hpcc;
mod ib_cc;
mod swift;
mod uec;

use std::fmt::Display;
use std::sync::Arc;

use dyn_clone::DynClone;

use crate::error::BuildError;
use crate::ids::{LinkId, VirtualLane};
use crate::table::{Constructor, Item, Kind, Table};
use crate::units::{BitsPerSec, Bytes, Instant, Picoseconds};

/// Decides when packets of its flows start.
pub trait Transport: Send + Sync {
    /// Whether it ever holds a packet back. If not, nothing else is asked, and nothing is kept of flows.
    fn paces(&self) -> bool {
        true
    }

    /// Whether its packets may be lost because queues are full, so that their virtual lanes may be lossy.
    fn accepts_losses(&self) -> bool {
        false
    }

    /// The services that it needs of switches and receivers; nothing if there is no congestion control. Asked once.
    fn feedback(&self) -> Option<Feedback> {
        None
    }

    /// How receivers grant credit to its flows, if they do. Asked once.
    fn pulls(&self) -> Option<Pulls> {
        None
    }

    /// Whether its flows select paths, by [`Label::entropy`].
    fn chooses_paths(&self) -> bool {
        false
    }

    /// A flow that begins.
    fn flow(self: Arc<Self>, setup: &FlowSetup) -> Box<dyn Flow>;
}

/// A flow as its transport sees it: decides when its next packet starts.
pub trait Flow: DynClone + Send + Sync {
    /// A packet of this size on the wire was lost, and its timeout passes at `now`; it will start again.
    fn lost(&mut self, _bytes: Bytes, _now: Instant) {}

    /// What switches have written into the packet that a notice answers, in the order of its links: just before the notice is
    /// handed over.
    fn measured(&mut self, _path: &[LinkTelemetry], _now: Instant) {}
    /// Packets of so many bytes on the wire, all told, are to be sent: those of a message, or one that was lost or trimmed.
    fn offered(&mut self, _bytes: Bytes) {}

    /// What a packet of this size on the wire, which starts at `now`, carries. [`Flow::started`] follows.
    fn label(&mut self, _bytes: Bytes, _now: Instant) -> Label {
        Label::default()
    }

    /// Credit arrives: `granted` bytes since the flow began, from a receiver that knew of so many trimmed packets.
    fn pulled(&mut self, _granted: u64, _trimmed: u32) {}

    /// A notice arrives at `now`.
    fn noticed(&mut self, _notice: &Notice, _now: Instant) {}

    /// From when on the next packet may start; [`Instant::MAX`] if that depends on a notice to come. Asked at `now`, when it is
    /// first in its queue and the link is free, or when a notice has arrived.
    fn earliest(&self, now: Instant) -> Instant;

    /// Accounts a packet, `bytes` on the wire, that starts at `now` and takes `wire_time`.
    fn started(&mut self, bytes: Bytes, wire_time: Picoseconds, now: Instant);
}

dyn_clone::clone_trait_object!(Flow);

/// Fields of a packet that its flow sets.
#[derive(Clone, Copy, Debug, Default)]
pub struct Label {
    /// The bytes of credit that the flow asks for, since it began.
    pub pull_target: u64,
    /// The number from which the path is computed; none if the routing selects it.
    pub entropy: Option<u16>,
}

/// How receivers grant credit: their pacers are in `network/nic/pulls.rs`.
#[derive(Clone, Copy, Debug)]
pub struct Pulls {
    /// Round trip of a full packet and its acknowledgement; if it is not set, [`FlowSetup::round_trip`].
    pub base_rtt: Option<Picoseconds>,
    /// Above 1, the rate follows marks and trimmed packets, and is at least 0.9 divided by this.
    pub oversubscription: u32,
}

/// Bytes that a link carries in a time, at least a full packet.
pub(in crate::network::nic) fn bandwidth_delay(bandwidth: BitsPerSec, time: Picoseconds, full: Bytes) -> u64 {
    let bits = u128::from(bandwidth.0) * u128::from(time.0) / 1_000_000_000_000;
    u64::try_from(bits / 8).unwrap_or(u64::MAX).clamp(full.0, 1 << 40)
}

/// Where a flow begins.
#[derive(Clone, Copy, Debug)]
pub struct FlowSetup {
    /// Of the NIC's link.
    pub bandwidth: BitsPerSec,
    /// The virtual lane of its packets.
    pub vl: VirtualLane,
    /// A full packet on the wire.
    pub full_packet: Bytes,
    /// Of a full packet and its notice on the longest path of the fabric without load; zero if the transport has no feedback.
    pub round_trip: Picoseconds,
}

/// Signals that a transport needs of switches and receivers.
#[derive(Clone, Debug)]
pub struct Feedback {
    /// When switches mark packets; `None` if they never do.
    pub marking: Option<Marking>,
    /// Whether switches write telemetry into packets.
    pub telemetry: bool,
    /// The packets that are answered.
    pub notices: Notices,
    /// Payload of a notice, at most one MTU: it has the header of any packet besides.
    pub bytes: Bytes,
    /// The virtual lane of notices; by default that of the packet that is answered.
    pub vl: Option<VirtualLane>,
}

/// The packets that the receiving NIC answers with a notice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Notices {
    /// Every packet.
    EveryPacket,
    /// Marked ones, but of one flow none within this time after the last notice.
    Marked(Picoseconds),
}

/// When a switch marks a packet: by the bytes in its lane's queue when it starts, itself among them. Packets that wait for no
/// other are not marked.
#[derive(Clone, Debug)]
pub struct Marking {
    /// The outputs that mark.
    pub outputs: MarkingOutputs,
    /// Marks begin above this.
    pub from: Threshold,
    /// Up to this the probability of a mark grows in proportion to the queue.
    pub to: Threshold,
    /// The probability of a mark at `to`, in units of 2^-32; at `from` it is zero.
    pub probability: u32,
    /// The probability of a mark above `to`, in units of 2^-32; [`u32::MAX`]: always.
    pub above: u32,
    /// Smaller packets are not marked. Bytes on the wire.
    pub smallest: Bytes,
}

/// The outputs that mark packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MarkingOutputs {
    /// All outputs.
    All,
    /// Roots of congestion: those to hosts, and others unless their lane has lacked credits since the packet joined its queue.
    Roots,
    /// Those to hosts.
    ToHosts,
    /// Those to switches.
    ToSwitches,
}

/// The length of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Threshold {
    /// This many bytes, given as this parameter.
    Bytes(&'static str, Bytes),
    /// This many bytes, given as this parameter, where the link has its whole bandwidth, otherwise in proportion: the same delay.
    Scaled(&'static str, Bytes),
    /// So many sixteenths of a lane's input buffer.
    Sixteenths(u8),
}

impl Threshold {
    /// In bytes, for lanes with this input buffer of a link with this bandwidth now and as a whole.
    #[must_use]
    pub fn bytes(self, buffer: u64, bandwidths: [BitsPerSec; 2]) -> u64 {
        match self {
            Self::Bytes(_, bytes) => bytes.0,
            Self::Scaled(_, bytes) if bandwidths[0] == bandwidths[1] => bytes.0,
            Self::Scaled(_, bytes) => {
                let [now, whole] = bandwidths.map(|bandwidth| u128::from(bandwidth.0));
                u64::try_from(u128::from(bytes.0) * now / whole.max(1)).unwrap_or(u64::MAX)
            }
            Self::Sixteenths(part) => buffer * part as u64 / 16,
        }
    }
}

/// In-band telemetry of a link: what a switch writes into a packet that starts there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkTelemetry {
    /// The link.
    pub link: LinkId,
    /// Bytes on the wire of the packets that wait for the link, of all lanes.
    pub queued: Bytes,
    /// Bytes on the wire of the packets that have started before.
    pub sent: Bytes,
    /// When the packet starts.
    pub at: Instant,
    /// Of the link.
    pub bandwidth: BitsPerSec,
}

/// A notice, as the sender of the packet that it answers gets it.
#[derive(Clone, Copy, Debug)]
pub struct Notice {
    /// A switch has marked the packet.
    pub marked: bool,
    /// A switch has trimmed the packet: its payload did not come, and it will start again.
    pub trimmed: bool,
    /// It was trimmed at its last hop, the output to its host.
    pub last_hop: bool,
    /// The entropy of the packet; see [`Label::entropy`].
    pub entropy: u16,
    /// The highest pull target that the receiver knew of; see [`Label::pull_target`].
    pub pull_target: u64,
    /// Bytes of the packet on the wire.
    pub bytes: Bytes,
    /// When the packet started at its NIC.
    pub sent: Instant,
    /// When its tail arrived at its host.
    pub received: Instant,
    /// Flows of which packets have come to the receiving NIC lately, see [`RECENT`]; this one among them.
    pub flows: u32,
}

/// For so long after its last packet a flow counts in [`Notice::flows`].
pub const RECENT: Picoseconds = Picoseconds::from_micros(20);

/// The network against which feedback is checked.
#[derive(Clone, Copy, Debug)]
pub struct Surroundings<'a> {
    /// The input buffer of a lane.
    pub buffer: Bytes,
    /// The key that sets it.
    pub buffer_key: &'a str,
    /// Virtual lanes in use.
    pub virtual_lanes: u8,
    /// Switches queue packets at their inputs.
    pub input_queued: bool,
    /// The routing computes paths from entropies: [`Routing::takes_entropies`](crate::routing::Routing::takes_entropies).
    pub takes_entropies: bool,
}

impl Feedback {
    /// Checks that there can be such feedback, asked for by the transport `name` that stands at `path`.
    ///
    /// # Errors
    /// [`BuildError::Value`] with the parameter that cannot be.
    pub fn check(&self, path: &str, name: &str, given: &Surroundings<'_>) -> Result<(), BuildError> {
        if let Some(vl) = self.vl.filter(|vl| vl.0 >= given.virtual_lanes) {
            let allowed = format!("a virtual lane in use (see qos.sl2vl), 0 to {}", given.virtual_lanes - 1);
            return Err(BuildError::value(format!("{path}.notice_vl"), vl.0, allowed));
        }
        if given.input_queued && (self.telemetry || self.marking.is_some()) {
            let action = if self.telemetry { "write telemetry of" } else { "mark packets for it in" };
            let allowed = format!("switches {action} their output queues: only with network.switch = output_queued");
            return Err(BuildError::value(path, name, allowed));
        }
        let Some(marking) = &self.marking else { return Ok(()) };
        for threshold in [marking.from, marking.to] {
            if let Threshold::Bytes(key, bytes) | Threshold::Scaled(key, bytes) = threshold
                && bytes > given.buffer
            {
                let Surroundings { buffer, buffer_key, .. } = given;
                let allowed = format!("at most the buffer of a lane, {} bytes ({buffer_key})", buffer.0);
                return Err(BuildError::value(format!("{path}.{key}"), bytes.0, allowed));
            }
        }
        Ok(())
    }
}

/// Refuses `value` of the parameter `key` of a transport unless `holds`; `allowed` is what it may be.
fn require(holds: bool, key: &str, value: impl Display, allowed: &str) -> Result<(), BuildError> {
    if holds {
        return Ok(());
    }
    Err(BuildError::value(format!("network.transport.{key}"), value, allowed))
}

/// Refuses parameters of a transport that are not from `low` to `high`; each with its key.
fn require_range(low: f64, high: f64, parameters: &[(&str, f64)]) -> Result<(), BuildError> {
    let allowed = format!("{low} to {high}");
    parameters.iter().try_for_each(|(key, value)| require((low..=high).contains(value), key, value, &allowed))
}

/// The kind of entry that transports are.
#[derive(Debug)]
pub enum Transports {}

/// A transport that can be asked for by name.
pub type Entry = Item<Transports>;

/// The built-in transports.
pub const TABLE: &[Entry] =
    &[credits_only::ENTRY, dcqcn::ENTRY, endpoint_cc::ENTRY, hpcc::ENTRY, ib_cc::ENTRY, swift::ENTRY, uec::ENTRY];

/// The transport of a specification that names none.
pub const DEFAULT: &str = credits_only::ENTRY.name;

/// The transport of a specification that names none.
#[must_use]
pub fn default() -> Box<dyn Transport> {
    Box::new(credits_only::CreditsOnly)
}

impl Kind for Transports {
    const KIND: &'static str = "transport";
    const PATH: &'static str = "network.transport";
    const BUILT_IN: &'static [Entry] = TABLE;
    type Given<'a> = ();
    type Built = Box<dyn Transport>;
    type Build = Constructor<Self>;

    fn build(
        entry: &'static Entry,
        _table: &Table<Transports>,
        params: &serde_json::Value,
        given: (),
    ) -> Result<Box<dyn Transport>, BuildError> {
        (entry.build)(params, given)
    }
}
