//! Parameters of the network that are the same everywhere in a fabric.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::flow_control::FlowControl;
use super::nic::transport;
use super::packet::PacketNumber;
use super::switch;
use crate::error::BuildError;
use crate::table::Named;
use crate::units::{Bytes, Picoseconds};

/// How a switch passes a packet on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Switching {
    /// As soon as its head is there (virtual cut-through).
    #[default]
    CutThrough,
    /// Once all of it is there.
    StoreAndForward,
}

/// The owners whose packets take turns at an adapter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Turns {
    /// Those of all messages of a virtual lane.
    #[default]
    Messages,
    /// Those of queue pairs, which are pairs of ranks; the messages of one are sent one after another.
    QueuePairs,
    /// Nobody's on a virtual lane: its messages are sent one after another.
    Fifo,
    /// Nobody's: all messages are sent one after another, of whatever lane.
    AdapterFifo,
}

/// What a sender retransmits when packets of a flow are lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Retransmission {
    /// The lost packets. Receivers accept packets out of order.
    #[default]
    Selective,
    /// The first lost packet and all that the flow has sent after it, which receivers discard.
    GoBackN,
}

/// How the memory of a port is divided among its lanes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Sharing {
    /// Every lane has an equal part.
    #[default]
    Even,
    /// One full packet is reserved for every lane; all lanes share the rest.
    Dynamic,
}

/// The memory of an input port, for all its lanes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PortBuffer {
    /// Bytes of all lanes together; not given with `lanes`.
    #[serde(default)]
    pub size: Bytes,
    /// How lanes share them.
    #[serde(default)]
    pub sharing: Sharing,
    /// Bytes of each lane in use, in place of `size`: of the channels of virtual lane 0, then of the next.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lanes: Vec<Bytes>,
}

impl PortBuffer {
    /// The key that says how much it is, under `network`, and how much.
    pub(crate) fn total(&self) -> (&'static str, u64) {
        if self.lanes.is_empty() {
            ("network.port_buffer.size", self.size.0)
        } else {
            ("network.port_buffer.lanes", self.lanes.iter().fold(0, |sum, lane| lane.0.saturating_add(sum)))
        }
    }

    /// Of a lane, if each has its own.
    pub(crate) fn of_lane(&self, lane: u8) -> Option<Bytes> {
        self.lanes.get(usize::from(lane)).copied()
    }
}

/// The input buffers of a link, by lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LaneBuffers {
    /// The most that one lane can hold.
    pub lane: Bytes,
    /// The part of it that all lanes share; `None` if every lane has a buffer of its own.
    pub pool: Option<Bytes>,
}

/// Sizes and times of the network; see the model page for what each does.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Parameters {
    /// Largest payload of a packet.
    pub mtu: Bytes,
    /// Bytes that a packet adds to its payload on the wire.
    pub header: Bytes,
    /// Input buffer of each virtual lane of each link: its credits.
    pub buffer: Bytes,
    /// Memory of each input port for all lanes, in place of `buffer`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub port_buffer: Option<PortBuffer>,
    /// How senders are kept from overrunning input buffers.
    #[serde(skip_serializing_if = "FlowControl::is_credits")]
    pub flow_control: FlowControl,
    /// From a packet's arrival at a switch to its joining an output queue.
    pub switch_latency: Picoseconds,
    /// Cut-through or store-and-forward.
    pub switching: Switching,
    /// Where packets wait in a switch.
    pub switch: Named,
    /// When NICs start packets.
    pub transport: Named,
    /// The owners whose packets take turns at a NIC: those of messages, of queue pairs (pairs of ranks, each with one
    /// message at a time), or nobody's (one message at a time on each virtual lane, or at all).
    pub injection: Turns,
    /// From the loss of a packet until its NIC sends it again; at least four windows, which are as wide as the shortest latency of a
    /// link or up to half as wide.
    pub retransmission_timeout: Picoseconds,
    /// The lost packets alone, or also those sent after them.
    pub retransmission: Retransmission,
    /// How often a packet is retransmitted before its job fails, at most 7.
    pub retry_count: u8,
    /// From a change of the fabric until routes follow it.
    pub sweep_time: Picoseconds,
}

impl Default for Parameters {
    /// MTU 4 KiB, InfiniBand's 26 bytes of headers, 64 KiB of buffer, 100 ns a switch, cut-through; a timeout of 2^10 times
    /// 4.096 us, seven retries, and 10 ms for a sweep.
    fn default() -> Self {
        Self {
            mtu: Bytes(4096),
            header: Bytes(26),
            buffer: Bytes(65536),
            port_buffer: None,
            flow_control: FlowControl::default(),
            switch_latency: Picoseconds::from_nanos(100),
            switching: Switching::CutThrough,
            switch: switch::default(),
            transport: Named::new(transport::DEFAULT),
            injection: Turns::default(),
            retransmission_timeout: Picoseconds(4_194_304_000),
            retransmission: Retransmission::default(),
            retry_count: PacketNumber::MOST_LOSSES,
            sweep_time: Picoseconds::from_micros(10_000),
        }
    }
}

impl Parameters {
    /// A full packet on the wire.
    #[must_use]
    pub fn largest_packet(&self) -> Bytes {
        self.mtu + self.header
    }

    /// The largest payload of a message: 1 TiB, and fewer than 2^25 packets.
    #[must_use]
    pub fn largest_message(&self) -> Bytes {
        Bytes((u64::from(PacketNumber::PLACES - 1) * self.mtu.0).min(1 << 40))
    }

    /// Checks that every packet fits a buffer and that sizes are those a packet can have.
    ///
    /// # Errors
    /// [`BuildError::Value`] with the key under `network`.
    pub fn check(&self) -> Result<(), BuildError> {
        if self.mtu.0 == 0 || self.mtu.0 > 1 << 19 {
            return Err(BuildError::value("network.mtu", self.mtu.0, "from 1 byte to 512 KiB"));
        }
        if self.switch_latency.0 > 1_000_000_000_000 {
            return Err(BuildError::value("network.switch_latency", self.switch_latency, "at most one second"));
        }
        for (key, time) in [("retransmission_timeout", self.retransmission_timeout), ("sweep_time", self.sweep_time)] {
            if time == Picoseconds::ZERO || time.0 > 1_000_000_000_000_000 {
                return Err(BuildError::value(format!("network.{key}"), time, "above zero, at most 1000 seconds"));
            }
        }
        if self.retry_count > PacketNumber::MOST_LOSSES {
            let allowed = format!("0 to {}", PacketNumber::MOST_LOSSES);
            return Err(BuildError::value("network.retry_count", self.retry_count, allowed));
        }
        if self.header.0 > 4096 {
            return Err(BuildError::value("network.header", self.header.0, "at most 4096 bytes"));
        }
        if let Some(memory) = &self.port_buffer {
            let (key, size) = memory.total();
            if size > u64::from(u32::MAX) {
                return Err(BuildError::value(key, size, "below 4 GiB"));
            }
            return Ok(());
        }
        if self.buffer < self.largest_packet() || self.buffer.0 > u64::from(u32::MAX) {
            let least = self.largest_packet().0;
            let allowed = format!("at least one full packet (mtu + header = {least} bytes), below 4 GiB");
            return Err(BuildError::value("network.buffer", self.buffer.0, allowed));
        }
        Ok(())
    }

    /// The input buffers of a link whose port has this many lanes.
    ///
    /// # Errors
    /// [`BuildError::Value`] with the key under `network.port_buffer` if a lane would have less than one full packet, or there is not one
    /// size for each lane.
    pub fn lane_buffers(&self, lanes: usize) -> Result<LaneBuffers, BuildError> {
        let Some(PortBuffer { size, sharing, lanes: each }) = &self.port_buffer else {
            return Ok(LaneBuffers { lane: self.buffer, pool: None });
        };
        let (size, full) = (*size, self.largest_packet().0);
        if let Some(lane) = each.iter().max() {
            if each.len() != lanes {
                let allowed = format!("one for each of {lanes} lanes in use");
                return Err(BuildError::value(
                    "network.port_buffer.lanes",
                    format!("a list of {}", each.len()),
                    allowed,
                ));
            }
            if let Some(place) = each.iter().position(|lane| lane.0 < full) {
                let allowed = format!("at least one full packet (mtu + header = {full} bytes)");
                return Err(BuildError::value(format!("network.port_buffer.lanes.{place}"), each[place].0, allowed));
            }
            return Ok(LaneBuffers { lane: *lane, pool: None });
        }
        let lanes = lanes.max(1) as u64;
        if size.0 < lanes * full {
            let needed = lanes * full;
            let each = format!("one full packet (mtu + header = {full} bytes) for each of {lanes} lanes in use");
            return Err(BuildError::value("network.port_buffer.size", size.0, format!("at least {needed}, {each}")));
        }
        Ok(match *sharing {
            Sharing::Even => LaneBuffers { lane: Bytes(size.0 / lanes), pool: None },
            // A single lane shares with nobody.
            Sharing::Dynamic if lanes == 1 => LaneBuffers { lane: size, pool: None },
            Sharing::Dynamic => {
                let pool = size.0 - lanes * full;
                LaneBuffers { lane: Bytes(full + pool), pool: Some(Bytes(pool)) }
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lanes_divide_the_memory_of_a_port() {
        let of = |size, sharing, lanes| {
            let port_buffer = Some(PortBuffer { size: Bytes(size), sharing, ..Default::default() });
            Parameters { mtu: Bytes(90), header: Bytes(10), port_buffer, ..Default::default() }.lane_buffers(lanes)
        };
        let each = |lane, pool: Option<u64>| Ok(LaneBuffers { lane: Bytes(lane), pool: pool.map(Bytes) });
        assert_eq!(of(1003, Sharing::Even, 4), each(250, None));
        // Four packets of 100 bytes are reserved, and each lane can have one of them and the other 603 bytes.
        assert_eq!(of(1003, Sharing::Dynamic, 4), each(703, Some(603)));
        assert_eq!(of(400, Sharing::Dynamic, 4), each(100, Some(0)));
        assert_eq!(of(1003, Sharing::Dynamic, 1), each(1003, None));
        for sharing in [Sharing::Even, Sharing::Dynamic] {
            let error = of(399, sharing, 4).unwrap_err().to_string();
            assert!(error.starts_with("network.port_buffer.size = 399: at least 400, one full packet"), "{error}");
        }
        let listed = |sizes: &[u64], lanes| {
            let memory = PortBuffer { lanes: sizes.iter().copied().map(Bytes).collect(), ..Default::default() };
            Parameters { mtu: Bytes(90), header: Bytes(10), port_buffer: Some(memory), ..Default::default() }
                .lane_buffers(lanes)
        };
        assert_eq!(listed(&[100, 300, 200], 3), each(300, None));
        let refused = |sizes, lanes| listed(sizes, lanes).unwrap_err().to_string();
        assert!(refused(&[100, 99], 2).starts_with("network.port_buffer.lanes.1 = 99: at least one full packet"));
        assert!(
            refused(&[100, 100], 3).starts_with("network.port_buffer.lanes = a list of 2: one for each of 3 lanes")
        );
        assert_eq!(Parameters::default().lane_buffers(7), each(65536, None));
    }
}
