//! Switches: where packets wait, and how they get from an input to an output port.
//!
//! An architecture is one file that exports an [`Entry`]; [`TABLE`] lists them. [`route`] chooses the output ports of packets
//! when they arrive, where this is not known before.
//!
//! Flow control, queues of output ports and their arbitration are the engine's and the same in every architecture. An entry,
//! from this crate or another, chooses one of the forms of [`Architecture`] and its parameters; of an input-queued switch this
//! includes the [`allocator`], which may come from another crate as well. A form of its own (central buffers, crosspoint
//! buffers) needs a change to the engine.

pub mod allocator;
pub(super) mod input_queued;
mod output_queued;
mod route;
mod sorting;

use crate::error::BuildError;
use crate::table::{Constructor, Item, Kind, Named, Table};
use crate::units::Bytes;
pub(super) use input_queued::Crossbars;
pub use input_queued::{InputQueued, InputQueues};
pub(super) use sorting::Sorting;

/// An architecture with its parameters.
#[derive(Clone, Debug)]
pub enum Architecture {
    /// Packets wait at output ports only.
    OutputQueued,
    /// Packets wait at input ports and cross a crossbar.
    InputQueued(InputQueued),
}

impl Architecture {
    /// Bytes of each lane of an output port that hold packets which have crossed the switch.
    #[must_use]
    pub fn output_buffer(&self) -> Bytes {
        match self {
            Self::OutputQueued => Bytes(0),
            Self::InputQueued(switch) => Bytes(u64::from(switch.output_buffer)),
        }
    }
}

/// The kind of entry that switch architectures are.
#[derive(Debug)]
pub enum Switches {}

/// The network for which an architecture is built.
#[derive(Clone, Copy, Debug)]
pub struct Surroundings<'a> {
    /// Bytes of a full packet on the wire.
    pub full_packet: Bytes,
    /// The allocators that can be asked for by name.
    pub allocators: &'a Table<allocator::Allocators>,
}

/// An architecture that can be asked for by name.
pub type Entry = Item<Switches>;

/// The built-in architectures.
pub const TABLE: &[Entry] = &[output_queued::ENTRY, input_queued::ENTRY];

impl Kind for Switches {
    const KIND: &'static str = "switch architecture";
    const PATH: &'static str = "network.switch";
    const BUILT_IN: &'static [Entry] = TABLE;
    type Given<'a> = Surroundings<'a>;
    type Built = Architecture;
    type Build = Constructor<Self>;

    fn build(
        entry: &'static Entry,
        _table: &Table<Switches>,
        params: &serde_json::Value,
        given: Surroundings<'_>,
    ) -> Result<Architecture, BuildError> {
        (entry.build)(params, given)
    }
}

/// The architecture of a fabric whose scenario names none.
pub(super) fn default() -> Named {
    Named::new(output_queued::ENTRY.name)
}
