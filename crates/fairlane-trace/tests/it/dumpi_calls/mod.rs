//! Every kind of call in hand-made DUMPI files.

mod communicators;
mod messages;
mod reading;
mod unsupported;
mod windows;

use fairlane_core::ids::Rank;
use fairlane_core::program::{Collective, CollectiveKind, Op, P2p, SendMode, Volume};
use fairlane_core::units::Bytes;

use crate::dumpi_writer::Arg::{self, H, I};
use crate::dumpi_writer::{INT, WORLD};

pub fn to(count: i32, peer: i32, tag: i32) -> [Arg<'static>; 5] {
    [I(count), H(INT), I(peer), I(tag), H(WORLD)]
}

pub fn start(count: i32, peer: i32, tag: i32, request: i32) -> [Arg<'static>; 6] {
    [I(count), H(INT), I(peer), I(tag), H(WORLD), I(request)]
}

pub fn send(peer: u32, bytes: u64, tag: i32, mode: SendMode) -> Op {
    Op::P2p(P2p::Send { to: Rank(peer), bytes: Bytes(bytes), tag, comm: 0, mode })
}

pub fn isend(peer: u32, bytes: u64, tag: i32, request: u32) -> Op {
    Op::P2p(P2p::Isend { to: Rank(peer), bytes: Bytes(bytes), tag, comm: 0, mode: SendMode::Standard, request })
}

pub fn recv(from: impl Into<Option<u32>>, tag: impl Into<Option<i32>>) -> Op {
    Op::P2p(P2p::Recv { from: from.into().map(Rank), tag: tag.into(), comm: 0 })
}

pub fn irecv(from: impl Into<Option<u32>>, tag: impl Into<Option<i32>>, request: u32) -> Op {
    Op::P2p(P2p::Irecv { from: from.into().map(Rank), tag: tag.into(), comm: 0, request })
}

pub fn collective(kind: CollectiveKind, root: u32, volume: Volume) -> Op {
    Op::Collective(Collective::Blocking { kind, comm: 0, root: Rank(root), volume })
}

pub fn same(bytes: u64) -> Volume {
    Volume::Uniform(Bytes(bytes))
}
