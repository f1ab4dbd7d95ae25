//! Allocators: which input of an input-queued switch is matched with which output.
//!
//! An allocator is one file that exports an [`Entry`]; [`TABLE`] lists them. Allocation runs in iterations of request, grant and
//! accept (see `input_queued`): each output grants one of its requests, each input accepts one of its
//! grants, and of several lanes between the two one is served. All three choices go by the allocator's [`Allocator::rank`].

mod age_based;
mod oldest_first;
mod round_robin;

use crate::error::BuildError;
use crate::ids::TrafficId;
use crate::table::{Constructor, Item, Kind, Table};
use crate::units::{Bytes, Instant};

/// The first packet of a queue at an input, whose input and output are free and whose output has room for it.
#[derive(Clone, Copy, Debug)]
pub struct CrossbarRequest {
    /// The input, by its number at the switch.
    pub input: u32,
    /// The output, by its number at the switch.
    pub output: u32,
    /// The lane at the input: a pair of virtual lane and virtual channel.
    pub lane: u8,
    /// When the packet joined its queue.
    pub joined: Instant,
    /// When the packet was offered to the port of the NIC that sent it.
    pub injected: Instant,
    /// Bytes of the packet on the wire.
    pub bytes: Bytes,
    /// The job of the packet.
    pub traffic: TrafficId,
}

/// Chooses among requests. It has no state of its own: the switch keeps a pointer for each port and each input's lanes, which
/// moves past the port (lane) that was matched last.
pub trait Allocator: Send + Sync {
    /// The rank of a request among those that share an output, an input, or both: the lowest is chosen. Of equals the one with
    /// the lowest number of the port at the other end (of the lane, where both are shared) is chosen.
    ///
    /// `distance` is how far that port (lane) is from the pointer, in cyclic order: zero is the one after the last matched.
    fn rank(&self, request: &CrossbarRequest, distance: u32) -> u64;
}

/// The kind of entry that allocators are.
#[derive(Debug)]
pub enum Allocators {}

/// An allocator that can be asked for by name.
pub type Entry = Item<Allocators>;

/// The built-in allocators.
pub const TABLE: &[Entry] = &[round_robin::ENTRY, oldest_first::ENTRY, age_based::ENTRY];

/// The allocator of a switch whose parameters name none.
pub const DEFAULT: &str = round_robin::ENTRY.name;

impl Kind for Allocators {
    const KIND: &'static str = "switch allocator";
    const PATH: &'static str = "network.switch.allocator";
    const BUILT_IN: &'static [Entry] = TABLE;
    type Given<'a> = ();
    type Built = Box<dyn Allocator>;
    type Build = Constructor<Self>;

    fn build(
        entry: &'static Entry,
        _table: &Table<Allocators>,
        params: &serde_json::Value,
        given: (),
    ) -> Result<Box<dyn Allocator>, BuildError> {
        (entry.build)(params, given)
    }
}
