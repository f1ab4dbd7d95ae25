//! The scan that reads ahead: which message each posted receive got, and what each non-blocking collective was.

use std::collections::HashMap;

use super::event::{Collective, Event, Events, Message};
use crate::lookahead::{Found, Outcome, Scan};

/// Follows the posted receives and non-blocking collectives of a rank to their completion.
#[derive(Clone)]
pub struct Completions {
    events: Events,
    posted: u64,
    /// The numbers of open ones, by request.
    open: HashMap<u64, u64>,
}

impl Completions {
    /// From the position of `events` on.
    pub fn new(events: Events) -> Self {
        Self { events, posted: 0, open: HashMap::new() }
    }
}

/// The message of a completed request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Got {
    /// A receive its message.
    Message(Message),
    /// A non-blocking collective its communicator and bytes.
    Collective(Collective),
}

impl Scan for Completions {
    type Answer = Got;

    fn next_outcome(&mut self) -> Found<Got> {
        while let Some((_, event)) = self.events.next()? {
            let outcome = match event {
                Event::IrecvRequest(request) | Event::CollectiveRequest(request) => {
                    self.open.insert(request, self.posted);
                    self.posted += 1;
                    None
                }
                Event::Irecv(message, request) => {
                    self.open.remove(&request).map(|n| (n, Outcome::Completed(Got::Message(message))))
                }
                Event::CollectiveComplete(collective, request) => {
                    self.open.remove(&request).map(|n| (n, Outcome::Completed(Got::Collective(collective))))
                }
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
