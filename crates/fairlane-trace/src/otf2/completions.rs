//! The scan that reads ahead: which message each posted receive got.

use std::collections::HashMap;

use super::event::{Event, Events, Message};
use crate::lookahead::{Found, Outcome, Scan};

/// Follows the posted receives of a rank to their completion.
#[derive(Clone)]
pub struct Completions {
    events: Events,
    posted: u64,
    /// The open receives' numbers, by request.
    open: HashMap<u64, u64>,
}

impl Completions {
    /// From the position of `events` on.
    pub fn new(events: Events) -> Self {
        Self { events, posted: 0, open: HashMap::new() }
    }
}

impl Scan for Completions {
    type Answer = Message;

    fn next_outcome(&mut self) -> Found<Message> {
        while let Some((_, event)) = self.events.next()? {
            let outcome = match event {
                Event::IrecvRequest(request) => {
                    self.open.insert(request, self.posted);
                    self.posted += 1;
                    None
                }
                Event::Irecv(message, request) => self.open.remove(&request).map(|n| (n, Outcome::Completed(message))),
                Event::RequestCancelled(request) => self.open.remove(&request).map(|n| (n, Outcome::Cancelled)),
                _ => None,
            };
            if outcome.is_some() {
                return Ok(outcome);
            }
        }
        Ok(None)
    }
}
