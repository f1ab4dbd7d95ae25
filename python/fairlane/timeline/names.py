"""The names of MPI for the calls of the simulator."""

_WORDS = {
    "wait_all": "Waitall",
    "wait_any": "Waitany",
    "wait_some": "Waitsome",
    "comm_topology": "Cart_create",
}
_VECTOR = ("gather", "scatter", "allgather", "alltoall")


def mpi_name(call: str, blocks: int = 0) -> str:
    """As ``MPI_Isend`` for ``isend``; with ``blocks`` of their own for the members, the v-variant of a collective."""
    if call in _WORDS:
        return f"MPI_{_WORDS[call]}"
    vector = "v" if blocks and call.removeprefix("i").removeprefix("neighbor_") in _VECTOR else ""
    uniform = "_block" if call.removeprefix("i") == "reduce_scatter" and not blocks else ""
    return f"MPI_{call[:1].upper()}{call[1:]}{vector}{uniform}"
