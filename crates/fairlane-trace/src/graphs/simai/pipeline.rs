//! The pipeline of a workload file of SimAI.
//!
//! The layers are those of a stage, of all its micro-batches, and do not say when stages exchange. SimAI's packets leave the pipeline
//! out; its report adds two times to that of the pass (`Layer.cc`), which are executed here: the bubble, of the time of the layers but
//! the embedding `(pp - 1) / (ga vpp)`, before the pass, and `2 ga vpp` exchanges of `pp_comm` bytes one after another, half of them
//! after the forward pass to the next stage, half after the backward pass to the one before. The bubble is of computations only: SimAI's
//! has the waiting for collectives, too. Stages are blocks of ranks; with `vpp` above 1 the last exchanges with the first.

use fairlane_core::ids::Rank;
use fairlane_core::program::SendMode;
use fairlane_core::program::graph::{After, Node};
use fairlane_core::units::{Bytes, Picoseconds};

use super::Writer;

/// A pipeline of several stages.
#[derive(Clone, Copy)]
pub(super) struct Pipeline {
    pub stages: u32,
    /// Parts of the model on each stage, one after another (`vpp`).
    pub parts: u64,
    pub micro_batches: u64,
    /// Bytes between stages.
    pub bytes: u64,
}

impl Pipeline {
    /// Exchanges of a GPU in one direction.
    pub const fn exchanges(self) -> u64 {
        self.parts.saturating_mul(self.micro_batches)
    }

    /// The time that a stage waits for others, for so long a computation, ps, and the factor on its time.
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "saturates"
    )]
    pub fn bubble(self, span: u64, scale: f64) -> Picoseconds {
        let waits = u128::from(span) * u128::from(self.stages - 1) / u128::from(self.exchanges());
        Picoseconds((waits as f64 * scale).round() as u64)
    }

    /// The GPU one stage further, or back, of so many GPUs.
    fn neighbor(self, rank: u32, gpus: u32, forward: bool) -> Option<u32> {
        let each = gpus / self.stages;
        let stage = rank / each;
        let end = if forward { self.stages - 1 } else { 0 };
        let wraps = stage == end;
        let other = if forward { (stage + 1) % self.stages } else { (stage + self.stages - 1) % self.stages };
        (!wraps || self.parts > 1).then_some(other * each + rank % each)
    }
}

impl Writer<'_> {
    /// Exchanges with the stages before and after this one, one after another.
    pub(super) fn exchange(&mut self, forward: bool) {
        let Some(pipeline) = self.sizes.pipeline else { return };
        let [to, from] = [forward, !forward].map(|ahead| pipeline.neighbor(self.rank, self.sizes.gpus, ahead));
        let tag = i32::from(forward);
        for _ in 0..pipeline.exchanges() {
            let send =
                to.map(|to| Node::Send { to: Rank(to), bytes: Bytes(pipeline.bytes), tag, mode: SendMode::Eager });
            let receive = from.map(|from| Node::Recv { from: Some(Rank(from)), tag: Some(tag) });
            let last = self.last;
            let both = [send.map(|node| (node, "pp send")), receive.map(|node| (node, "pp recv"))];
            let both = both.map(|node| node.and_then(|(node, kind)| self.add(node, 1, kind, last)));
            let joined = self.recorded.graph.ranks.last_mut().map(|rank| {
                let joined = rank.node(Node::Join);
                both.into_iter().flatten().for_each(|node| rank.depends(joined, node, After::End));
                joined
            });
            if let Some(places) = self.recorded.places.last_mut() {
                places.push(1);
            }
            self.last = joined;
        }
    }
}
