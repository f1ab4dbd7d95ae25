//! A collective algorithm: a broadcast along a chain of ranks.

use fairlane_core::mpi::collective::algorithms::{Algorithm, Call, Phase, Schedule};
use fairlane_core::program::CollectiveKind;

/// The entry.
pub static ENTRY: Algorithm = Schedule { kind: CollectiveKind::Bcast, fits: |_| true, schedule }
    .named("chain", "each rank receives from the one before it and sends to the one after it, the root first");

fn schedule(call: &Call, k: u32, phase: &mut Phase) -> bool {
    match k {
        0 if call.position() > 0 => phase.receive(call.before(1), call.buffer()),
        1 if call.position() < call.size - 1 => phase.send(call.after(1), call.buffer()),
        _ => {}
    }
    k < 2
}
