//! The phases of a lane of a collective: rings, chains, trees, exchanges in levels, all-to-all.

use std::sync::Arc;

use super::choice::Choice;
use super::layout::{Layout, RingPlace, TreePlace};
use super::{Algorithm, Protocol, Setup};
use crate::mpi::collective::algorithms::{Blocks, Call, Phase};
use crate::program::{CollectiveKind, Volume};

/// Two slices of a chunk are worth it from this size of the chunk on: a slice is 1/32 of its largest at least.
const SLICED: u64 = 65_536;
/// Bytes of NVLS of which each GPU reduces its part at once: 16 channels with chunks of 128 KiB (`nvls.cc`).
const NVLS_CHUNK: u64 = 16 * 131_072;
/// Threads of a channel times the bytes that each must have (`NCCL_*_THREAD_THRESHOLD`); fewer channels if it has less.
const LEAST_IN_CHANNEL: [u64; 3] = [512 * 8, 640 * 8, 512 * 64];

/// A lane of a collective as one rank sees it.
#[derive(Clone, Debug)]
pub(in crate::mpi) struct Schedule {
    setup: Arc<Setup>,
    layout: Arc<Layout>,
    call: Call,
    choice: Choice,
    channels: u32,
    /// Lanes of a ring, or of a tree.
    slices: u32,
    lane: u32,
    place: Place,
}

/// Where the rank is among those with which it exchanges data in this lane.
#[derive(Clone, Debug)]
enum Place {
    /// In a ring.
    Ring(RingPlace),
    /// In a ring that is cut before the first: position from the start of the chain.
    Chain(RingPlace, u32),
    Tree(Arc<TreePlace>),
    /// At the switch of a server.
    Switch,
    /// In two levels, each server with so many ranks.
    Levels(u32),
    /// Exchanges with all others; through GPUs of the own server, of which there are so many.
    Exchange(Option<u32>),
}

impl Schedule {
    /// The first lane. The call has more than one rank.
    pub fn new(setup: &Arc<Setup>, call: &Call, layout: &Arc<Layout>) -> Self {
        let blocks =
            matches!(call.kind, CollectiveKind::Allgather | CollectiveKind::ReduceScatter | CollectiveKind::Alltoall);
        let bytes = call.buffer().saturating_mul(if blocks && call.is_uniform() { call.size.into() } else { 1 });
        let choice = Choice::new(setup, layout, call.kind, bytes);
        let (setup, layout, call) = (Arc::clone(setup), Arc::clone(layout), call.clone());
        let ring_of_ll = choice.protocol == Protocol::Ll && choice.algorithm == Algorithm::Ring;
        let least = LEAST_IN_CHANNEL[choice.protocol.index()] * if ring_of_ll { u64::from(call.size) } else { 1 };
        let in_switch = choice.algorithm == Algorithm::Nvls;
        let most = if in_switch { 1 } else { setup.channels(&layout) };
        let channels = (bytes / least).clamp(1, most.into()) as u32;
        let chunk = match call.kind {
            CollectiveKind::Bcast | CollectiveKind::Reduce => bytes / u64::from(channels) / 2,
            _ => bytes / u64::from(channels) / u64::from(call.size),
        };
        let sliced = if in_switch { NVLS_CHUNK } else { SLICED };
        let slices = if choice.protocol == Protocol::Simple && chunk >= sliced { 2 } else { 1 };
        Self { setup, layout, call, choice, channels, slices, lane: 0, place: Place::Exchange(None) }.in_lane(0)
    }

    /// How many lanes the collective has.
    pub fn lanes(&self) -> u32 {
        match &self.place {
            Place::Exchange(None) => self.setup.nccl.p2p_channels.min(self.call.size - 1),
            Place::Exchange(Some(_)) => self.setup.nccl.p2p_channels.min(self.layout.servers()),
            Place::Tree(_) => 2 * self.channels * self.slices,
            _ => self.channels * self.slices,
        }
    }

    /// The same collective in another lane.
    pub fn in_lane(&self, lane: u32) -> Self {
        let rank = self.call.me();
        let (channel, size) = (lane % self.channels, self.call.size);
        let ring = || self.layout.ring(channel, rank);
        let place = match (self.call.kind, self.choice.algorithm) {
            (CollectiveKind::Alltoall, _) => {
                let relayed = self.setup.nccl.pxn && self.call.is_uniform() && self.layout.servers() > 1;
                Place::Exchange(self.layout.each().filter(|_| relayed))
            }
            (_, Algorithm::Tree) => {
                let tree = lane / self.channels % 2;
                Place::Tree(Arc::new(self.layout.tree(channel, tree, rank)))
            }
            (_, Algorithm::Nvls) => Place::Switch,
            (_, Algorithm::Hierarchical) => Place::Levels(self.layout.fewest()),
            (CollectiveKind::Bcast | CollectiveKind::Reduce, _) => {
                let ring = ring();
                let root = self.layout.ring(channel, self.call.root.0).position;
                let first = if self.call.kind == CollectiveKind::Bcast { root } else { (root + 1) % size };
                Place::Chain(ring, (ring.position + size - first) % size)
            }
            _ => Place::Ring(ring()),
        };
        Self { lane, place, ..self.clone() }
    }

    /// Time from the call until the first message is sent, ps.
    pub fn launch(&self) -> u64 {
        self.choice.launch(self.setup.nccl.software_thousandths)
    }

    /// Time after the messages of a phase have come until the next phase, ps.
    pub fn after(&self, phase: &Phase) -> u64 {
        let (own, _) = self.layout.place(self.call.me());
        let data = phase.receives.iter().filter(|from| match &self.place {
            Place::Chain(place, position) => *position > 0 && from.0 == place.previous,
            _ => true,
        });
        let servers = data.map(|from| self.layout.place(from.0).0);
        let (waits, network) = servers.fold((false, false), |(_, network), server| (true, network || server != own));
        if waits { self.choice.step(network, self.setup.nccl.software_thousandths) } else { 0 }
    }

    /// Writes phase `k` into an empty phase. False when the lane has ended before.
    pub fn phase(&self, k: u32, phase: &mut Phase) -> bool {
        let (lane, lanes) = (self.lane, self.lanes());
        let share = || Blocks::Split { total: self.call.buffer(), parts: lanes }.of(lane);
        match &self.place {
            Place::Ring(place) => self.ring(*place, share(), k, phase),
            Place::Chain(place, position) => self.chain(*place, *position, share(), k, phase),
            Place::Tree(place) => self.tree(place, share(), k, phase),
            Place::Switch => self.switch(share(), k, phase),
            Place::Levels(each) => self.levels(*each, share(), k, phase),
            Place::Exchange(None) => self.exchange(lanes, k, phase),
            Place::Exchange(Some(each)) => self.relayed(*each, lanes, k, phase),
        }
    }

    /// Sends and receives so many bytes of data, with the flags of the protocol; nothing if there are none.
    fn send(&self, phase: &mut Phase, to: u32, bytes: u64) {
        phase.send(to, self.choice.protocol.wire(bytes));
    }

    /// The pieces of a share that are passed on one after another, when `parts` chunks of each are under way at once.
    fn pieces(&self, share: u64, parts: u32) -> Blocks<'static> {
        let step = self.choice.protocol.step();
        // A chunk of a ring has four steps with Simple, so a slice has two.
        let chunk = if self.choice.protocol == Protocol::Simple { 2 * step } else { step };
        let loops = share.div_ceil(chunk * u64::from(parts)).max(1);
        Blocks::Split { total: share, parts: u32::try_from(loops).unwrap_or(u32::MAX) }
    }

    fn ring(&self, place: RingPlace, share: u64, k: u32, phase: &mut Phase) -> bool {
        let size = self.call.size;
        let RingPlace { position, next, previous } = place;
        let reduces_all = self.call.kind == CollectiveKind::Allreduce;
        let pieces = self.pieces(share, if reduces_all { size } else { 1 });
        let steps = if reduces_all { 2 * (size - 1) } else { size - 1 };
        if k / steps >= pieces.parts() {
            return false;
        }
        let piece = pieces.of(k / steps);
        let bytes = |back: u32| match self.call.kind {
            CollectiveKind::Allreduce => {
                Blocks::Split { total: piece, parts: size }.of((position + 2 * size - back) % size)
            }
            _ => piece,
        };
        let step = k % steps;
        // The second half begins with the chunk that the first has completed: the one after the rank's own.
        self.send(phase, next, bytes(step));
        phase.receive(previous, bytes(step + 1));
        true
    }

    /// A chain in which each rank passes a chunk on while it receives the next. By an empty message it tells the rank before that a
    /// chunk has come, so that a lane has two chunks on a link at most.
    fn chain(&self, place: RingPlace, position: u32, share: u64, k: u32, phase: &mut Phase) -> bool {
        let chunks = Blocks::Split {
            total: share,
            parts: u32::try_from(share.div_ceil(self.choice.protocol.step()).max(1)).unwrap_or(u32::MAX),
        };
        let (count, first, last) = (chunks.parts(), position == 0, position + 1 == self.call.size);
        if !first && k < count {
            phase.receive(place.previous, chunks.of(k));
        }
        let passed = if first { Some(k) } else { k.checked_sub(1) };
        if let Some(chunk) = passed.filter(|chunk| !last && *chunk < count) {
            self.send(phase, place.next, chunks.of(chunk));
        }
        if !first && (1..=count).contains(&k) {
            phase.send_even_empty(place.previous, 0);
        }
        if passed.is_some_and(|chunk| !last && (1..=count).contains(&chunk)) {
            phase.receive_even_empty(place.next);
        }
        k <= count + 1
    }

    /// A chunk goes up while others go down. What a rank receives from above is behind by two phases for each rank above it: it has
    /// to go up to the root and come back.
    fn tree(&self, place: &TreePlace, share: u64, k: u32, phase: &mut Phase) -> bool {
        let chunks = Blocks::Split {
            total: share,
            parts: u32::try_from(share.div_ceil(self.tree_chunk()).max(1)).unwrap_or(u32::MAX),
        };
        let count = chunks.parts();
        let due = |delay: u32| k.checked_sub(delay).filter(|chunk| *chunk < count).map(|chunk| chunks.of(chunk));
        let behind = 2 * place.depth;
        let below = |phase: &mut Phase, bytes: Option<u64>, act: &dyn Fn(&mut Phase, u32, u64)| {
            place.children.iter().for_each(|child| _ = bytes.map(|bytes| act(phase, *child, bytes)));
        };
        below(phase, due(0), &|phase, child, bytes| phase.receive(child, bytes));
        if let Some(parent) = place.parent {
            due(behind).into_iter().for_each(|bytes| phase.receive(parent, bytes));
            due(1).into_iter().for_each(|bytes| self.send(phase, parent, bytes));
        }
        below(phase, due(behind + 1), &|phase, child, bytes| self.send(phase, child, bytes));
        k <= count + behind
    }

    fn tree_chunk(&self) -> u64 {
        let mut chunk = self.choice.protocol.step();
        if self.choice.protocol != Protocol::Ll128 {
            return chunk;
        }
        let servers = self.layout.servers();
        let each = f64::from(self.call.size) / f64::from(servers);
        let steps = 1.0 + f64::from(servers.ilog2()) + 0.1 * each;
        for (factor, least) in [(64.0, 131_072), (16.0, 32_768)] {
            while ((self.call.buffer() / (u64::from(self.channels) * chunk)) as f64) < steps * factor / each
                && chunk > least
            {
                chunk /= 2;
            }
        }
        chunk
    }

    /// The switch of the server reduces and replicates (`multimem.ld_reduce`, `multimem.st`): it reads the buffer from each of n GPUs,
    /// gives each a sum, its part of n, takes that back and writes all parts to all GPUs. So the buffer and one part of it leave every
    /// GPU, and as much comes in. The engine has no such switch: these bytes are spread over messages between all pairs.
    fn switch(&self, share: u64, k: u32, phase: &mut Phase) -> bool {
        let size = self.call.size;
        let parts = u32::try_from(share.div_ceil(NVLS_CHUNK * u64::from(size)).max(1)).unwrap_or(u32::MAX);
        if k >= parts {
            return false;
        }
        let piece = Blocks::Split { total: share, parts }.of(k);
        let part = Blocks::Split { total: piece, parts: size }.of(self.call.me());
        let messages = Blocks::Split { total: piece + part, parts: size - 1 };
        for distance in 1..size {
            phase.receive_even_empty(self.call.before(distance));
            phase.send_even_empty(self.call.after(distance), messages.of(distance - 1));
        }
        true
    }

    /// Rings within servers and rings of the GPUs of one number.
    fn levels(&self, each: u32, share: u64, k: u32, phase: &mut Phase) -> bool {
        let servers = self.layout.servers();
        let (server, number) = self.layout.place(self.call.me());
        let reduces_all = self.call.kind == CollectiveKind::Allreduce;
        let pieces = self.pieces(share, if reduces_all { each } else { 1 });
        let (within, between) = (each - 1, servers - 1);
        let steps = if reduces_all { 2 * (within + between) } else { within + between };
        if k / steps >= pieces.parts() {
            return false;
        }
        let (piece, step) = (pieces.of(k / steps), k % steps);
        let around = |phase: &mut Phase, sent: u64, received: u64| {
            self.send(phase, self.layout.rank(server, (number + 1) % each), sent);
            phase.receive(self.layout.rank(server, (number + each - 1) % each), received);
        };
        let across = |phase: &mut Phase, sent: u64, received: u64| {
            self.send(phase, self.layout.rank((server + 1) % servers, number), sent);
            phase.receive(self.layout.rank((server + servers - 1) % servers, number), received);
        };
        let whole = piece * u64::from(servers);
        match self.call.kind {
            CollectiveKind::Allreduce => {
                let chunk = |number: u32| Blocks::Split { total: piece, parts: each }.of(number % each);
                let part = |place: u32| Blocks::Split { total: chunk(number), parts: servers }.of(place % servers);
                if step < within {
                    around(phase, chunk(number + 2 * each - 1 - step), chunk(number + 2 * each - 2 - step));
                } else if step < within + 2 * between {
                    let back = 2 * servers - (step - within);
                    across(phase, part(server + back), part(server + back - 1));
                } else {
                    let back = 2 * each - (step - within - 2 * between);
                    around(phase, chunk(number + back), chunk(number + back - 1));
                }
            }
            CollectiveKind::Allgather if step < between => across(phase, piece, piece),
            CollectiveKind::Allgather => around(phase, whole, whole),
            _ if step < within => around(phase, whole, whole),
            _ => across(phase, piece, piece),
        }
        true
    }

    /// Bytes from this rank to another.
    fn block_for(&self, to: u32) -> u64 {
        match &self.call.volume {
            Volume::Uniform(bytes) => bytes.0,
            Volume::PerRank(blocks) => blocks[to as usize],
        }
    }

    /// One partner after another, the lanes' at once.
    fn exchange(&self, lanes: u32, k: u32, phase: &mut Phase) -> bool {
        let Some(distance) =
            k.checked_mul(lanes).map(|first| first + self.lane + 1).filter(|far| *far < self.call.size)
        else {
            return false;
        };
        let (to, from) = (self.call.after(distance), self.call.before(distance));
        let bytes = self.block_for(to);
        if bytes > 0 || !self.call.is_uniform() {
            phase.receive_even_empty(from);
            phase.send_even_empty(to, self.choice.protocol.wire(bytes));
        }
        true
    }

    /// PXN: what goes to the GPUs of another server goes first to those of the same numbers on the own server, then, all that such a
    /// GPU has collected, through its adapter.
    fn relayed(&self, each: u32, lanes: u32, k: u32, phase: &mut Phase) -> bool {
        let servers = self.layout.servers();
        let distance = self.lane + k / 2 * lanes;
        if distance >= servers {
            return false;
        }
        let (server, number) = self.layout.place(self.call.me());
        let block = self.block_for(0);
        if k.is_multiple_of(2) {
            for step in 1..each {
                self.send(phase, self.layout.rank(server, (number + step) % each), block);
                phase.receive(self.layout.rank(server, (number + each - step) % each), block);
            }
        } else if distance > 0 {
            let all = block * u64::from(each);
            self.send(phase, self.layout.rank((server + distance) % servers, number), all);
            phase.receive(self.layout.rank((server + servers - distance) % servers, number), all);
        }
        true
    }
}
