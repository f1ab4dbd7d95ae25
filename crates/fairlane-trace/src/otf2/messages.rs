//! Point-to-point messages of a rank as operations.

use std::collections::HashMap;

use fairlane_core::ids::Rank;
use fairlane_core::program::{CommHandle, Op, P2p, RequestId, SendMode};
use fairlane_core::units::Bytes;

use super::completions::Got;
use super::event::Message;
use super::source::RankReader;
use crate::lookahead::Outcome;

/// The messages that `MPI_Mprobe` and the like have found, until they are received; by the archive's number.
pub type Probed = HashMap<u64, Message>;

impl RankReader {
    /// The partner of a message, and the handle of its communicator.
    fn partner(&mut self, message: &Message) -> Result<(Rank, CommHandle), String> {
        let comm = self.handle(message.comm)?;
        match self.definitions().size_of(message.comm) {
            Some(size) if message.peer as usize >= size => {
                Err(format!("rank {} of communicator {}, which has {size} ranks", message.peer, message.comm))
            }
            _ => Ok((Rank(message.peer), comm)),
        }
    }

    pub(super) fn send(&mut self, message: &Message) -> Result<(), String> {
        let name = self.call().map_or("", |region| &region.name);
        match name {
            // The receive that comes next must not wait for the send.
            "MPI_Sendrecv" | "MPI_Sendrecv_replace" => {
                let request = self.isend(message)?;
                self.after_call(request);
            }
            "MPI_Bsend" => {
                let request = self.isend(message)?;
                self.give_up(request);
            }
            _ => {
                let mode = if name == "MPI_Ssend" { SendMode::Synchronous } else { SendMode::Standard };
                let &Message { tag, bytes, .. } = message;
                let (to, comm) = self.partner(message)?;
                self.out.op(Op::P2p(P2p::Send { to, bytes: Bytes(bytes), tag, comm, mode }));
            }
        }
        Ok(())
    }

    pub(super) fn isend(&mut self, message: &Message) -> Result<RequestId, String> {
        let mode = if self.is_in("MPI_Issend") { SendMode::Synchronous } else { SendMode::Standard };
        let &Message { tag, bytes, .. } = message;
        let (to, comm) = self.partner(message)?;
        let request = self.take_request();
        self.out.op(Op::P2p(P2p::Isend { to, bytes: Bytes(bytes), tag, comm, mode, request }));
        Ok(request)
    }

    /// Posts a receive for the message that it will get. One that gets none in the trace is not posted.
    pub(super) fn irecv(&mut self) -> Result<Option<RequestId>, String> {
        let Outcome::Completed(Got::Message(message)) = self.outcome()? else { return Ok(None) };
        self.post(&message).map(Some)
    }

    fn post(&mut self, message: &Message) -> Result<RequestId, String> {
        let (from, comm) = self.partner(message)?;
        let request = self.take_request();
        self.out.op(Op::P2p(P2p::Irecv { from: Some(from), tag: Some(message.tag), comm, request }));
        Ok(request)
    }

    pub(super) fn receive(&mut self, message: &Message) -> Result<(), String> {
        let (from, comm) = self.partner(message)?;
        self.out.op(Op::P2p(P2p::Recv { from: Some(from), tag: Some(message.tag), comm }));
        Ok(())
    }

    /// A probe has found a message: it blocks until the message is there.
    pub(super) fn probe(&mut self, message: &Message, number: u64) -> Result<(), String> {
        let (from, comm) = self.partner(message)?;
        self.out.op(Op::P2p(P2p::Probe { from: Some(from), tag: Some(message.tag), comm }));
        if self.is_in("MPI_Mprobe") || self.is_in("MPI_Improbe") {
            self.probed().insert(number, *message);
        }
        Ok(())
    }

    fn matched(&mut self, number: u64) -> Result<Message, String> {
        self.probed().remove(&number).ok_or_else(|| format!("message {number} was found by no probe"))
    }

    /// Receives a message that a probe has found.
    pub(super) fn receive_matched(&mut self, number: u64) -> Result<(), String> {
        let message = self.matched(number)?;
        self.receive(&message)
    }

    /// Posts a receive for a message that a probe has found.
    pub(super) fn post_matched(&mut self, number: u64) -> Result<RequestId, String> {
        let message = self.matched(number)?;
        self.post(&message)
    }
}
