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
