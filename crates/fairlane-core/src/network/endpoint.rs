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

    /// Runs `host` alone up to (not including) `until`, given what is delivered to it before then, in order. Pushes
    /// what the host sends.
    ///
    /// # Errors
    /// Ends the run.
    fn run(
        &mut self,
        host: HostId,
        until: Instant,
        deliveries: &[Delivery],
        injections: &mut Vec<Injection>,
    ) -> Result<Pause, RunError>;

    /// A window has been run: moves to `mail`, which is empty, what the endpoint of `shard` must know. Called for each other
    /// shard.
    fn post(&mut self, shard: usize, mail: &mut Self::Mail);

    /// Takes everything out of `mail`, which the endpoint of `shard` has posted in the window that has just been run. Called
    /// for each other shard, in ascending order.
    fn accept(&mut self, shard: usize, mail: &mut Self::Mail);

    /// The window that ends at `until` has been run, and all mail has been accepted. Returns whether the run must end; what
    /// has happened, the caller of the network asks the endpoints. The endpoints of all shards must return the same.
    fn end_window(&mut self, until: Instant) -> bool;
}

/// How a host goes on once it has run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pause {
    /// When it has something to do by itself, at the end of the window or later.
    pub at: Option<Instant>,
    /// Until then it need run only for what is urgent: the rest makes no difference to anyone before.
    pub deferrable: bool,
}
