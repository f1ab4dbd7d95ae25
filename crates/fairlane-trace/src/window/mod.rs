//! A part of a trace: the iterations from one to another.
//!
//! A cut is where every rank reaches what bounds iterations for the n-th time. It divides a trace if all ranks have made the
//! same collective calls in front of it on every communicator, and if no receive in front of it has got a message that was
//! sent behind it. Any other cut is refused: it is at no instant of the recorded run.
//!
//! - **Messages** belong to the part in which they are received. Those that are on their way at the beginning of the part,
//!   or for which a receive is open there, are started, in order, when it begins; those on their way at its end are left out,
//!   sends and receives. So every message of the part has both ends, and the part can be repeated.
//! - **Requests** that were started in front of the part and are complete by then take no time when they are waited for;
//!   those that are open at its end are given up.
//! - **Communicators** that are made in front of it are made before it begins, without the compute time in between.
//! - **Windows** of one-sided communication must not be open at a cut.

mod channels;
mod player;
mod scan;

use std::num::NonZeroU32;

use fairlane_core::program::{Program, Source};

use self::channels::{Channels, Plan};
use self::player::Player;
use self::scan::{Cut, Scan};
use crate::error::TraceError;

/// The part that is replayed.
#[derive(Clone, Copy)]
pub struct Window {
    /// The first iteration, from 1.
    pub from: NonZeroU32,
    /// The last one.
    pub to: Option<NonZeroU32>,
    /// Whether it starts over at its end.
    pub repeat: bool,
}

impl Window {
    /// The error of the beginning (`to` false) or of the end.
    fn refuse(self, cut: Cut, problem: String) -> TraceError {
        let (key, value) = match cut {
            Cut::Begin => ("from", self.from),
            Cut::End => ("to", self.to.unwrap_or(self.from)),
        };
        TraceError::Option { key, value: value.to_string(), problem }
    }

    /// Iterations of the part.
    fn iterations(self) -> Option<u32> {
        self.to.map(|to| to.get() - self.from.get() + 1)
    }
}

/// The part of a program that is played once and marks the beginning of each iteration, the first one too.
pub fn cut(program: &Program, window: Window) -> Result<Program, TraceError> {
    let mut scans = Vec::with_capacity(program.ranks.len());
    for source in &program.ranks {
        scans.push(Scan::new(source.boxed_clone(), window)?);
    }
    enough_iterations(&scans, window)?;
    let channels = Channels::of(&scans, window)?;
    let ranks = scans.into_iter().zip(&program.ranks).enumerate().map(|(rank, (scan, origin))| {
        let plan = Plan::new(rank, &scan, &channels, origin.boxed_clone(), window)?;
        Ok(Box::new(Player::new(scan.start, plan, window)) as Box<dyn Source>)
    });
    Ok(Program { ranks: ranks.collect::<Result<_, TraceError>>()? })
}

/// Refuses a part that goes beyond the iterations that every rank has.
fn enough_iterations(scans: &[Scan], window: Window) -> Result<(), TraceError> {
    let Some((rank, fewest)) = scans.iter().map(|scan| scan.marks).enumerate().min_by_key(|(_, marks)| *marks) else {
        return Ok(());
    };
    if fewest < window.from.get() {
        let problem = format!("the trace has {fewest} iterations in rank {rank}");
        return Err(window.refuse(Cut::Begin, problem));
    }
    match window.to {
        Some(to) if fewest <= to.get() => {
            let problem = format!("the trace has {} whole iterations in rank {rank}", fewest - 1);
            Err(window.refuse(Cut::End, problem))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use fairlane_core::ids::Rank;
    use fairlane_core::program::script::Line;
    use fairlane_core::program::{COMM_WORLD, Collective, CollectiveKind, Op, P2p, ProgramBuilder, SendMode, Volume};
    use fairlane_core::units::Bytes;

    use super::*;

    const BARRIER: Op = Op::Collective(Collective::Blocking {
        kind: CollectiveKind::Barrier,
        comm: COMM_WORLD,
        root: Rank(0),
        volume: Volume::Uniform(Bytes(0)),
    });

    fn send(number: u32) -> Op {
        let (to, bytes, tag) = (Rank(1), Bytes(number.into()), 0);
        Op::P2p(P2p::Isend { to, bytes, tag, comm: COMM_WORLD, mode: SendMode::Standard, request: number })
    }

    const RECV: Op = Op::P2p(P2p::Recv { from: Some(Rank(0)), tag: Some(0), comm: COMM_WORLD });

    /// Rank 0 sends in each of four iterations, and waits in the next one; rank 1 receives one iteration later.
    fn program() -> Program {
        let mut builder = ProgramBuilder::new(2);
        for number in 1..=4 {
            let first = number == 1;
            let sender =
                [Op::MarkProgress, BARRIER].into_iter().chain((!first).then(|| Op::P2p(P2p::Wait(number - 1))));
            for op in sender.chain([send(number)]) {
                builder.push(0, Line::Op(op)).unwrap();
            }
            for op in [Op::MarkProgress, BARRIER].into_iter().chain((!first).then_some(RECV)) {
                builder.push(1, Line::Op(op)).unwrap();
            }
        }
        builder.build().unwrap()
    }

    fn window(from: u32, to: Option<u32>, repeat: bool) -> Window {
        let number = |value| NonZeroU32::new(value).unwrap();
        Window { from: number(from), to: to.map(number), repeat }
    }

    fn played(window: Window, rank: usize, most: usize) -> Vec<Op> {
        let mut source = cut(&program(), window).unwrap().ranks.swap_remove(rank);
        std::iter::from_fn(|| source.next_op().unwrap()).take(most).collect()
    }

    #[test]
    fn a_message_belongs_to_the_part_in_which_it_is_received() {
        // Iterations 2 and 3 receive what 1 and 2 send; what 3 sends is received beyond.
        let part = window(2, Some(3), false);
        let sender = [
            send(1),
            BARRIER,
            Op::P2p(P2p::Wait(1)),
            send(2),
            Op::MarkProgress,
            BARRIER,
            Op::P2p(P2p::Wait(2)),
            Op::MarkProgress,
        ];
        assert_eq!(played(part, 0, 99), sender);
        assert_eq!(played(part, 1, 99), [BARRIER, RECV, Op::MarkProgress, BARRIER, RECV, Op::MarkProgress]);
    }

    #[test]
    fn a_part_starts_over_with_what_is_open_at_its_beginning() {
        let part = window(3, Some(3), true);
        let pass = [send(2), BARRIER, Op::P2p(P2p::Wait(2)), Op::MarkProgress];
        assert_eq!(played(part, 0, 8), [pass.clone(), pass].concat());
    }

    #[test]
    fn parts_beyond_the_end_are_refused() {
        let refused = |window| cut(&program(), window).err().map(|error| error.to_string()).unwrap_or_default();
        assert_eq!(refused(window(5, None, false)), "from = \"5\": the trace has 4 iterations in rank 0");
        assert_eq!(refused(window(1, Some(4), false)), "to = \"4\": the trace has 3 whole iterations in rank 0");
        assert_eq!(refused(window(4, None, false)), "");
    }
}
