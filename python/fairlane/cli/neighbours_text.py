"""Jobs that share cables, in words."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from fairlane.slurm.hostlist import shortened
from fairlane.wording import plural, significant

if TYPE_CHECKING:
    from fairlane.advice.neighbours import Neighbours
    from fairlane.advice.sharing import Estimate
    from fairlane.cli.terminal import Part
    from fairlane.views.tables import Table

_ROUNDED = 0.005  # of a slowdown or of a waiting time: smaller harm is none in two decimals


def neighbours_parts(found: "Neighbours", show: int) -> Iterator["Part"]:
    """What ``advise --allocations`` prints."""
    busy = sum(found.jobs.values())
    left = f"{plural(found.left_out, 'job')} of the file left out" if found.left_out else "no job left out"
    yield f"moment {found.moment}: {plural(len(found.jobs), 'job')} on {busy:,} of {found.nodes:,} nodes; {left}"
    if found.outside:
        names = shortened([node for nodes in found.outside.values() for node in nodes], 40)
        yield f"{plural(len(found.outside), 'job')} on nodes that the map does not have: {names}"
    yield f"Assumed: every node sends {found.load:.0%} of its bandwidth, in equal parts to all other nodes of its job,"
    yield "on minimal paths that are spread evenly. Estimated, not simulated; contention at receivers is left out."
    count = len(found.jobs)
    shared = len({frozenset((pair.victim, pair.aggressor)) for pair in found.pairs})
    hurt = sum(_harms(pair.harm) for pair in found.pairs)
    all_pairs = count * (count - 1) // 2
    yield f"{shared:,} of {all_pairs:,} pairs of jobs share cables; in {hurt:,} of {2 * shared:,} directions one slows"
    yield "down the other or adds at least 0.01 packets to its waiting."
    if found.pairs:
        yield _cables(found, show)
        yield _pairs(found, show)
        yield _moves(found, show)


def _harms(harm: "Estimate") -> bool:
    return harm.slowdown >= 1 + _ROUNDED or harm.waiting >= 2 * _ROUNDED


def _cables(found: "Neighbours", show: int) -> "Table":
    from fairlane.views.tables import Column, Table

    rows = [
        {"name": one.name, "cables": one.cables, "use": one.utilisation, "jobs": len(one.jobs), "most": _most(one.jobs)}
        for one, _ in zip(found.cables(), range(show), strict=False)
    ]
    columns = [
        Column("cables", "name"),
        Column("number", "cables"),
        Column("utilisation", "use", _percent),
        Column("jobs", "jobs"),
        Column("most by", "most", left=True),
    ]
    return Table(columns, rows, title="Shared cables with the highest utilisation")


def _most(jobs: dict[str, float]) -> str:
    first = sorted(jobs.items(), key=lambda item: -item[1])[:3]
    return ", ".join(f"{name} ({_percent(part)})" for name, part in first)


def _pairs(found: "Neighbours", show: int) -> "Table":
    from fairlane.views.tables import Column, Table

    def job(name: str) -> str:
        return f"{name} ({found.jobs[name]})"

    rows: list[dict[str, Any]] = [
        {
            "victim": job(pair.victim),
            "aggressor": job(pair.aggressor),
            "cables": sum(pair.cables.values()),
            "busiest": f"{pair.busiest}: {_percent(pair.utilisation)}, aggressor {_percent(pair.by_aggressor)}",
            "slowdown": pair.harm.slowdown,
            "waiting": pair.harm.waiting,
        }
        for pair in found.pairs[:show]
    ]
    columns = [
        Column("victim (nodes)", "victim"),
        Column("aggressor (nodes)", "aggressor", left=True),
        Column("shared cables", "cables"),
        Column("busiest of them", "busiest", left=True),
        Column("slowdown", "slowdown", _two),
        Column("waiting, packets", "waiting", _two),
    ]
    return Table(columns, rows, title="Who is likely to hurt whom")


def _moves(found: "Neighbours", show: int) -> "Table":
    from fairlane.views.tables import Column, Table

    def both(harm: "Estimate | None") -> str | None:
        return None if harm is None else f"{_two(harm.slowdown)}, {_two(harm.waiting)}"

    rows = [
        {
            "victim": move.pair.victim,
            "aggressor": move.pair.aggressor,
            "now": both(move.pair.harm),
            "level": both(move.own_level),
            "there": both(move.elsewhere),
            "before": both(move.all_before),
            "after": both(move.all_after),
            "place": shortened(move.place, 40) if move.place else "no better place",
        }
        for move in found.moves[:show]
    ]
    columns = [
        Column("victim", "victim"),
        Column("aggressor", "aggressor", left=True),
        Column("by it: now", "now"),
        Column("own level", "level"),
        Column("moved", "there"),
        Column("by all: now", "before"),
        Column("moved", "after"),
        Column("to", "place", left=True, drop=1),
    ]
    note = "Slowdown and waiting by the aggressor, and by all jobs: as it is, with a service level of its own, moved."
    return Table(columns, rows, title="What a move of the victim would do", note=note)


def _percent(share: float) -> str:
    return f"{significant(100 * share, 3)}%"


def _two(value: float) -> str:
    return f"{value:.2f}"
