//! Sizes of datatypes.
//!
//! A file lists the size that each datatype number had when it was first used. Numbers are reused, so datatypes that
//! the program builds are followed through the calls that build them; Fortran's datatypes and all others come from the
//! list.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::calls::Call;
use super::cursor::Fault;
use super::record::Record;

/// The first number of a datatype that C does not predefine.
const FIRST_USER_DATATYPE: usize = 28;

/// `MPI_DATATYPE_NULL` and the number that stands for no datatype at all.
const LAST_NULL_DATATYPE: i32 = 1;

/// The sizes of the predefined datatypes on 64-bit Unix machines, for files without a list and for entries that an MPI
/// library leaves empty because two names are the same datatype.
const PREDEFINED: [u64; FIRST_USER_DATATYPE] =
    [0, 0, 1, 1, 1, 1, 4, 2, 2, 4, 4, 8, 8, 4, 8, 16, 8, 8, 8, 1, 0, 0, 8, 12, 12, 6, 8, 20];

/// The sizes that hold at a rank's current record.
#[derive(Clone)]
pub struct Sizes {
    listed: Arc<[i32]>,
    built: FxHashMap<i32, u64>,
}

impl Sizes {
    /// From the list of a file.
    pub fn new(listed: Arc<[i32]>) -> Self {
        Self { listed, built: FxHashMap::default() }
    }

    fn size(&self, datatype: i32) -> Option<u64> {
        if let Some(size) = self.built.get(&datatype) {
            return Some(*size);
        }
        let index = usize::try_from(datatype).ok()?;
        let listed = self.listed.get(index).and_then(|&size| u64::try_from(size).ok());
        match (listed, PREDEFINED.get(index)) {
            (Some(size), _) if size > 0 => Some(size),
            (_, Some(size)) => Some(*size),
            (listed, None) => listed,
        }
    }

    /// The bytes of `count` items.
    pub fn bytes(&self, count: i32, datatype: i32) -> Result<u64, Fault> {
        let count = u64::try_from(count).map_err(|_| format!("a count of {count}"))?;
        if count == 0 {
            return Ok(0);
        }
        let size = self.size(datatype).ok_or_else(|| format!("the size of datatype {datatype} is not in the file"))?;
        count.checked_mul(size).ok_or_else(|| format!("{count} items of {size} bytes"))
    }

    /// Whether a datatype is none: the program passed `MPI_IN_PLACE` beside it, or nothing at all.
    pub const fn is_null(datatype: i32) -> bool {
        datatype <= LAST_NULL_DATATYPE
    }

    /// Follows the calls that build and free datatypes.
    pub fn follow(&mut self, record: &Record) {
        let n = &record.numbers;
        let product = |factors: &[i32]| factors.iter().try_fold(1_u64, |p, &f| p.checked_mul(u64::try_from(f).ok()?));
        let sum = |terms: &[i32]| terms.iter().try_fold(0_u64, |s, &t| s.checked_add(u64::try_from(t).ok()?));
        let last = n.len().saturating_sub(1);
        let (items, old) = match record.call() {
            Call::TypeSize => {
                self.built.extend(u64::try_from(n[1]).ok().map(|size| (n[0], size)));
                return;
            }
            Call::TypeFree => {
                self.built.remove(&n[0]);
                return;
            }
            Call::TypeStruct => {
                let parts = record.list(0).iter().zip(record.lists_from(1).last().map_or(&[][..], Vec::as_slice));
                let total = parts.map(|(&count, &datatype)| self.bytes(count, datatype)).sum::<Result<u64, Fault>>();
                self.built.extend(total.ok().map(|size| (n[last], size)));
                return;
            }
            Call::TypeContiguous => (product(&n[..1]), n[1]),
            Call::TypeVector => (product(&n[..2]), n[last - 1]),
            Call::TypeIndexed => (sum(record.list(0)), n[last - 1]),
            Call::TypeSubarray => (product(record.list(1)), n[last - 1]),
            Call::TypeSame => (Some(1), n[0]),
            _ => return,
        };
        let size = items.zip(self.size(old)).and_then(|(items, size)| items.checked_mul(size));
        self.built.extend(size.map(|size| (n[last], size)));
    }
}
