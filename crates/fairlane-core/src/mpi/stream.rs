//! The operations of a rank, as the engine keeps them.

use crate::program::script::Player;
use crate::program::stepped::Stepped;
use crate::program::{Op, Source};

/// A rank's operations: a script, in place, which saves a look into memory for each resumption, or any other source.
#[derive(Clone)]
pub(super) enum Stream {
    Script(Player),
    Other(Box<dyn Source>),
}

const _: () = assert!(size_of::<Stream>() == 64, "a cache line");

impl Stream {
    pub fn new(source: Box<dyn Source>) -> Self {
        match source.player() {
            Some(player) => Self::Script(player.clone()),
            None => Self::Other(source),
        }
    }

    /// See [`Source::ahead`].
    #[inline(always)]
    pub fn ahead(&mut self) -> Result<&[Op], String> {
        match self {
            Self::Script(player) => player.ahead(),
            Self::Other(source) => {
                // Unwrapped here, so that the result of a script stays in registers.
                let ops = source.ahead()?;
                Ok(ops)
            }
        }
    }

    /// See [`Source::pass`].
    #[inline(always)]
    pub fn pass(&mut self, count: usize) {
        match self {
            Self::Script(player) => player.pass(count),
            Self::Other(source) => source.pass(count),
        }
    }

    /// See [`Source::current`].
    pub fn current(&self) -> Option<&Op> {
        match self {
            Self::Script(player) => player.current(),
            Self::Other(source) => source.current(),
        }
    }

    /// See [`Source::stepped`].
    pub fn stepped(&mut self) -> Option<&mut Stepped> {
        match self {
            Self::Script(_) => None,
            Self::Other(source) => source.stepped(),
        }
    }

    /// See [`Source::waits_for`].
    pub fn waits_for(&self) -> Option<String> {
        match self {
            Self::Script(_) => None,
            Self::Other(source) => source.waits_for(),
        }
    }

    /// See [`Player::coming`]. What other sources yield next is not known ahead.
    #[inline(always)]
    pub fn coming(&self) -> &[Op] {
        match self {
            Self::Script(player) => player.coming(),
            Self::Other(_) => &[],
        }
    }
}
