//! The log of departures: every packet that started on a link.

/// A packet started on a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Departure {
    /// When, in picoseconds.
    pub time: u64,
    /// How long it had waited in the port's queue, in picoseconds.
    pub waited: u64,
    /// The link.
    pub link: u32,
    /// The lane of the link's port.
    pub lane: u8,
    /// The job of the packet.
    pub job: u16,
    /// The caller's name of the message.
    pub token: u32,
    /// The caller's word of the message.
    pub stage: u8,
    /// The packet's place in its message.
    pub packet: u32,
    /// Bytes on the wire.
    pub bytes: u32,
}
