//! The payloads of collective calls.

use std::sync::Arc;

use fairlane_core::ids::Rank;
use fairlane_core::program::{CollectiveKind, Volume};
use fairlane_core::units::Bytes;

use super::calls::Call;
use super::cursor::Fault;
use super::record::Record;
use super::sizes::Sizes;
use crate::tally::HandedIn;

/// A collective call of a rank.
pub struct Collective {
    /// The operation.
    pub kind: CollectiveKind,
    /// The communicator, as the file numbers it.
    pub comm: i32,
    /// The root, or rank 0.
    pub root: Rank,
    /// The payload that the replay hands in.
    pub volume: Volume,
    /// The payload that the statistics count.
    pub handed_in: HandedIn,
}

impl Collective {
    fn new(kind: CollectiveKind, comm: i32, volume: Volume, handed_in: HandedIn) -> Self {
        Self { kind, comm, root: Rank(0), volume, handed_in }
    }

    fn rooted(mut self, root: i32) -> Result<Self, Fault> {
        self.root = Rank(u32::try_from(root).map_err(|_| format!("a root of {root}"))?);
        Ok(self)
    }
}

const fn same(bytes: u64) -> Volume {
    Volume::Uniform(Bytes(bytes))
}

/// The collective call that a record holds, if it holds one.
pub fn read(record: &Record, sizes: &Sizes) -> Result<Option<Collective>, Fault> {
    use CollectiveKind::{Allreduce, Barrier, Bcast, Reduce, Scan};
    let n = |i: usize| record.number(i);
    let buffer = |count: usize, datatype: usize| sizes.bytes(n(count), n(datatype));
    let collective = match record.call() {
        Call::Barrier => Collective::new(Barrier, n(0), same(0), HandedIn::Bytes(0)),
        Call::Bcast => {
            let (bytes, root) = (buffer(0, 1)?, n(2));
            Collective::new(Bcast, n(3), same(bytes), HandedIn::AtRoot { root: root.cast_unsigned(), bytes })
                .rooted(root)?
        }
        Call::Reduce => {
            let bytes = buffer(0, 1)?;
            Collective::new(Reduce, n(4), same(bytes), HandedIn::Bytes(bytes)).rooted(n(3))?
        }
        Call::Allreduce => {
            let bytes = buffer(0, 1)?;
            Collective::new(Allreduce, n(3), same(bytes), HandedIn::Bytes(bytes))
        }
        Call::Scan => {
            let bytes = buffer(0, 1)?;
            Collective::new(Scan, n(3), same(bytes), HandedIn::Bytes(bytes))
        }
        Call::Gather | Call::Gatherv | Call::Scatter | Call::Scatterv => to_or_from_root(record, sizes)?,
        Call::Allgather | Call::Allgatherv | Call::ReduceScatter => to_all(record, sizes)?,
        Call::Alltoall | Call::Alltoallv | Call::Alltoallw => all_to_all(record, sizes)?,
        _ => return Ok(None),
    };
    Ok(Some(collective))
}

fn blocks(counts: &[i32], datatype: i32, sizes: &Sizes) -> Result<Arc<[u64]>, Fault> {
    counts.iter().map(|&count| sizes.bytes(count, datatype)).collect()
}

/// The own block of a rank that is not the root, in a v-variant.
fn own_block(bytes: u64) -> Volume {
    Volume::PerRank([bytes].into())
}

fn total(blocks: &[u64]) -> u64 {
    blocks.iter().fold(0, |sum, &block| sum.saturating_add(block))
}

/// Only the root's arguments say what the others' blocks are; beside `MPI_IN_PLACE` its own buffer says nothing.
fn to_or_from_root(record: &Record, sizes: &Sizes) -> Result<Collective, Fault> {
    use CollectiveKind::{Gather, Scatter};
    let n = |i: usize| record.number(i);
    let bytes = |count: usize, datatype: usize| sizes.bytes(n(count), n(datatype));
    let sent = |count: usize, datatype: usize| if Sizes::is_null(n(datatype)) { Ok(0) } else { bytes(count, datatype) };
    match record.call() {
        Call::Gather => {
            let own = sent(1, 2)?;
            let block = if n(0) == n(3) { bytes(5, 6)? } else { own };
            Collective::new(Gather, n(4), same(block), HandedIn::Bytes(own)).rooted(n(3))
        }
        Call::Gatherv => {
            let own = sent(2, 3)?;
            let at_root = n(0) == n(4);
            let volume = if at_root { Volume::PerRank(blocks(record.list(0), n(6), sizes)?) } else { own_block(own) };
            Collective::new(Gather, n(5), volume, HandedIn::Bytes(own)).rooted(n(4))
        }
        Call::Scatter => {
            let at_root = n(0) == n(3);
            let block = if at_root { bytes(5, 6)? } else { bytes(1, 2)? };
            let handed_in = if at_root { HandedIn::PerMember(block) } else { HandedIn::Bytes(0) };
            Collective::new(Scatter, n(4), same(block), handed_in).rooted(n(3))
        }
        _ => {
            if n(0) != n(5) {
                return Collective::new(Scatter, n(6), own_block(bytes(3, 4)?), HandedIn::Bytes(0)).rooted(n(5));
            }
            let blocks = blocks(record.list(0), n(2), sizes)?;
            let handed_in = HandedIn::Bytes(total(&blocks));
            Collective::new(Scatter, n(6), Volume::PerRank(blocks), handed_in).rooted(n(5))
        }
    }
}

/// The receiving side has the blocks of all, beside `MPI_IN_PLACE` too.
fn to_all(record: &Record, sizes: &Sizes) -> Result<Collective, Fault> {
    use CollectiveKind::{Allgather, ReduceScatter};
    let n = |i: usize| record.number(i);
    let bytes = |count: usize, datatype: usize| sizes.bytes(n(count), n(datatype));
    Ok(match record.call() {
        Call::Allgather => {
            let block = bytes(2, 3)?;
            let own = if Sizes::is_null(n(1)) { block } else { bytes(0, 1)? };
            Collective::new(Allgather, n(4), same(block), HandedIn::Bytes(own))
        }
        Call::Allgatherv => {
            let own = if Sizes::is_null(n(2)) { 0 } else { bytes(1, 2)? };
            let blocks = blocks(record.list(0), n(3), sizes)?;
            Collective::new(Allgather, n(4), Volume::PerRank(blocks), HandedIn::Bytes(own))
        }
        _ => {
            let blocks = blocks(record.list(0), n(1), sizes)?;
            let handed_in = HandedIn::Bytes(total(&blocks));
            Collective::new(ReduceScatter, n(3), Volume::PerRank(blocks), handed_in)
        }
    })
}

/// Beside `MPI_IN_PLACE` every pair exchanges as much in one direction as in the other.
fn all_to_all(record: &Record, sizes: &Sizes) -> Result<Collective, Fault> {
    use CollectiveKind::Alltoall;
    let n = |i: usize| record.number(i);
    let (blocks, comm) = match record.call() {
        Call::Alltoall => {
            let block = if Sizes::is_null(n(1)) { sizes.bytes(n(2), n(3))? } else { sizes.bytes(n(0), n(1))? };
            return Ok(Collective::new(Alltoall, n(4), same(block), HandedIn::PerMember(block)));
        }
        Call::Alltoallv if Sizes::is_null(n(1)) => (blocks(record.list(2), n(2), sizes)?, n(3)),
        Call::Alltoallv => (blocks(record.list(0), n(1), sizes)?, n(3)),
        _ => {
            let sent = record.list(2).first().is_some_and(|&datatype| !Sizes::is_null(datatype));
            let (counts, datatypes) = if sent { (0, 2) } else { (3, 5) };
            let pairs = record.list(counts).iter().zip(record.list(datatypes));
            (pairs.map(|(&count, &datatype)| sizes.bytes(count, datatype)).collect::<Result<_, Fault>>()?, n(1))
        }
    };
    let handed_in = HandedIn::Bytes(total(&blocks));
    Ok(Collective::new(Alltoall, comm, Volume::PerRank(blocks), handed_in))
}
