"""Gatherv and scatterv from Python: they are the messages that their linear schedules say, event for event."""

from collections.abc import Callable

import pytest

from fairlane import RunError, _core
from oracle import Case, Job, Mark, Mpi, Op, Recv, Send, Wait, core, fabrics, simulate

ROOT = 3
BLOCKS = [5_000, 0, 300, 70_000, 20_000]
"""One of them is empty, and the root's own goes nowhere; the default threshold is among the sizes."""
OTHERS = [rank for rank, block in enumerate(BLOCKS) if rank != ROOT and block > 0]

Volume = Callable[[int], list[int]]
VOLUMES: dict[str, Volume] = {
    "every rank knows all blocks": lambda _rank: BLOCKS,
    "only the root does": lambda rank: BLOCKS if rank == ROOT else [BLOCKS[rank]],
}


def messages(kind: str) -> list[list[Op]]:
    """What each rank sends and receives."""
    scripts: list[list[Op]] = [[] for _ in BLOCKS]
    requests = tuple(range(len(OTHERS)))
    for request, rank in enumerate(OTHERS):
        to_root: tuple[Op, Op] = (Send(ROOT, BLOCKS[rank]), Recv(rank, request=request))
        from_root: tuple[Op, Op] = (Recv(ROOT), Send(rank, BLOCKS[rank], request=request))
        other, root = to_root if kind == "gather" else from_root
        scripts[rank].append(other)
        scripts[ROOT].append(root)
    scripts[ROOT].append(Wait(requests))
    return [[*script, Mark()] for script in scripts]


@pytest.mark.parametrize("threshold", [0, 16384, 1 << 20], ids=["rendezvous", "mixed", "eager"])
@pytest.mark.parametrize("volume", VOLUMES.values(), ids=VOLUMES)
@pytest.mark.parametrize("kind", ["gather", "scatter"])
def test_each_block_is_one_message_with_the_root(kind: str, volume: Volume, threshold: int) -> None:
    fabric = fabrics.fat_tree(hosts=5, levels=2, leaf_down=2, leaf_up=1)
    mpi = Mpi(eager_threshold=threshold, send_overhead=200_000, receive_overhead=300_000)
    case = Case(fabric, [Job(list(range(5)), messages(kind))], mpi=mpi)
    builder = _core.ProgramBuilder(5)
    for rank in range(5):
        builder.collective(rank, kind, volume(rank), 0, ROOT)
        builder.mark_progress(rank)
    assert core.simulate(case, [builder.build()]).facts() == simulate(case).facts()


def test_a_list_of_another_length_is_refused() -> None:
    case = Case(fabrics.star(5), [Job(list(range(5)), [[]] * 5)])
    builder = _core.ProgramBuilder(5)
    for rank in range(5):
        builder.collective(rank, "gather", BLOCKS[:4], 0, ROOT)
    with pytest.raises(RunError, match=r"rank \d.*gather.*5 ranks got 4 blocks"):
        core.simulate(case, [builder.build()])
