//! Calls that make and free communicators and groups, as operations.

use std::sync::Arc;

use fairlane_core::program::{Comm, CommHandle, Op};

use super::calls::Call;
use super::communicators::{Combine, Group, New};
use super::cursor::Fault;
use super::record::Record;
use super::source::RankReader;

impl RankReader {
    pub(super) fn communicators(&mut self, record: &Record) -> Result<(), Fault> {
        let n = |i: usize| record.number(i);
        match record.call() {
            Call::CommSize => self.state.communicators.learn_size(n(0), n(1))?,
            Call::CommRank => self.state.communicators.learn_rank(n(0), n(1)),
            Call::CommDup => {
                let comm = self.state.communicators.handle(n(0))?;
                let New { handle: new, replaced } = self.state.communicators.duplicate(n(0), n(1))?;
                self.made(Op::Comm(Comm::Dup { comm, new }), replaced);
            }
            Call::CommSplit => {
                let comm = self.state.communicators.handle(n(0))?;
                let New { handle: new, replaced } = self.state.communicators.split(n(3), None, None);
                self.made(Op::Comm(Comm::Split { comm, new, color: (n(1) >= 0).then_some(n(1)), key: n(2) }), replaced);
            }
            Call::CommCreate => {
                let group = self.state.communicators.group(n(1))?.clone();
                self.create(n(0), &group, n(2), None)?;
            }
            Call::CartCreate => {
                let dims: Arc<[i32]> = record.list(0).into();
                let size = dims.iter().try_fold(1_i32, |size, &extent| size.checked_mul(extent));
                self.create_first(n(0), size.ok_or("a topology of too many ranks")?, n(3), Some(dims))?;
            }
            Call::GraphCreate => self.create_first(n(1), n(2), n(4), None)?,
            Call::CartSub => self.cart_sub(record)?,
            Call::CommFree => {
                if let Some(handle) = self.state.communicators.free(n(0))? {
                    self.out.op(Op::Comm(Comm::Free(handle)));
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// A communicator was made, perhaps under a handle whose communicator was freed without a record.
    fn made(&mut self, op: Op, replaced: Option<CommHandle>) {
        self.out.op(op);
        if let Some(handle) = replaced {
            self.out.op(Op::Comm(Comm::Free(handle)));
            self.state.communicators.release(handle);
        }
    }

    fn create(&mut self, parent: i32, group: &Group, id: i32, dims: Option<Arc<[i32]>>) -> Result<(), Fault> {
        let comm = self.state.communicators.handle(parent)?;
        let (New { handle: new, replaced }, members) = self.state.communicators.create(parent, group, id, dims)?;
        self.made(Op::Comm(Comm::Create { comm, new, members }), replaced);
        Ok(())
    }

    /// A communicator of the first ranks of another. A library that reorders ranks does not say how, so they stay.
    fn create_first(&mut self, parent: i32, size: i32, id: i32, dims: Option<Arc<[i32]>>) -> Result<(), Fault> {
        let size = self.state.communicators.possible(size)?;
        let ranks: Vec<i32> = (0..size.cast_signed()).collect();
        let group = self.state.communicators.group_of(parent)?.pick(&ranks)?;
        self.create(parent, &group, id, dims)
    }

    /// `MPI_Cart_sub` is a split: the colour is the place in the dimensions that go, the key that in those that stay.
    fn cart_sub(&mut self, record: &Record) -> Result<(), Fault> {
        let (parent, id, remain) = (record.number(1), record.number(2), record.list(0));
        let (coordinates, dims) = self.state.communicators.get(parent)?.coordinates()?;
        let (mut color, mut key) = (0_i32, 0_i32);
        for ((&coordinate, &extent), &stays) in coordinates.iter().zip(dims.iter()).zip(remain) {
            let place = if stays != 0 { &mut key } else { &mut color };
            *place = *place * extent + coordinate;
        }
        let left = dims.iter().zip(remain).filter(|(_, stays)| **stays != 0).map(|(&extent, _)| extent).collect();
        let comm = self.state.communicators.handle(parent)?;
        let New { handle: new, replaced } = self.state.communicators.split(id, u32::try_from(key).ok(), Some(left));
        self.made(Op::Comm(Comm::Split { comm, new, color: Some(color), key }), replaced);
        Ok(())
    }

    pub(super) fn groups(&mut self, record: &Record) -> Result<(), Fault> {
        let n = |i: usize| record.number(i);
        let communicators = &mut self.state.communicators;
        let combine = match record.call() {
            Call::GroupUnion => Some(Combine::Union),
            Call::GroupIntersection => Some(Combine::Intersection),
            Call::GroupDifference => Some(Combine::Difference),
            _ => None,
        };
        if let Some(how) = combine {
            let group = communicators.group(n(0))?.combine(communicators.group(n(1))?, how)?;
            communicators.set_group(n(2), group);
            return Ok(());
        }
        match record.call() {
            Call::GroupSize => communicators.learn_group_size(n(0), n(1))?,
            Call::GroupFree => communicators.free_group(n(0)),
            Call::CommGroup => {
                let group = communicators.group_of(n(0))?;
                communicators.set_group(n(1), group);
            }
            Call::GroupIncl | Call::GroupExcl | Call::GroupRangeIncl | Call::GroupRangeExcl => {
                let ranges = matches!(record.call(), Call::GroupRangeIncl | Call::GroupRangeExcl);
                let ranks = if ranges { expand(record.lists_from(0))? } else { record.list(0).to_vec() };
                let keep = matches!(record.call(), Call::GroupIncl | Call::GroupRangeIncl);
                let group = communicators.group(n(0))?;
                let group = if keep { group.pick(&ranks)? } else { group.without(&ranks)? };
                communicators.set_group(n(2), group);
            }
            _ => {}
        }
        Ok(())
    }
}

/// The ranks of a list of ranges: first, last, stride.
fn expand(ranges: &[Vec<i32>]) -> Result<Vec<i32>, Fault> {
    /// More members than any communicator has.
    const TOO_MANY: usize = 1 << 24;
    let mut ranks = Vec::new();
    for range in ranges {
        let &[first, last, stride] = range.as_slice() else {
            return Err(format!("a range of {} numbers", range.len()));
        };
        if stride == 0 {
            return Err("a range with stride 0".to_owned());
        }
        let (mut rank, last, stride) = (i64::from(first), i64::from(last), i64::from(stride));
        while (stride > 0 && rank <= last) || (stride < 0 && rank >= last) {
            ranks.push(i32::try_from(rank).map_err(|_| format!("rank {rank} in a range"))?);
            rank += stride;
            if ranks.len() > TOO_MANY {
                return Err(format!("the range from {first} to {last}"));
            }
        }
    }
    Ok(ranks)
}
