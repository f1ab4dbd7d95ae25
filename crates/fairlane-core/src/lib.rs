//! The fairlane simulator: many MPI jobs on one HPC interconnect, packet by packet.
//!
//! The layers, lowest first; a module imports from lower layers only:
//!
//! | layer | modules |
//! |---|---|
//! | words | [`units`], [`ids`], [`error`], [`rng`], [`columns`], [`table`] |
//! | ground | [`kernel`] (time and the window), [`topology`] (pure graphs) |
//! | policies | [`routing`], [`qos`], [`program`], [`fault`] |
//! | records | [`observe`] |
//! | packets | [`network`] |
//! | messages | [`mpi`] |
//! | tables of what was measured | [`results`] |
//! | names | [`registry`] |
//! | the whole | [`simulation`] |

pub mod columns;
pub mod error;
pub mod fault;
pub mod ids;
pub mod kernel;
pub mod mpi;
pub mod network;
pub mod observe;
pub mod program;
pub mod qos;
pub mod registry;
pub mod results;
pub mod rng;
pub mod routing;
pub mod simulation;
pub mod table;
pub mod topology;
pub mod units;
