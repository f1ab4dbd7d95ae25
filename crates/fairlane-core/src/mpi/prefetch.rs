//! Prefetches the records that a host's rank will read; see [`crate::network::Prefetch`].

use super::MpiShard;
use super::comm::WORLD_CONTEXT;
use crate::ids::HostId;
use crate::kernel::{NONE, prefetch};
use crate::network::Prefetch;
use crate::program::{COMM_WORLD, Op, P2p};

/// So many of the requests of a wait are fetched ahead: of more, the last would push out the first.
const SOON: usize = 32;

impl Prefetch for MpiShard {
    #[inline(always)]
    fn prefetch<const STEP: u8>(&self, host: HostId) {
        let rank = self.messaging.residence.alone[host.index()];
        if rank == NONE {
            return;
        }
        let (state, source) = (&self.messaging.ranks[rank as usize], &self.sources[rank as usize]);
        match STEP {
            0 => {
                prefetch(&state.due);
                prefetch(&state.requests);
                prefetch(&state.matching);
                prefetch(&state.awaited);
                // The fields that are written most often.
                prefetch(&state.record.compute);
                prefetch(source);
            }
            1 => {
                state.matching.prefetch();
                if state.ends_wait_soon() {
                    prefetch(&state.awaited[..state.awaited.len().min(SOON)]);
                }
            }
            2 => {
                source.coming().iter().take(2).for_each(prefetch);
                if let Some((_, receive)) = state.matching.oldest() {
                    state.requests.prefetch(*receive);
                }
            }
            3 => {
                match source.coming().first() {
                    Some(Op::P2p(P2p::Isend { request, to, comm, .. })) => {
                        state.requests.prefetch(*request);
                        if *comm == COMM_WORLD {
                            state.matching.prefetch_number(WORLD_CONTEXT, to.0);
                        }
                    }
                    Some(Op::P2p(P2p::Irecv { request, .. })) => state.requests.prefetch(*request),
                    Some(Op::P2p(P2p::WaitAll(requests))) => prefetch(&requests[..requests.len().min(SOON)]),
                    _ => {}
                }
                if state.ends_wait_soon() {
                    state.awaited.iter().take(SOON).for_each(|slot| state.requests.prefetch(*slot));
                }
            }
            _ => {
                if let Some(Op::P2p(P2p::WaitAll(requests))) = source.coming().first() {
                    requests.iter().take(SOON).for_each(|slot| state.requests.prefetch(*slot));
                    source.coming()[1..].iter().take(4).for_each(prefetch);
                }
            }
        }
    }

    #[inline(always)]
    fn prefetch_message(&self, token: u32) {
        self.messaging.transfers.prefetch(self.messaging.naming.translate(token));
    }
}
