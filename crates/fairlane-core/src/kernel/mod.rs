//! Time and what is due when. Knows nothing of networks.
//!
//! There is no event queue. Nothing that one vertex of the fabric sends can reach another sooner than one link latency
//! later, so time advances in *windows* that are not longer than the smallest link latency: when a window opens, everything
//! that will happen to a vertex in it is already known, and each vertex is run alone through the window, in any order. What
//! remains is to know which vertices have anything to do in which window: the [`Calendar`].

mod barrier;
mod bits;
mod calendar;
mod index;
mod mailbox;
mod pool;
mod prefetch;

pub use barrier::{Barrier, Guard};
use bits::Bits;
pub use bits::Mask;
pub use calendar::Calendar;
pub use index::{Index, Indexed, NONE};
pub use mailbox::Mailboxes;
pub use pool::Pool;
pub use prefetch::{prefetch, prefetch_at};
