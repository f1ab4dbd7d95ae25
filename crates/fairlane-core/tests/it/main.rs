//! Laws that hold for every entry of a table, and for the crate itself.

#![allow(clippy::unwrap_used, reason = "what a test cannot have fails it")]

mod arbiter_laws;
mod capacity;
mod case;
mod congestion;
mod fabrics;
mod fairness;
mod faults;
mod go_back_n;
mod graph_routing_laws;
mod internals;
mod layers;
mod mpi_shards;
mod program_errors;
mod rails;
mod record;
mod results;
mod routing_laws;
mod saturation;
mod shards;
mod shortcuts;
mod simulation_laws;
mod tier_laws;
mod topology_laws;
