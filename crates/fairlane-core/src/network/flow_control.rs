//! Flow control of lossless lanes: how a sender is kept from overrunning the input buffer at the far end of its link.
//!
//! With credits (`InfiniBand`, Slingshot) the sender counts the free bytes of the buffer. With priority flow control (IEEE
//! 802.1Qbb-2011, Ethernet) the receiver sends PAUSE when more than `xoff` bytes are in the buffer, and RESUME when at most `xon`
//! are. What comes after PAUSE was sent, and before it takes effect, needs the rest of the buffer: the headroom (annex O there; Guo
//! et al., "RDMA over Commodity Ethernet at Scale", SIGCOMM 2016, section 2).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::BuildError;
use crate::ids::LinkId;
use crate::topology::{Graph, Vertex};
use crate::units::{Bytes, Picoseconds};

/// A PAUSE or RESUME on the wire: a frame of 64 bytes, its preamble of 8, and the gap of 12 after it.
const PAUSE_FRAME: Bytes = Bytes(84);

/// How a sender is kept from overrunning the buffer at the far end of its link, on lanes that lose nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "name", rename_all = "snake_case", deny_unknown_fields)]
pub enum FlowControl {
    /// By credits.
    #[default]
    Credits,
    /// By priority flow control.
    Pfc(Pfc),
}

/// Parameters of priority flow control.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Pfc {
    /// A buffer with more bytes sends PAUSE; by default the buffer less the headroom of its link.
    pub xoff: Option<Bytes>,
    /// A buffer with at most so many bytes sends RESUME; by default two full packets less than `xoff`.
    pub xon: Option<Bytes>,
    /// From the end of a PAUSE or RESUME at the sender until it takes effect there.
    pub response: Picoseconds,
    /// A lane of a switch that has been paused for so long drops its packets until it is resumed; by default none does.
    pub watchdog: Option<Picoseconds>,
}

/// The thresholds of a lane's input buffer, in bytes, and the time from a change there until it takes effect at the sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Thresholds {
    /// See [`Pfc::xoff`].
    pub xoff: u32,
    /// See [`Pfc::xon`].
    pub xon: u32,
    /// The wire time of a PAUSE on the link back, the latency of the link, and [`Pfc::response`].
    pub delay: Picoseconds,
}

impl FlowControl {
    /// Priority flow control, if it is that.
    #[must_use]
    pub const fn pfc(&self) -> Option<&Pfc> {
        match self {
            Self::Credits => None,
            Self::Pfc(pfc) => Some(pfc),
        }
    }

    /// Whether it is by credits.
    #[must_use]
    pub fn is_credits(&self) -> bool {
        *self == Self::Credits
    }
}

impl Pfc {
    /// Lanes that can be paused: the priorities of Ethernet.
    pub const MOST_LANES: usize = 8;

    fn delay(&self, graph: &Graph, link: LinkId) -> Picoseconds {
        let back = graph.link(graph.link(link).reverse);
        graph.link(link).latency + back.bandwidth.serialization(PAUSE_FRAME) + self.response
    }

    /// The bytes that can come over a link from when its buffer sends PAUSE: what a link's bandwidth carries in two latencies, the wire
    /// time of the PAUSE and the response, a packet whose transmission the PAUSE finds begun, and what comes while the PAUSE waits for a
    /// packet on the link back. Nothing at a host, which takes packets as they come.
    #[must_use]
    pub fn headroom(&self, graph: &Graph, link: LinkId, full: Bytes) -> Bytes {
        let wire = graph.link(link);
        if matches!(wire.to, Vertex::Host(_)) {
            return Bytes(0);
        }
        let back = graph.link(wire.reverse).bandwidth.serialization(full);
        let time = u128::from((wire.latency + self.delay(graph, link) + back).0);
        let bytes = (time * u128::from(wire.bandwidth.0)).div_ceil(8 * 1_000_000_000_000);
        Bytes(u64::try_from(bytes).unwrap_or(u64::MAX).saturating_add(full.0))
    }

    /// The thresholds of a lane of a link whose buffer has this size.
    #[must_use]
    pub fn thresholds(&self, graph: &Graph, link: LinkId, full: Bytes, buffer: Bytes) -> Thresholds {
        let usual = Bytes(buffer.0.saturating_sub(self.headroom(graph, link, full).0));
        let xoff = self.xoff.unwrap_or(usual);
        let xon = self.xon.unwrap_or(Bytes(xoff.0.saturating_sub(2 * full.0)));
        let narrow = |bytes: Bytes| u32::try_from(bytes.0).unwrap_or(u32::MAX);
        Thresholds { xoff: narrow(xoff), xon: narrow(xon), delay: self.delay(graph, link) }
    }

    /// Checks the thresholds of all links, for full packets of this size and lanes with buffers of these sizes, of which `key` is the name.
    ///
    /// # Errors
    /// [`BuildError::Value`] if a buffer has no room for a packet and the headroom of its link, or `xon` is above `xoff`.
    pub fn check(&self, graph: &Graph, full: Bytes, (key, buffers): (&str, &[Bytes])) -> Result<(), BuildError> {
        for (name, time) in [("response", Some(self.response)), ("watchdog", self.watchdog)] {
            if let Some(time) = time.filter(|time| time.0 > 1_000_000_000_000_000) {
                let path = format!("network.flow_control.{name}");
                return Err(BuildError::value(path, time, "at most 1000 seconds"));
            }
        }
        if self.watchdog == Some(Picoseconds::ZERO) {
            return Err(BuildError::value("network.flow_control.watchdog", Picoseconds::ZERO, "a time above zero"));
        }
        let links = (0..).take(graph.links().len()).map(LinkId);
        let switches = links.filter(|link| matches!(graph.link(*link).to, Vertex::Switch(_)));
        let Some(longest) = switches.max_by_key(|link| self.headroom(graph, *link, full)) else { return Ok(()) };
        let headroom = self.headroom(graph, longest, full).0;
        let needs = format!("{headroom} bytes of headroom (link {})", graph.link_name(longest));
        for buffer in buffers {
            let most = buffer.0.saturating_sub(headroom);
            if most < full.0 {
                let least = headroom + full.0;
                let allowed = format!(
                    "at least {least} bytes with priority flow control: a full packet ({}) and {needs}",
                    full.0
                );
                return Err(BuildError::value(key, buffer.0, allowed));
            }
            if let Some(xoff) = self.xoff.filter(|xoff| !(full.0..=most).contains(&xoff.0)) {
                let allowed = format!(
                    "{} (a full packet) to {most} bytes: the buffer ({key} = {}) less {needs}",
                    full.0, buffer.0
                );
                return Err(BuildError::value("network.flow_control.xoff", xoff.0, allowed));
            }
            let xoff = self.xoff.map_or(most, |xoff| xoff.0);
            if let Some(xon) = self.xon.filter(|xon| xon.0 > xoff) {
                let allowed = format!("at most network.flow_control.xoff ({xoff} bytes)");
                return Err(BuildError::value("network.flow_control.xon", xon.0, allowed));
            }
        }
        Ok(())
    }
}
