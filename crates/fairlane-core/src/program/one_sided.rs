//! One-sided communication: what an operation on a window is.

use serde::{Deserialize, Serialize};

/// A window handle of a rank: any number the program chooses, free again after [`super::Rma::Free`].
pub type WindowHandle = u32;

/// The one-sided operations (MPI 4.1, section 12.3). MPI_Fetch_and_op is a [`RmaKind::GetAccumulate`] of one element.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RmaKind {
    /// MPI_Put, MPI_Rput: payload to the target.
    Put,
    /// MPI_Get, MPI_Rget: payload from the target.
    Get,
    /// MPI_Accumulate, MPI_Raccumulate: payload to the target, combined with what is there.
    Accumulate,
    /// MPI_Get_accumulate, MPI_Rget_accumulate, MPI_Fetch_and_op: the same, and as many bytes come back.
    GetAccumulate,
    /// MPI_Compare_and_swap: two elements go to the target, one comes back.
    CompareAndSwap,
}

impl RmaKind {
    /// Every kind, in the order of declaration.
    pub const ALL: [Self; 5] = [Self::Put, Self::Get, Self::Accumulate, Self::GetAccumulate, Self::CompareAndSwap];

    /// The kind's name in lower case.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Put => "put",
            Self::Get => "get",
            Self::Accumulate => "accumulate",
            Self::GetAccumulate => "get_accumulate",
            Self::CompareAndSwap => "compare_and_swap",
        }
    }
}
