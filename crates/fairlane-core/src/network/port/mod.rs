//! Output ports: a queue for each lane, an arbiter, a transmitter.
//!
//! A port with something to do in a window is run through it alone, as an [`ActivePort`]: [`state`] is what is kept of
//! a port, [`window`] the loop, [`queue`] what joins and leaves the queues, [`arbitrate`] the choice of a lane,
//! [`transmit`] the start on the link, [`mark`] the marks of congestion control.

mod arbitrate;
mod buffered;
mod credits;
mod mark;
mod queue;
mod state;
mod transmit;
mod window;

pub(super) use credits::pool_taken;
pub(super) use queue::QueueEntry;
pub(super) use state::{Arrival, DOWN, Lane, LaneMarking, Port, UNCHARGED, each_lane, kind};

use std::marker::PhantomData;

use super::config::Config;
use super::features::Instance;
use super::in_flight::InFlight;
use super::index::PortIdx;
use super::observation::Observation;
use crate::qos::arbiter::Arbitration;
use crate::units::Instant;

/// A port that runs through the open window, with all that it touches.
pub(super) struct ActivePort<'a, I: Instance, const KIND: u8> {
    pub number: PortIdx,
    pub port: &'a mut Port,
    /// Of all ports; this one's begin at `base`.
    pub lanes: &'a mut [Lane],
    pub base: usize,
    /// When the open window opened.
    pub opening: Instant,
    /// With its states of all ports.
    pub arbiter: &'a mut dyn Arbitration,
    pub config: &'a Config,
    pub in_flight: &'a mut InFlight,
    pub observation: &'a mut Observation,
    pub instance: PhantomData<I>,
}

impl<I: Instance, const KIND: u8> ActivePort<'_, I, KIND> {
    /// Whether the link is down.
    #[inline(always)]
    const fn down(&self) -> bool {
        self.config.has::<I>().loses && self.port.unusual & DOWN != 0
    }
}
