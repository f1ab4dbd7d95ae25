//! Transports: when the next packet of a flow may start at its NIC.
//!
//! A transport is one file that exports an [`Entry`]; [`TABLE`] lists them. One transport object serves every NIC; what it
//! remembers of a flow is a few words of [`State`]. A flow is what one NIC sends to one destination for one job on one virtual
//! lane.
//!
//! Credits come first in any case: a packet that its transport lets start still needs credits and the arbiter's grant. A
//! message whose flow may not start a packet leaves its queue and joins it again when it may; nobody waits behind it.

mod credits_only;

use crate::error::BuildError;
use crate::table::{Constructor, Item, Kind, Table};
use crate::units::{BitsPerSec, Bytes, Instant, Picoseconds};

/// What a transport remembers of one flow, in the transport's own meaning; all zero at the start.
pub type State = [u64];

/// Decides when packets of a flow start.
pub trait Transport: Send + Sync {
    /// Whether it ever holds a packet back. If not, nothing else is asked, and nothing is kept of flows.
    fn paces(&self) -> bool {
        true
    }

    /// How many words of [`State`] it needs for a flow.
    fn state_words(&self) -> usize;

    /// Prepares the state of a flow, all zero so far, of a NIC whose link has this bandwidth.
    fn begin(&self, _state: &mut State, _bandwidth: BitsPerSec) {}

    /// From when on the next packet of the flow may start. Asked at `now`, when it is first in its queue and the link is free.
    fn earliest(&self, state: &State, now: Instant) -> Instant;

    /// Accounts a packet of the flow, `bytes` on the wire, that starts at `now` and takes `wire_time`.
    fn started(&self, state: &mut State, bytes: Bytes, wire_time: Picoseconds, now: Instant);
}

/// The kind of entry that transports are.
pub enum Transports {}

/// A transport that can be asked for by name.
pub type Entry = Item<Transports>;

/// The built-in transports.
pub const TABLE: &[Entry] = &[credits_only::ENTRY];

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
        _table: &Table<Entry>,
        params: &serde_json::Value,
        given: (),
    ) -> Result<Box<dyn Transport>, BuildError> {
        (entry.build)(params, given)
    }
}
