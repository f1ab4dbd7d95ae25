//! Collectives as NCCL carries them out: several *lanes* at once, each a sequence of phases over a part of the buffer.
//!
//! A channel is a ring or a pair of trees with an order of its own, so that each of a server's adapters has one. Within a channel
//! the buffer goes through in chunks of bounded size, and two lanes of a channel take turns where NCCL has two slices in a chunk:
//! while one waits, the other transmits. Sizes are those of NCCL 2.30.7 (`src/init.cc`, `src/include/collectives.h`,
//! `src/enqueue.cc`); `choice` takes algorithm and protocol as its model of times does. Messages are sent without asking the
//! receiver, which has posted its buffers before, and reductions take no time of their own. Not modelled: `NVLSTree` (NVLS between
//! servers), NVLS of allgather and reduce-scatter, `CollNet`, PAT, and the limit of eight steps by which a sender may be ahead of its
//! receiver.
//!
//! Kinds that NCCL does not have (barrier, gather, scatter, scan) and v-variants but that of all-to-all are left to the MPI library.

mod choice;
#[cfg(test)]
mod laws;
mod layout;
mod schedule;

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub(in crate::mpi) use layout::Layout;
pub(in crate::mpi) use schedule::Schedule;

use super::algorithms::Call;
use crate::error::BuildError;
use crate::program::{CollectiveKind, Volume};
use crate::units::{BitsPerSec, Picoseconds};

/// The order in which the ranks of a collective exchange data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Algorithm {
    /// Ring or tree, the one that NCCL estimates to be faster.
    #[default]
    Auto,
    /// Rings through all GPUs, one for each channel.
    Ring,
    /// Two complementary binary trees of servers, and a chain on each server; allreduce only.
    Tree,
    /// A reduce-scatter on each server, an exchange in rings of GPUs of the same number, an allgather on each server. Not in NCCL.
    Hierarchical,
    /// In the switch of the scale-up network: allreduce within a server, with Simple. Others as `Auto`.
    Nvls,
}

/// How a receiver learns that data has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Protocol {
    /// The one that NCCL estimates to be fastest.
    #[default]
    Auto,
    /// A flag of 4 bytes after each 4 bytes of data.
    Ll,
    /// A flag of 8 bytes after each 120 bytes of data.
    Ll128,
    /// Data, then a counter.
    Simple,
}

impl Protocol {
    /// Bytes that are sent for so many bytes of data.
    const fn wire(self, bytes: u64) -> u64 {
        match self {
            Self::Ll => bytes.div_ceil(8) * 16,
            Self::Ll128 => bytes.div_ceil(120) * 128,
            Self::Auto | Self::Simple => bytes,
        }
    }

    /// Bytes of data in one step of a channel's buffer, of eight: of 512 KiB with flags, 4,915,200 bytes with flags, and 4 MiB.
    const fn step(self) -> u64 {
        match self {
            Self::Ll => 32_768,
            Self::Ll128 => 576_000,
            Self::Auto | Self::Simple => 524_288,
        }
    }

    const fn index(self) -> usize {
        match self {
            Self::Ll => 0,
            Self::Ll128 => 1,
            Self::Auto | Self::Simple => 2,
        }
    }
}

/// That a job's collectives are NCCL's, and how its GPUs are connected.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Nccl {
    /// `NCCL_ALGO`.
    pub algorithm: Algorithm,
    /// `NCCL_PROTO`.
    pub protocol: Protocol,
    /// Channels of a collective. Default: one for each adapter of a server, at most as many as it has members, and one within a
    /// server.
    pub channels: Option<u32>,
    /// Point-to-point channels: so many exchanges of an all-to-all are under way at a rank.
    pub p2p_channels: u32,
    /// All-to-all through the GPU of the own server that is next to the adapter of the receiver's rail.
    pub pxn: bool,
    /// Bandwidth into and out of each GPU within a server.
    pub scale_up_bandwidth: BitsPerSec,
    /// Latency within a server.
    pub scale_up_latency: Picoseconds,
    /// Software latencies, in thousandths of those of NCCL's model.
    pub software_thousandths: u32,
}

impl Default for Nccl {
    /// `NVLink` 4: 18 links of 20.6 GB/s, as NCCL counts (`SM90_NVLINK_BW`).
    fn default() -> Self {
        Self {
            algorithm: Algorithm::Auto,
            protocol: Protocol::Auto,
            channels: None,
            p2p_channels: 8,
            pxn: false,
            scale_up_bandwidth: BitsPerSec(2_966_400_000_000),
            scale_up_latency: Picoseconds::from_nanos(500),
            software_thousandths: 1000,
        }
    }
}

impl Nccl {
    /// Checks numbers.
    ///
    /// # Errors
    /// [`BuildError`] with the key under `path`.
    pub fn check(&self, path: &str) -> Result<(), BuildError> {
        for (key, count) in [("channels", self.channels.unwrap_or(1)), ("p2p_channels", self.p2p_channels)] {
            if !(1..=MOST_CHANNELS).contains(&count) {
                return Err(BuildError::value(format!("{path}.{key}"), count, format!("1 to {MOST_CHANNELS}")));
            }
        }
        if self.algorithm == Algorithm::Nvls && matches!(self.protocol, Protocol::Ll | Protocol::Ll128) {
            let problem = "with algorithm = nvls: auto or simple";
            return Err(BuildError::value(format!("{path}.protocol"), format!("{:?}", self.protocol), problem));
        }
        if self.scale_up_bandwidth.0 < 1_000_000 {
            let path = format!("{path}.scale_up_bandwidth");
            return Err(BuildError::value(path, self.scale_up_bandwidth.0, "at least 1 Mb/s"));
        }
        if self.scale_up_latency.0 > 1_000_000_000_000 {
            let path = format!("{path}.scale_up_latency");
            return Err(BuildError::value(path, self.scale_up_latency, "at most one second"));
        }
        if self.software_thousandths > 100_000 {
            let path = format!("{path}.software_thousandths");
            return Err(BuildError::value(path, self.software_thousandths, "at most 100000"));
        }
        Ok(())
    }
}

/// `MAXCHANNELS` of NCCL.
const MOST_CHANNELS: u32 = 64;

/// The collectives of a job, and the adapters of its hosts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setup {
    /// The keys of the job.
    pub nccl: Nccl,
    /// Adapters of the host that has the fewest.
    pub adapters: u32,
    /// Bandwidth of the slowest adapter.
    pub adapter_bandwidth: BitsPerSec,
}

impl Setup {
    /// The schedule of a call, if NCCL has this kind of collective.
    pub(in crate::mpi) fn schedule(self: &Arc<Self>, call: &Call, layout: &Arc<Layout>) -> Option<Schedule> {
        use CollectiveKind::{Allgather, Allreduce, Alltoall, Bcast, Reduce, ReduceScatter};
        let known = matches!(call.kind, Bcast | Reduce | Allreduce | Allgather | Alltoall | ReduceScatter);
        let fits = known && (call.kind == Alltoall || matches!(call.volume, Volume::Uniform(_)));
        (fits && call.size > 1).then(|| Schedule::new(self, call, layout))
    }

    /// Channels of a collective of a communicator.
    fn channels(&self, layout: &Layout) -> u32 {
        let adapters = if layout.servers() > 1 { self.adapters.min(layout.fewest()) } else { 1 };
        self.nccl.channels.unwrap_or(adapters.max(1))
    }
}
