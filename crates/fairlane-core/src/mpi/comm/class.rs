//! The traffic class of a message, by the name of its communicator.

use crate::error::RunError;
use crate::mpi::collective;
use crate::mpi::comm::WORLD_CONTEXT;
use crate::mpi::messaging::Messaging;
use crate::mpi::p2p::transfer::Stage;
use crate::program::{CollectiveKind, CommHandle, NeighborKind, Op};
use crate::qos::classes::{ClassSet, Operation, WORLD};

impl Messaging {
    /// The number of the class of a message that `rank` sends for a transfer.
    #[cold]
    #[inline(never)]
    pub fn class_of(&self, rank: u32, transfer: u32, stage: Stage) -> Option<usize> {
        let transfer = &self.transfers[transfer];
        let operation = if transfer.collective() {
            collective::operation_of(transfer.envelope.tag)
        } else if stage > Stage::Datagram {
            Operation::OneSided
        } else {
            Operation::PointToPoint
        };
        let communicator = self.classes_of_context(rank, transfer.envelope.context & !1);
        self.levels.class(self.ranks[rank as usize].job, communicator, operation, transfer.bytes)
    }

    /// The classes that select messages of a communicator of `rank` or its window, by its context.
    fn classes_of_context(&self, rank: u32, context: u32) -> ClassSet {
        let named = self.ranks[rank as usize].more().and_then(|more| more.classes.get(&context));
        let name = (context == WORLD_CONTEXT).then_some(WORLD);
        named.copied().unwrap_or_else(|| self.levels.classes_of(name))
    }

    /// A communicator gets a name.
    pub fn name_communicator(&mut self, rank: u32, op: &Op, comm: CommHandle, name: &str) -> Result<(), Box<RunError>> {
        let context = self.communicator(rank, op, comm)?.context;
        if self.levels.have_classes(self.ranks[rank as usize].job) {
            let classes = self.levels.classes_of(Some(name));
            self.rank(rank).needed().classes.insert(context, classes);
        }
        Ok(())
    }

    /// A copy of a communicator, or a window over it, has the classes of the original.
    pub fn keep_classes(&mut self, rank: u32, original: u32, copy: u32) {
        if self.levels.have_classes(self.ranks[rank as usize].job) {
            let classes = self.classes_of_context(rank, original);
            self.rank(rank).needed().classes.insert(copy, classes);
        }
    }
}

impl From<CollectiveKind> for Operation {
    fn from(kind: CollectiveKind) -> Self {
        match kind {
            CollectiveKind::Barrier => Self::Barrier,
            CollectiveKind::Bcast => Self::Bcast,
            CollectiveKind::Reduce => Self::Reduce,
            CollectiveKind::Allreduce => Self::Allreduce,
            CollectiveKind::Gather => Self::Gather,
            CollectiveKind::Scatter => Self::Scatter,
            CollectiveKind::Allgather => Self::Allgather,
            CollectiveKind::Alltoall => Self::Alltoall,
            CollectiveKind::ReduceScatter => Self::ReduceScatter,
            CollectiveKind::Scan => Self::Scan,
        }
    }
}

impl From<NeighborKind> for Operation {
    fn from(kind: NeighborKind) -> Self {
        match kind {
            NeighborKind::Allgather => Self::NeighborAllgather,
            NeighborKind::Alltoall => Self::NeighborAlltoall,
        }
    }
}
