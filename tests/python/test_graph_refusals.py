"""Graphs that cannot end, or cannot be read, are refused before a run in every format, with rank and place."""

import struct
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from chakra_nodes import collective, delimited, field
from fairlane.cli.main import execute

SEND, RECV, CALC = 5, 6, 4
Writer = Callable[[Path], Path]


def goal(*ranks: str) -> Writer:
    """A schedule: a text for each rank, its lines divided by semicolons."""

    def write(folder: Path) -> Path:
        parts = [f"rank {rank} {{\n" + text.replace("; ", "\n") + "\n}\n" for rank, text in enumerate(ranks)]
        (folder / "a.goal").write_text(f"num_ranks {len(ranks)}\n" + "".join(parts))
        return folder / "a.goal"

    return write


Operation = tuple[int, int, int, int, Sequence[int]]
"""Kind, partner, bytes, tag, and the operations that wait for its end."""


def binary(*ranks: Sequence[Operation]) -> Writer:
    """The same as ``txt2bin`` packs it: ``serialize_mmap`` of ``Parser.hpp``, LogGOPSim and ATLAHS."""

    def write(folder: Path) -> Path:
        parts = []
        for operations in ranks:
            data = struct.pack("<II", len(operations), 0)
            first = 0
            for kind, partner, size, tag, dependents in operations:
                data += struct.pack("<IBIQIBBIIII", 0, kind, partner, size, tag, 0, 0, len(dependents), first, 0, 0)
                first += len(dependents)
            parts.append(data + b"".join(struct.pack("<I", other) for *_, others in operations for other in others))
        start, table = 6 + 16 * len(parts), b""
        for part in parts:
            table += struct.pack("<QQ", start, start + len(part))
            start += len(part)
        (folder / "a.bin").write_bytes(struct.pack("<QIBB", 4223, len(parts), 0, 0) + table + b"".join(parts))
        return folder / "a.bin"

    return write


def chakra(*ranks: bytes) -> Writer:
    """Execution traces: nodes of each rank after metadata of version 0.0.4."""

    def write(folder: Path) -> Path:
        for rank, nodes in enumerate(ranks):
            (folder / f"t.{rank}.et").write_bytes(delimited(field(1, "0.0.4")) + nodes)
        return folder

    return write


def node(number: int, kind: int, *after: int, **attributes: int) -> bytes:
    """A node that depends on others."""
    values = [field(10, field(1, name) + field(9, value)) for name, value in attributes.items()]
    deps = [field(5, other) for other in after]
    return delimited(field(1, number) + field(2, "n") + field(3, kind) + b"".join([*deps, *values]))


def text(name: str, content: str) -> Writer:
    """A file of another format."""

    def write(folder: Path) -> Path:
        (folder / name).write_text(content)
        return folder / name

    return write


def matrix(*flows: str) -> Writer:
    count = sum("->" in flow for flow in flows)
    return text("a.cm", f"Nodes 4\nConnections {count}\n" + "\n".join(flows) + "\n")


def workload(layer: str) -> Writer:
    return text("w.txt", f"HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: 2 ep: 1 all_gpus: 2\n1\n{layer}\n")


def message(number: int, *after: int, to: int | None = None, source: int | None = None) -> bytes:
    """A send to a rank, or a receive from one."""
    if to is not None:
        return node(number, SEND, *after, comm_dst=to, comm_size=64, comm_tag=0)
    return node(number, RECV, *after, comm_src=source or 0, comm_size=64, comm_tag=0)


def last_first(other: int) -> bytes:
    """Receives, then sends."""
    return message(3, source=other) + message(4, 3, to=other)


RECEIVE_FIRST = "r: recv 8b from {0}; s: send 8b to {0}; s requires r"
BINARY_FIRST = [(2, 1, 8, 0, [1]), (1, 1, 8, 0, [])], [(2, 0, 8, 0, [1]), (1, 0, 8, 0, [])]
ANNOUNCED = "0->1 id 1 trigger 1 size 8 recv_done_trigger 2"
BACK = "1->0 id 2 trigger 2 size 8 recv_done_trigger 1"

CASES: dict[str, tuple[Writer, list[str]]] = {
    # Cycles within a rank.
    "goal: cycle": (
        goal("a: calc 1; b: calc 1; a requires b; b requires a"),
        ["rank 0, line 3", "cycle", "3 after 4 after 3"],
    ),
    "binary: cycle": (binary([(3, 0, 1, 0, [1]), (3, 0, 1, 0, [0])]), ["rank 0, operation 0", "0 after 1 after 0"]),
    "chakra: cycle": (chakra(node(7, CALC, 8) + node(8, CALC, 7)), ["rank 0, node 7", "cycle", "7 after 8 after 7"]),
    # Ranks that wait for each other.
    "goal: wait": (
        goal(RECEIVE_FIRST.format(1), RECEIVE_FIRST.format(0)),
        ["rank 0, line 3", "ranks wait for each other", "line 8 of rank 1"],
    ),
    "binary: wait": (binary(*BINARY_FIRST), ["ranks wait for each other", "operation 1 of rank 1"]),
    "chakra: wait": (
        chakra(last_first(1), last_first(0)),
        ["ranks wait for each other", "node 4 of rank 1 after node 3 of rank 1"],
    ),
    "chakra: collective": (
        chakra(
            collective(1, "allreduce", 8) + message(2, 1, to=1),
            message(1, source=0) + node(2, 7, 1, comm_type=0, comm_size=8),
        ),
        ["ranks wait for each other", "of rank 1"],
    ),
    "htsim: wait": (
        matrix(ANNOUNCED, BACK, "trigger id 1 oneshot", "trigger id 2 oneshot"),
        ["ranks wait for each other", "line 3 of rank 0", "line 4 of rank 1"],
    ),
    # Ranks that never meet.
    "goal: no receive": (goal("send 8b to 1", "calc 1"), ["rank 0, line 3", "1 sent, 0 received"]),
    "goal: other tag": (
        goal("send 8b to 1 tag 4", "recv 8b from 0 tag 5"),
        ["rank 0, line 3", "with tag 4: 1 sent, 0"],
    ),
    "binary: no receive": (
        binary([(1, 1, 8, 0, [])], [(3, 0, 1, 0, [])]),
        ["rank 0, operation 0", "1 sent, 0 received"],
    ),
    "chakra: no send": (chakra(message(5, source=1), node(6, CALC)), ["rank 0, node 5", "0 sent, 1 received"]),
    "goal: no rank": (goal("send 8b to 2", "calc 1"), ["rank 0, line 3", "rank 2 of 2 ranks, 0 to 1"]),
    "binary: no rank": (binary([(1, 5, 8, 0, [])]), ["rank 0, operation 0", "rank 5 of 1 ranks"]),
    "chakra: no rank": (chakra(message(5, to=2), node(6, CALC)), ["rank 0, node 5", "rank 2 of 2 ranks"]),
    "htsim: no rank": (matrix("0->4 id 1 start 0 size 8"), ["line 3", "two of 4 hosts, 0 to 3"]),
    "ns-3: itself": (text("f.txt", "1\n3 3 3 100 5 0\n"), ["line 2", "3->3: two of 4 hosts"]),
    "ns-3: too few": (text("f.txt", "3\n0 1 3 100 5 0\n"), ["line 1: 3 flows, and 1 follow"]),
    # What is not there.
    "goal: label": (goal("a: calc 1; a requires b"), ["line 4", 'no operation has the label "b"']),
    "binary: dependent": (binary([(3, 0, 1, 0, [9])]), ["rank 0: operation 0", "operation 9 of 1 depends on it"]),
    "chakra: dependency": (chakra(node(1, CALC, 9)), ["rank 0, node 1", "depends on node 9, which there is not"]),
    "htsim: trigger": (matrix("0->1 id 1 trigger 7 size 8"), ["line 3: trigger 7 is not defined"]),
    "htsim: triggers": (
        text("a.cm", "Nodes 2\nConnections 1\nTriggers 3\n0->1 id 1 start 0 size 8\n"),
        ["Triggers 3, and 0 follow"],
    ),
    # Unknown kinds.
    "goal: kind": (goal("put 8b to 1", "calc 1"), ["line 3", "calc N, send Nb to RANK or recv Nb from RANK"]),
    "binary: kind": (
        binary([(4, 0, 8, 0, [])]),
        ["rank 0: operation 0", "the kind 4 is none of 1 (send), 2 (recv), 3 (calc)"],
    ),
    "chakra: kind": (chakra(node(4, 12)), ["rank 0, node 4", "an unknown node type, 12"]),
    "chakra: collective's kind": (chakra(node(4, 7, comm_type=11, comm_size=8)), ["rank 0, node 4", "comm_type = 11"]),
    "simai: kind": (
        workload("l -1 1 ALLSCATTER 64 1 NONE 0 1 NONE 0 1"),
        ["ALLSCATTER", "rank 0, record 3", "no such collective is simulated"],
    ),
    "htsim: attribute": (matrix("0->1 id 1 start 0 size 8 colour 3"), ["line 3", 'an unknown attribute "colour"']),
    # Collectives whose members differ.
    "chakra: size": (
        chakra(collective(1, "allreduce", 8), collective(2, "allreduce", 16)),
        ["rank 1, node 2", "is allreduce of 16 bytes", "on rank 0 it is allreduce of 8 bytes"],
    ),
    "chakra: operation": (
        chakra(collective(1, "allreduce", 8), collective(2, "alltoall", 8)),
        ["rank 1, node 2", "is alltoall of"],
    ),
    "chakra: number": (
        chakra(collective(1, "allreduce", 8) + collective(3, "allreduce", 8), collective(1, "allreduce", 8)),
        ["rank 0, node 3", "2 collectives on rank 0 and 1 on rank 1"],
    ),
}


def checked(path: Path, folder: Path) -> int:
    """The exit code of ``fairlane check`` of a job with this trace."""
    job = f'{{ trace = {{ path = "{path}", repeat = false }} }}'
    (folder / "job.toml").write_text(f'fabric = {{ topology = "fat_tree", hosts = 8 }}\njobs = [{job}]\n')
    return execute(["check", str(folder / "job.toml")])


@pytest.mark.parametrize("case", CASES)
def test_a_graph_is_refused_with_rank_and_place(case: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write, words = CASES[case]
    folder = tmp_path / "trace"
    folder.mkdir()
    path = write(folder)
    assert checked(path, tmp_path) == 2
    shown = " ".join(capsys.readouterr().err.split())
    assert all(word in shown for word in words), shown


def test_members_that_wait_for_no_one_are_accepted(tmp_path: Path) -> None:
    """Each rank sends before it receives: eager messages end, whatever the others do."""
    exchange = "s: send 8b to {0}; r: recv 8b from {0}; r requires s"
    assert checked(goal(exchange.format(1), exchange.format(0))(tmp_path), tmp_path) == 0
