//! Collective calls of a rank as operations. What a non-blocking one is becomes known when it completes.

use fairlane_core::ids::Rank;
use fairlane_core::program::{self, CollectiveKind, CommHandle, Op, Volume};
use fairlane_core::units::Bytes;

use super::collectives::{Operation, operation, volume};
use super::completions::Got;
use super::definitions::Members;
use super::event::Collective;
use super::source::RankReader;
use crate::lookahead::Outcome;

/// A collective operation of the program.
struct Called {
    kind: CollectiveKind,
    comm: CommHandle,
    root: Rank,
    volume: Volume,
    /// It stands for making a communicator, and is no collective of the application's own.
    makes: bool,
}

impl RankReader {
    pub(super) fn collective(&mut self, event: &Collective) -> Result<(), String> {
        if let Some(Called { kind, comm, root, volume, makes }) = self.called(event)? {
            self.emit(Op::Collective(program::Collective::Blocking { kind, comm, root, volume }), makes);
        }
        Ok(())
    }

    /// A non-blocking collective starts: its completion, further on in the trace, has communicator and bytes.
    pub(super) fn start_collective(&mut self, request: u64) -> Result<(), String> {
        self.note_request();
        self.start_request(request, None);
        let Outcome::Completed(Got::Collective(event)) = self.outcome()? else {
            return Err("its completion, which has its communicator and bytes, is not recorded".to_owned());
        };
        if let Some(Called { kind, comm, root, volume, makes }) = self.called(&event)? {
            let own = self.take_request();
            self.start_request(request, Some(own));
            self.emit(
                Op::Collective(program::Collective::Nonblocking { kind, comm, root, volume, request: own }),
                makes,
            );
        }
        Ok(())
    }

    fn emit(&mut self, op: Op, makes: bool) {
        if makes {
            self.out.unmarked(op);
        } else {
            self.out.op(op);
        }
    }

    /// The meaning of an event for the program; nothing if it frees a communicator.
    fn called(&mut self, event: &Collective) -> Result<Option<Called>, String> {
        let none = || format!("operation {} on a communicator is not known", event.operation);
        let (_, operation) = operation(event.operation).ok_or_else(none)?;
        if operation == Operation::Free {
            return Ok(None);
        }
        let comm = self.handle(event.comm)?;
        let Operation::Collective(kind, sizes) = operation else {
            // The cost of making a communicator by the model; the communicator itself is defined by its first use.
            let split = self.call().is_some_and(|region| region.name.starts_with("MPI_Comm_split"));
            let (kind, bytes) = if split { (CollectiveKind::Allgather, 8) } else { (CollectiveKind::Allreduce, 4) };
            let volume = Volume::Uniform(Bytes(bytes));
            return Ok(Some(Called { kind, comm, root: Rank(0), volume, makes: true }));
        };
        let (members, me) = self.place_in(event.comm);
        let root = Rank(if event.root < members { event.root } else { 0 });
        let volume = volume(sizes, event, u64::from(members), me == Some(root.0));
        Ok(Some(Called { kind, comm, root, volume, makes: false }))
    }

    /// A communicator's size, and this rank's rank in it.
    fn place_in(&self, comm: u32) -> (u32, Option<u32>) {
        let definitions = self.definitions();
        match definitions.communicators.get(&comm).map(|c| &c.members) {
            Some(Members::World) => (u32::try_from(definitions.ranks.len()).unwrap_or(u32::MAX), Some(self.rank())),
            Some(Members::These(list)) => {
                let me = (0..).zip(list.iter()).find(|(_, member)| member.0 == self.rank()).map(|(me, _)| me);
                (u32::try_from(list.len()).unwrap_or(u32::MAX), me)
            }
            _ => (1, Some(0)),
        }
    }
}
