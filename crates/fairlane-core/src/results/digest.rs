//! The digest: one number for everything that a simulation has measured.

use sha2::{Digest, Sha256};

use super::{Measured, TABLES};

/// The SHA-256 of the tables that enter the digest, in hexadecimal: names and values of all columns, and, as long as
/// something is left to happen, the instant. It does not depend on the platform, nor on shards and threads.
pub(crate) fn digest(measured: Measured<'_>) -> String {
    let mut hash = Sha256::new();
    for table in TABLES.iter().filter(|table| table.in_digest) {
        for column in (table.columns)(measured).iter() {
            hash.update(column.name);
            hash.update(column.values.bytes());
        }
    }
    // Once nothing is left to happen, it does not matter how far the clock was asked to go.
    if !(measured.mpi.finished() && measured.network.is_at_rest()) {
        hash.update(measured.network.now().0.to_le_bytes());
    }
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}
