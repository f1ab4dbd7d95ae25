//! What the network keeps for those who look at it.

use crate::observe::{Departure, Interference};

#[derive(Clone)]
pub(super) struct Watch {
    pub interference: Interference,
    pub departures: Vec<Departure>,
}
