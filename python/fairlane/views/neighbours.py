"""Jobs of an allocation that share cables: which cables, who is likely to hurt whom, and where a victim could move."""

from collections.abc import Iterator
from typing import Any

from fairlane.core.wording import plural, significant
from fairlane.inputs.hosts import shortened
from fairlane.learn.advice.sharing import Estimate, Neighbours
from fairlane.views.model import View
from fairlane.views.tables import Column, Table, fixed

_ROUNDED = 0.005  # of a slowdown or of a waiting time: smaller harm is none in two decimals
_TWO = fixed(2)


def view(neighbours: Neighbours, show: int) -> View:
    """Show ``advise --allocations``: the first ``show`` rows of each table."""
    count = len(neighbours.jobs)
    shared = len({frozenset((pair.victim, pair.aggressor)) for pair in neighbours.pairs})
    hurt = sum(_harms(pair.harm) for pair in neighbours.pairs)
    return View(
        title=f"Neighbours at moment {neighbours.moment}",
        headline=f"{shared:,} of {count * (count - 1) // 2:,} pairs of jobs share cables; in {hurt:,} of "
        f"{2 * shared:,} directions one slows down the other or adds at least 0.01 packets to its waiting.",
        facts=list(_facts(neighbours)),
        parts=[_cables(neighbours, show), _pairs(neighbours, show), _moves(neighbours, show)]
        if neighbours.pairs
        else [],
        remarks=[
            f"Assumed: every node sends {neighbours.load:.0%} of its bandwidth, in equal parts to all other nodes "
            "of its job, on minimal paths that are spread evenly.",
            "Estimated, not simulated; contention at receivers is left out.",
        ],
    )


def _facts(neighbours: Neighbours) -> Iterator[str]:
    busy = sum(neighbours.jobs.values())
    left = f"{plural(neighbours.left_out, 'job')} of the file left out" if neighbours.left_out else "no job left out"
    jobs = plural(len(neighbours.jobs), "job")
    yield f"moment {neighbours.moment}: {jobs} on {busy:,} of {neighbours.nodes:,} nodes; {left}"
    if neighbours.outside:
        names = shortened([node for nodes in neighbours.outside.values() for node in nodes], 40)
        yield f"{plural(len(neighbours.outside), 'job')} on nodes that the map does not have: {names}"


def _harms(harm: Estimate) -> bool:
    return harm.slowdown >= 1 + _ROUNDED or harm.waiting >= 2 * _ROUNDED


def _cables(neighbours: Neighbours, show: int) -> Table:
    rows = [
        {
            "name": cable.name,
            "cables": cable.cables,
            "use": cable.utilisation,
            "jobs": len(cable.jobs),
            "most": _most(cable.jobs),
        }
        for cable, _ in zip(neighbours.cables(), range(show), strict=False)
    ]
    columns = [
        Column("cables", "name"),
        Column("number", "cables"),
        Column("utilisation", "use", _percent),
        Column("jobs", "jobs"),
        Column("most by", "most", left=True),
    ]
    return Table(columns, rows, "Shared cables with the highest utilisation", sentence=f"{len(rows)} of them.")


def _most(jobs: dict[str, float]) -> str:
    first = sorted(jobs.items(), key=lambda item: -item[1])[:3]
    return ", ".join(f"{name} ({_percent(part)})" for name, part in first)


def _pairs(neighbours: Neighbours, show: int) -> Table:
    def job(name: str) -> str:
        return f"{name} ({neighbours.jobs[name]})"

    rows: list[dict[str, Any]] = [
        {
            "victim": job(pair.victim),
            "aggressor": job(pair.aggressor),
            "cables": sum(pair.cables.values()),
            "busiest": f"{pair.busiest}: {_percent(pair.utilisation)}, aggressor {_percent(pair.by_aggressor)}",
            "slowdown": pair.harm.slowdown,
            "waiting": pair.harm.waiting,
        }
        for pair in neighbours.pairs[:show]
    ]
    columns = [
        Column("victim (nodes)", "victim"),
        Column("aggressor (nodes)", "aggressor", left=True),
        Column("shared cables", "cables"),
        Column("busiest of them", "busiest", left=True),
        Column("slowdown", "slowdown", _TWO),
        Column("waiting, packets", "waiting", _TWO),
    ]
    return Table(columns, rows, "Who is likely to hurt whom", sentence=f"{len(rows)} pairs.")


def _moves(neighbours: Neighbours, show: int) -> Table:
    def both(harm: Estimate | None) -> str | None:
        return None if harm is None else f"{_TWO(harm.slowdown)}, {_TWO(harm.waiting)}"

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
        for move in neighbours.moves[:show]
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
    return Table(columns, rows, "What a move of the victim would do", note, sentence=f"{len(rows)} pairs.")


def _percent(share: float) -> str:
    return f"{significant(100 * share, 3)}%"
