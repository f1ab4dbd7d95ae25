//! The records that a call needs in an archive, beside that it was made, so that it can be simulated.

/// The record that a call needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// Nothing, or events that the reader cannot miss, as those of messages.
    Nothing,
    /// The request of a non-blocking collective: its completion has communicator and bytes.
    Request,
    /// Windows: operations on them have target and bytes.
    Windows,
    /// The call cannot be simulated, whatever is recorded; the reason.
    Unsupported(&'static str),
}

/// Why a non-blocking collective cannot be simulated without its request.
pub const NO_REQUEST: &str = "the archive does not record the communicator and the bytes of this non-blocking collective \
                              (OTF2 has records for that from version 3.0 on)";
/// Why one-sided communication cannot be simulated without windows.
pub const NO_WINDOWS: &str = "the archive does not record windows, targets and bytes of one-sided communication";

const ONE_SIDED: [&str; 10] = [
    "Put",
    "Rput",
    "Get",
    "Rget",
    "Accumulate",
    "Raccumulate",
    "Get_accumulate",
    "Rget_accumulate",
    "Fetch_and_op",
    "Compare_and_swap",
];
/// Calls on windows that take part in communication; the others, as `MPI_Win_get_group`, are local.
const WINDOWS: [&str; 15] = [
    "create",
    "allocate",
    "allocate_shared",
    "create_dynamic",
    "free",
    "fence",
    "lock",
    "lock_all",
    "unlock",
    "unlock_all",
    "post",
    "start",
    "complete",
    "wait",
    "test",
];
const COLLECTIVES: [&str; 10] =
    ["barrier", "bcast", "reduce", "allreduce", "gather", "scatter", "allgather", "alltoall", "scan", "exscan"];
const POINT_TO_POINT: [&str; 5] = ["Send_init", "Bsend_init", "Ssend_init", "Rsend_init", "Recv_init"];

/// The record that a call of this name needs.
pub fn of(name: &str) -> Need {
    let Some(call) = name.strip_prefix("MPI_") else { return Need::Nothing };
    let starts = |prefixes: &[&str]| prefixes.iter().any(|prefix| call.starts_with(prefix));
    if ONE_SIDED.contains(&call) || call.strip_prefix("Win_").is_some_and(|of_window| WINDOWS.contains(&of_window)) {
        return Need::Windows;
    }
    if starts(&["Neighbor_", "Ineighbor_"]) {
        return Need::Unsupported(
            "OTF2 archives do not record the neighbours and the bytes of neighbourhood collectives",
        );
    }
    if call.ends_with("_init") && !POINT_TO_POINT.contains(&call) {
        return Need::Unsupported("OTF2 archives do not record persistent collectives and partitioned communication");
    }
    if call.strip_prefix('I').is_some_and(|rest| COLLECTIVES.iter().any(|c| rest.starts_with(c)))
        || starts(&["Comm_idup"])
    {
        return Need::Request;
    }
    if starts(&["Intercomm_", "Comm_spawn", "Comm_accept", "Comm_connect", "Comm_join"]) {
        return Need::Unsupported("intercommunicators and dynamic processes are not supported");
    }
    if call.starts_with("File_") {
        return Need::Unsupported("MPI-IO is not supported");
    }
    if call == "Abort" { Need::Unsupported("the recorded application aborted here") } else { Need::Nothing }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_told_apart_by_name() {
        for name in ["MPI_Isend", "MPI_Irecv", "MPI_Iprobe", "MPI_Init", "MPI_Get_count", "MPI_Recv_init", "solve"] {
            assert_eq!(of(name), Need::Nothing, "{name}");
        }
        for name in ["MPI_Win_get_group", "MPI_Win_set_name", "MPI_Win_create_keyval", "MPI_Win_flush", "MPI_Win_sync"]
        {
            assert_eq!(of(name), Need::Nothing, "{name}");
        }
        for name in ["MPI_Ibcast", "MPI_Ireduce_scatter_block", "MPI_Ibarrier", "MPI_Comm_idup"] {
            assert_eq!(of(name), Need::Request, "{name}");
        }
        for name in ["MPI_Put", "MPI_Win_fence", "MPI_Get", "MPI_Rget_accumulate", "MPI_Win_allocate_shared"] {
            assert_eq!(of(name), Need::Windows, "{name}");
        }
        for name in [
            "MPI_Allreduce_init",
            "MPI_Psend_init",
            "MPI_Comm_spawn",
            "MPI_File_open",
            "MPI_Abort",
            "MPI_Neighbor_alltoallw",
            "MPI_Ineighbor_alltoall",
        ] {
            assert!(matches!(of(name), Need::Unsupported(_)), "{name}");
        }
    }
}
