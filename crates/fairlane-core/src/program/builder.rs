//! A program in the making: one script per rank, written line by line.

use std::collections::HashSet;
use std::sync::Arc;

use thiserror::Error;

use super::script::{Line, Script};
use super::{COMM_WORLD, Op, P2p, Program, RequestId, SendMode};
use crate::ids::Rank;
use crate::units::Bytes;

/// A program that cannot be written so.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum ProgramError {
    /// A rank that the program does not have.
    #[error("rank {rank}: the program has {ranks} ranks")]
    NoRank {
        /// The rank given.
        rank: u32,
        /// How many there are.
        ranks: usize,
    },
    /// An exchange needs one source for each target.
    #[error("an exchange with {sources} sources and {targets} targets: as many sources as targets")]
    Unpaired {
        /// How many sources were given.
        sources: usize,
        /// How many targets.
        targets: usize,
    },
    /// Requests are numbered in 32 bits.
    #[error("{count} requests from {first} on: fewer than 2^32 requests")]
    TooManyRequests {
        /// The number of the first.
        first: RequestId,
        /// How many there would be.
        count: usize,
    },
    /// A script whose loops are wrong.
    #[error("rank {rank}, {problem}")]
    Script {
        /// The rank.
        rank: usize,
        /// The line, and what is wrong with it.
        problem: String,
    },
}

/// A program in the making.
#[derive(Debug)]
pub struct ProgramBuilder {
    ranks: Vec<Vec<Line>>,
    /// Lists of requests, which most ranks have in common.
    lists: HashSet<Arc<[RequestId]>>,
}

impl ProgramBuilder {
    /// Empty scripts of so many ranks.
    #[must_use]
    pub fn new(ranks: usize) -> Self {
        Self { ranks: vec![Vec::new(); ranks], lists: HashSet::new() }
    }

    /// Adds a line to the script of `rank`.
    ///
    /// # Errors
    /// [`ProgramError::NoRank`].
    pub fn push(&mut self, rank: u32, line: Line) -> Result<(), ProgramError> {
        let ranks = self.ranks.len();
        self.ranks.get_mut(rank as usize).ok_or(ProgramError::NoRank { rank, ranks })?.push(line);
        Ok(())
    }

    /// A list of requests, for a wait. All lists that are equal share their memory.
    pub fn share(&mut self, requests: Vec<RequestId>) -> Arc<[RequestId]> {
        if let Some(known) = self.lists.get(&requests[..]) {
            return Arc::clone(known);
        }
        let list: Arc<[RequestId]> = requests.into();
        self.lists.insert(Arc::clone(&list));
        list
    }

    /// For each place: a receive from `sources` and a send of so many bytes to `targets`, with the place as tag; requests are
    /// numbered from `first` on in this order. Then a wait for all of them.
    ///
    /// # Errors
    /// [`ProgramError`], and nothing is written, unless there is for each source one target, and a number for each request.
    pub fn exchange(
        &mut self,
        rank: u32,
        sources: &[Rank],
        targets: &[Rank],
        bytes: Bytes,
        first: RequestId,
    ) -> Result<(), ProgramError> {
        if sources.len() != targets.len() {
            return Err(ProgramError::Unpaired { sources: sources.len(), targets: targets.len() });
        }
        let count = 2 * sources.len();
        let end = u32::try_from(count).ok().and_then(|count| first.checked_add(count));
        let end = end.ok_or(ProgramError::TooManyRequests { first, count })?;
        let (mut request, mut tag) = (first, 0);
        for (&source, &to) in sources.iter().zip(targets) {
            let receive = Op::P2p(P2p::Irecv { from: Some(source), tag: Some(tag), comm: COMM_WORLD, request });
            self.push(rank, Line::Op(receive))?;
            let (mode, sent) = (SendMode::Standard, request + 1);
            self.push(rank, Line::Op(Op::P2p(P2p::Isend { to, bytes, tag, comm: COMM_WORLD, mode, request: sent })))?;
            (request, tag) = (request + 2, tag + 1);
        }
        let requests = self.share((first..end).collect());
        self.push(rank, Line::Op(Op::P2p(P2p::WaitAll(requests))))
    }

    /// The program; the builder is empty afterwards, so that never both take memory.
    ///
    /// # Errors
    /// [`ProgramError::Script`] names the rank and the line of its script.
    pub fn build(&mut self) -> Result<Program, ProgramError> {
        self.lists.clear();
        let mut ranks = Vec::with_capacity(self.ranks.len());
        let mut previous: Option<Script> = None;
        for (rank, lines) in std::mem::take(&mut self.ranks).into_iter().enumerate() {
            let script = Script::new(lines).map_err(|problem| ProgramError::Script { rank, problem })?;
            // Ranks of a job mostly have the same loops.
            let script = previous.iter().fold(script, Script::sharing);
            ranks.push(script.source());
            previous = Some(script);
        }
        Ok(Program { ranks })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn operations(program: &mut Program, rank: usize) -> Vec<Op> {
        let source = &mut program.ranks[rank];
        std::iter::from_fn(|| source.next_op().unwrap()).collect()
    }

    #[test]
    fn an_exchange_is_receives_sends_and_a_wait() {
        let (mut short, mut long) = (ProgramBuilder::new(2), ProgramBuilder::new(2));
        short.exchange(1, &[Rank(0), Rank(1)], &[Rank(1), Rank(0)], Bytes(8), 5).unwrap();
        for (place, from, to) in [(0_i32, 0, 1), (1, 1, 0)] {
            let (comm, tag, request) = (COMM_WORLD, place, 5 + 2 * place.unsigned_abs());
            long.push(1, Line::Op(Op::P2p(P2p::Irecv { from: Some(Rank(from)), tag: Some(tag), comm, request })))
                .unwrap();
            let (bytes, mode, request) = (Bytes(8), SendMode::Standard, request + 1);
            long.push(1, Line::Op(Op::P2p(P2p::Isend { to: Rank(to), bytes, tag, comm, mode, request }))).unwrap();
        }
        long.push(1, Line::Op(Op::P2p(P2p::WaitAll(Arc::from([5, 6, 7, 8]))))).unwrap();
        let [mut short, mut long] = [short, long].map(|mut builder| builder.build().unwrap());
        assert_eq!(operations(&mut short, 1), operations(&mut long, 1));
        assert_eq!(operations(&mut short, 0), []);
    }

    #[test]
    fn lists_that_are_equal_are_one() {
        let mut builder = ProgramBuilder::new(1);
        let (first, again, other) = (builder.share(vec![1, 2]), builder.share(vec![1, 2]), builder.share(vec![2, 1]));
        assert!(Arc::ptr_eq(&first, &again) && !Arc::ptr_eq(&first, &other));
    }

    #[test]
    fn what_cannot_be_written_is_named() {
        let mut builder = ProgramBuilder::new(2);
        let said = |result: Result<(), ProgramError>| result.unwrap_err().to_string();
        assert_eq!(said(builder.push(2, Line::End)), "rank 2: the program has 2 ranks");
        let unpaired = builder.exchange(0, &[Rank(1)], &[], Bytes(1), 0);
        assert_eq!(said(unpaired), "an exchange with 1 sources and 0 targets: as many sources as targets");
        let many = builder.exchange(0, &[Rank(1)], &[Rank(1)], Bytes(1), u32::MAX - 1);
        assert_eq!(said(many), "2 requests from 4294967294 on: fewer than 2^32 requests");
        builder.push(1, Line::Repeat(None)).unwrap();
        assert_eq!(said(builder.build().map(|_| ())), "rank 1, line 0: a loop without an end");
    }
}
