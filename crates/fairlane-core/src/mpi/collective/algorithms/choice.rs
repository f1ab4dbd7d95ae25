//! The algorithm of a call: the one asked for by name, else MPICH's default.
//!
//! The rules are those of MPICH 3.3 to 4.x (of 3.3 for allreduce) for commutative operators and communicators of one
//! level, with the default values of its control variables (`MPIR_CVAR_BCAST_SHORT_MSG_SIZE` and so on). `b` is the
//! whole buffer of bcast, reduce and allreduce, else the block per rank; `T` is all blocks together; `n` is the number
//! of ranks.
//!
//! | kind | algorithm |
//! |---|---|
//! | barrier | `dissemination` |
//! | bcast | b < 12288 or n < 8: `binomial`; b < 524288 and n a power of two: `scatter_recursive_doubling`; else `scatter_ring` |
//! | reduce | b <= 2048 or fewer elements than 2^floor(log2 n): `binomial`; else `rabenseifner` |
//! | allreduce | b <= 2048 or fewer elements than 2^floor(log2 n): `recursive_doubling`; else `rabenseifner` |
//! | gather, scatter | `binomial`; gatherv, scatterv: `linear` |
//! | allgather(v) | T < 524288 and n a power of two: `recursive_doubling`; T < 81920: `bruck`; else `ring` |
//! | alltoall | b <= 256 and n >= 8: `bruck`; b <= 32768: `scattered`; else `pairwise`; alltoallv: `scattered` |
//! | reduce_scatter | T < 524288: `recursive_halving`; else `pairwise` |
//! | scan | `recursive_doubling` |
//!
//! A call knows bytes and not elements; an element is taken to have eight bytes.

use std::collections::BTreeMap;

use super::{
    Algorithm, Call, Collectives, allgather_bruck, allgather_recursive_doubling, allgather_ring,
    allreduce_rabenseifner, allreduce_recursive_doubling, alltoall_bruck, alltoall_pairwise, alltoall_scattered,
    barrier_dissemination, bcast_binomial, bcast_scatter_recursive_doubling, bcast_scatter_ring, gather_binomial,
    gather_linear, reduce_binomial, reduce_rabenseifner, reduce_scatter_pairwise, reduce_scatter_recursive_halving,
    scan_recursive_doubling, scatter_binomial, scatter_linear,
};
use crate::error::BuildError;
use crate::program::CollectiveKind;
use crate::table::{self, Kind, Table};

const BCAST_SHORT: u64 = 12_288;
const BCAST_LONG: u64 = 524_288;
const BCAST_MIN_RANKS: u32 = 8;
const REDUCE_SHORT: u64 = 2_048;
const ALLGATHER_SHORT: u64 = 81_920;
const ALLGATHER_LONG: u64 = 524_288;
const ALLTOALL_SHORT: u64 = 256;
const ALLTOALL_MEDIUM: u64 = 32_768;
const ALLTOALL_MIN_RANKS: u32 = 8;
const REDUCE_SCATTER_LONG: u64 = 524_288;
const ELEMENT: u64 = 8;

impl Table<Collectives> {
    /// The algorithm called `name` for collectives of this kind.
    ///
    /// # Errors
    /// [`BuildError::UnknownName`] lists the kind's algorithms.
    pub fn algorithm(&self, kind: CollectiveKind, name: &str) -> Result<&'static Algorithm, BuildError> {
        let of_kind: Vec<_> = self.entries().filter(|entry| entry.build.kind == kind).collect();
        table::find(Collectives::KIND, &of_kind, |entry| entry.name, name).copied()
    }
}

/// The algorithms to use instead of the default choice, at most one for each kind of collective.
#[derive(Clone, Debug, Default)]
pub struct Preferences(Vec<&'static Algorithm>);

impl Preferences {
    /// Looks up `names`: kind of collective to name of an algorithm.
    ///
    /// # Errors
    /// [`BuildError::UnknownName`] for a kind or an algorithm that does not exist.
    pub fn new(names: &BTreeMap<String, String>, table: &Table<Collectives>) -> Result<Self, BuildError> {
        let algorithm = |(kind, name): (&String, &String)| {
            let kind = *table::find("collective", &CollectiveKind::ALL, |kind| kind.name(), kind)?;
            table.algorithm(kind, name)
        };
        names.iter().map(algorithm).collect::<Result<_, _>>().map(Self)
    }

    /// The algorithm for this call: the preferred one if there is one and it fits, else MPICH's default.
    ///
    /// Comes out alike at every member.
    #[must_use]
    pub fn choose(&self, call: &Call) -> &'static Algorithm {
        let preferred = self.0.iter().copied().find(|preferred| preferred.build.kind == call.kind);
        preferred.filter(|preferred| (preferred.build.fits)(call)).unwrap_or_else(|| default(call))
    }
}

fn default(call: &Call) -> &'static Algorithm {
    match call.kind {
        CollectiveKind::Barrier => &barrier_dissemination::ENTRY,
        CollectiveKind::Bcast => bcast(call),
        CollectiveKind::Reduce if is_long_reduction(call) => &reduce_rabenseifner::ENTRY,
        CollectiveKind::Reduce => &reduce_binomial::ENTRY,
        CollectiveKind::Allreduce if is_long_reduction(call) => &allreduce_rabenseifner::ENTRY,
        CollectiveKind::Allreduce => &allreduce_recursive_doubling::ENTRY,
        CollectiveKind::Gather if call.is_uniform() => &gather_binomial::ENTRY,
        CollectiveKind::Gather => &gather_linear::ENTRY,
        CollectiveKind::Scatter if call.is_uniform() => &scatter_binomial::ENTRY,
        CollectiveKind::Scatter => &scatter_linear::ENTRY,
        CollectiveKind::Allgather => allgather(call),
        CollectiveKind::Alltoall => alltoall(call),
        CollectiveKind::ReduceScatter if call.blocks().total() < REDUCE_SCATTER_LONG => {
            &reduce_scatter_recursive_halving::ENTRY
        }
        CollectiveKind::ReduceScatter => &reduce_scatter_pairwise::ENTRY,
        CollectiveKind::Scan => &scan_recursive_doubling::ENTRY,
    }
}

fn bcast(call: &Call) -> &'static Algorithm {
    let bytes = call.buffer();
    if bytes < BCAST_SHORT || call.size < BCAST_MIN_RANKS {
        &bcast_binomial::ENTRY
    } else if bytes < BCAST_LONG && call.size.is_power_of_two() {
        &bcast_scatter_recursive_doubling::ENTRY
    } else {
        &bcast_scatter_ring::ENTRY
    }
}

fn is_long_reduction(call: &Call) -> bool {
    let members = 1_u64 << call.size.ilog2();
    call.buffer() > REDUCE_SHORT && call.buffer() / ELEMENT >= members
}

fn allgather(call: &Call) -> &'static Algorithm {
    let total = call.blocks().total();
    if total < ALLGATHER_LONG && call.size.is_power_of_two() {
        &allgather_recursive_doubling::ENTRY
    } else if total < ALLGATHER_SHORT {
        &allgather_bruck::ENTRY
    } else {
        &allgather_ring::ENTRY
    }
}

fn alltoall(call: &Call) -> &'static Algorithm {
    if !call.is_uniform() {
        return &alltoall_scattered::ENTRY;
    }
    match call.own_block() {
        0..=ALLTOALL_SHORT if call.size >= ALLTOALL_MIN_RANKS => &alltoall_bruck::ENTRY,
        0..=ALLTOALL_MEDIUM => &alltoall_scattered::ENTRY,
        _ => &alltoall_pairwise::ENTRY,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::Rank;
    use crate::program::Volume;
    use crate::units::Bytes;

    fn chosen(kind: CollectiveKind, size: u32, bytes: u64) -> &'static str {
        let call = Call { kind, rank: Rank(0), size, root: Rank(0), volume: Volume::Uniform(Bytes(bytes)) };
        Preferences::default().choose(&call).name
    }

    #[test]
    fn sizes_at_the_seams_get_mpichs_choice() {
        let seams = [
            (CollectiveKind::Barrier, 5, 0, "dissemination"),
            (CollectiveKind::Bcast, 64, 12_287, "binomial"),
            (CollectiveKind::Bcast, 7, 1 << 30, "binomial"),
            (CollectiveKind::Bcast, 8, 12_288, "scatter_recursive_doubling"),
            (CollectiveKind::Bcast, 8, 524_287, "scatter_recursive_doubling"),
            (CollectiveKind::Bcast, 8, 524_288, "scatter_ring"),
            (CollectiveKind::Bcast, 9, 12_288, "scatter_ring"),
            (CollectiveKind::Reduce, 100, 2_048, "binomial"),
            (CollectiveKind::Reduce, 100, 2_049, "rabenseifner"),
            (CollectiveKind::Allreduce, 100, 2_048, "recursive_doubling"),
            (CollectiveKind::Allreduce, 100, 2_049, "rabenseifner"),
            (CollectiveKind::Allreduce, 1024, 8_191, "recursive_doubling"),
            (CollectiveKind::Allreduce, 1024, 8_192, "rabenseifner"),
            (CollectiveKind::Gather, 9, 1 << 20, "binomial"),
            (CollectiveKind::Scatter, 9, 1 << 20, "binomial"),
            (CollectiveKind::Allgather, 16, 32_767, "recursive_doubling"),
            (CollectiveKind::Allgather, 16, 32_768, "ring"),
            (CollectiveKind::Allgather, 10, 8_191, "bruck"),
            (CollectiveKind::Allgather, 10, 8_192, "ring"),
            (CollectiveKind::Alltoall, 8, 256, "bruck"),
            (CollectiveKind::Alltoall, 7, 256, "scattered"),
            (CollectiveKind::Alltoall, 8, 257, "scattered"),
            (CollectiveKind::Alltoall, 8, 32_768, "scattered"),
            (CollectiveKind::Alltoall, 8, 32_769, "pairwise"),
            (CollectiveKind::ReduceScatter, 8, 65_535, "recursive_halving"),
            (CollectiveKind::ReduceScatter, 8, 65_536, "pairwise"),
            (CollectiveKind::Scan, 8, 1 << 20, "recursive_doubling"),
        ];
        for (kind, size, bytes, name) in seams {
            assert_eq!(chosen(kind, size, bytes), name, "{} of {bytes} bytes over {size} ranks", kind.name());
        }
    }

    #[test]
    fn v_variants_get_their_own_algorithms() {
        for (kind, name) in [
            (CollectiveKind::Gather, "linear"),
            (CollectiveKind::Scatter, "linear"),
            (CollectiveKind::Alltoall, "scattered"),
            (CollectiveKind::Allgather, "bruck"),
        ] {
            let volume = Volume::PerRank([3; 9].into());
            let call = Call { kind, rank: Rank(0), size: 9, root: Rank(0), volume };
            assert_eq!(Preferences::default().choose(&call).name, name);
        }
    }

    #[test]
    fn a_preference_wins_where_it_fits() {
        let volume = Volume::Uniform(Bytes(8));
        let call =
            |size| Call { kind: CollectiveKind::Allgather, rank: Rank(0), size, root: Rank(0), volume: volume.clone() };
        let prefer = |name: &str| {
            Preferences::new(&[("allgather".to_owned(), name.to_owned())].into(), &Table::default()).unwrap()
        };
        assert_eq!(prefer("ring").choose(&call(8)).name, "ring");
        assert_eq!(prefer("recursive_doubling").choose(&call(8)).name, "recursive_doubling");
        assert_eq!(prefer("recursive_doubling").choose(&call(9)).name, "bruck");
    }

    #[test]
    fn an_unknown_name_is_answered_with_the_kinds_names() {
        let find = |kind, name| Table::<Collectives>::default().algorithm(kind, name);
        let error = find(CollectiveKind::Gather, "binomal").unwrap_err().to_string();
        assert!(error.contains("allowed: binomial, linear") && error.contains("did you mean \"binomial\""), "{error}");
        assert_eq!(find(CollectiveKind::Scan, "linear").unwrap().build.kind, CollectiveKind::Scan);
        assert!(find(CollectiveKind::Scan, "ring").is_err());
    }
}
