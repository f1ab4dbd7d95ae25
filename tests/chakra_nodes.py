"""Nodes of Chakra execution traces, as ``et_def.proto`` (MLCommons, schema 1.0) encodes them."""

from pathlib import Path

from fairlane.model.workload.trace import unpack

COLLECTIVES = ("allreduce", "reduce", "allgather", "gather", "scatter", "bcast", "alltoall", "reduce_scatter")
COMM_COLL_NODE = 7


def varint(value: int) -> bytes:
    """A number in groups of seven bits."""
    low, rest = value & 0x7F, value >> 7
    return bytes([low | 0x80]) + varint(rest) if rest else bytes([low])


def field(number: int, value: int | str | bytes) -> bytes:
    """A field of a message: a number, or text or a message with its length."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    data = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(data)) + data


def delimited(message: bytes) -> bytes:
    """A message with its length before it."""
    return varint(len(message)) + message


def collective(node: int, kind: str, size: int, group: str | None = None) -> bytes:
    """A collective of a process group, of all ranks if it has none; it depends on nothing."""
    numbers = {"comm_type": field(9, COLLECTIVES.index(kind)), "comm_size": field(9, size)}
    texts = {} if group is None else {"pg_name": field(29, group)}
    attributes = [field(10, field(1, name) + value) for name, value in {**numbers, **texts}.items()]
    return delimited(field(1, node) + field(2, kind) + field(3, COMM_COLL_NODE) + b"".join(attributes))


def extended(trace: Path, folder: Path, *nodes: bytes) -> Path:
    """A copy of a recorded trace in which each rank has these nodes, too."""
    folder.mkdir()
    for file in unpack(trace).glob("*.et"):
        (folder / file.name).write_bytes(file.read_bytes() + b"".join(nodes))
    return folder
