//! Tests of the trace readers on recorded and on hand-made traces.

#![allow(clippy::unwrap_used, missing_docs)]

mod archives;
mod dumpi_calls;
mod dumpi_damage;
mod dumpi_writer;
mod graphs;
mod otf2;
