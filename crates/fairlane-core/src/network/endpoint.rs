//! The hosts' side of the network, as the network sees it.

use super::{Delivery, Injection};
use crate::error::RunError;
use crate::ids::HostId;
use crate::units::Instant;

/// The hosts of the network, or those of one of its shards (see [`Partition`](super::Partition)).
///
/// The endpoints of different shards run in parallel. They know of each other what network messages bring, and mail: what
/// they [`post`](Endpoint::post) when a window ends, and [`accept`](Endpoint::accept) before the next one opens. Mail wakes
/// no host. A network message takes at least one window, so mail that is written together with an injection is there before
/// the delivery.
pub trait Endpoint {
    /// Mail from one shard's endpoint to another's. It is emptied by the one that accepts it, and used again.
    type Mail: Default + Send;

    /// Runs `host` alone up to `until`, which is excluded, given what is delivered to it before then, in order of time. Pushes
    /// the messages that the host sends.
    ///
    /// # Errors
    /// A [`RunError`] ends the run after the window.
    fn run(
        &mut self,
        host: HostId,
        until: Instant,
        deliveries: &[Delivery],
        injections: &mut Vec<Injection>,
    ) -> Result<Pause, Box<RunError>>;

    /// A window has been run: moves to `mail`, which is empty, what the endpoint of `shard` must know. Called for each other
    /// shard; not with one shard.
    fn post(&mut self, shard: usize, mail: &mut Self::Mail);

    /// Takes everything out of `mail`, which the endpoint of `shard` has posted in the window that has just been run. Called
    /// for each other shard, in ascending order.
    fn accept(&mut self, shard: usize, mail: &mut Self::Mail);

    /// How many messages under way the endpoint keeps: all endpoints together at most [`Endpoint::most_kept`]. With more
    /// the run pauses after the window.
    fn kept(&self) -> u64 {
        0
    }

    /// See [`Endpoint::kept`].
    fn most_kept(&self) -> u64 {
        u64::MAX
    }

    /// Whether the run pauses after the window that has just been run.
    fn pauses(&self) -> bool {
        false
    }

    /// The window that ends at `until` has been run, and all mail has been accepted. Returns whether the run must end; the
    /// endpoints know why. The endpoints of all shards must return the same.
    fn end_window(&mut self, until: Instant) -> bool;
}

/// When a host runs again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pause {
    /// When it has something to do by itself, at the end of the window or later.
    pub at: Option<Instant>,
    /// Until then only urgent deliveries make it run: others have no effect before.
    pub deferrable: bool,
}
