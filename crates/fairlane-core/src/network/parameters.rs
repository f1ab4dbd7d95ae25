//! Parameters of the network that are the same everywhere in a fabric.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::nic::transport;
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
    /// From a packet's arrival at a switch to its joining an output queue.
    pub switch_latency: Picoseconds,
    /// Cut-through or store-and-forward.
    pub switching: Switching,
    /// Where packets wait in a switch.
    pub switch: Named,
    /// When NICs start packets.
    pub transport: Named,
}

impl Default for Parameters {
    /// MTU 4 KiB, InfiniBand's 26 bytes of headers, 64 KiB of buffer, 100 ns a switch, cut-through.
    fn default() -> Self {
        Self {
            mtu: Bytes(4096),
            header: Bytes(26),
            buffer: Bytes(65536),
            switch_latency: Picoseconds::from_nanos(100),
            switching: Switching::CutThrough,
            switch: switch::default(),
            transport: Named::new(transport::DEFAULT),
        }
    }
}

impl Parameters {
    /// A full packet on the wire.
    #[must_use]
    pub fn largest_packet(&self) -> Bytes {
        self.mtu + self.header
    }

    /// The largest payload of a message: 1 TiB, and fewer than 2^32 packets.
    #[must_use]
    pub fn largest_message(&self) -> Bytes {
        Bytes((u64::from(u32::MAX) * self.mtu.0).min(1 << 40))
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
        if self.header.0 > 4096 {
            return Err(BuildError::value("network.header", self.header.0, "at most 4096 bytes"));
        }
        if self.buffer < self.largest_packet() || self.buffer.0 > u64::from(u32::MAX) {
            let least = self.largest_packet().0;
            let allowed = format!("at least one full packet (mtu + header = {least} bytes), below 4 GiB");
            return Err(BuildError::value("network.buffer", self.buffer.0, allowed));
        }
        Ok(())
    }
}
