"""Verification: snapshots of a schedule are simulated packet by packet and compared with the model."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl

from fairlane.models.validation import ErrorMetrics
from fairlane.scheduler.slowdown.bench import Resident
from fairlane.scheduler.slowdown.forecast import Forecast
from fairlane.seeds import Purpose, stream

if TYPE_CHECKING:
    from fairlane.scheduler.easy import Placed, Schedule

_DRAWS = 1000
"""Maximum number of instants drawn for every snapshot: at most of them the machine may be nearly empty."""


@dataclass(frozen=True)
class Verification:
    """Predicted and simulated slowdowns of sampled snapshots."""

    jobs: pl.DataFrame
    """A row for each job at a snapshot: ``snapshot``, ``at`` (s), ``job``, ``ranks``, ``kind``, and its slowdown
    ``predicted`` and ``simulated``, in all, by its ``own`` hosts and by its ``neighbours``."""
    error: ErrorMetrics | None
    """Over all jobs; None if no job had any neighbour at any time."""

    @property
    def snapshots(self) -> int:
        """How many snapshots were simulated."""
        return self.jobs["snapshot"].n_unique() if self.jobs.height else 0


def verify(schedule: "Schedule", forecast: Forecast, snapshots: int, seed: int = 1) -> Verification:
    """Simulates so many snapshots, drawn uniformly over the time in which at least two jobs communicate."""
    rows: list[dict[str, object]] = []
    sampled = list(enumerate(_sampled(schedule, snapshots, seed)))
    there = {
        number: [Resident(forecast.pattern(one.job.number), one.hosts) for one in placed]
        for number, (_, placed) in sampled
    }
    forecast.bench.simulate(there)
    for number, (at, placed) in sampled:
        residents = there[number]
        measured = forecast.bench.measure(residents, number)
        slowdowns = forecast.slowdowns(residents)
        for one, resident, found, total in zip(placed, residents, measured, slowdowns, strict=True):
            own = forecast.isolated(resident)[1]
            rows.append(
                {
                    "snapshot": number,
                    "at": at,
                    "job": one.job.number,
                    "ranks": resident.ranks,
                    "kind": forecast.communication(one.job.number).kind,
                    "predicted": total,
                    "simulated": found.own * found.neighbours,
                    "predicted_own": own,
                    "simulated_own": found.own,
                    "predicted_neighbours": total / own,
                    "simulated_neighbours": found.neighbours,
                }
            )
    table = pl.DataFrame(rows)
    if not rows:
        return Verification(table, None)
    predicted, simulated = table["predicted"].to_numpy(), table["simulated"].to_numpy()
    return Verification(table, ErrorMetrics.of(predicted / simulated, 1 / simulated))


def _sampled(schedule: "Schedule", snapshots: int, seed: int) -> list[tuple[float, Sequence["Placed"]]]:
    """Instants with the jobs of two ranks or more that run there; instants with fewer than two such do not count."""
    if not schedule.jobs:
        return []
    begin, end = schedule.jobs[0].start, max(one.end for one in schedule.jobs)
    rng = stream(seed, Purpose.SNAPSHOT, 2)
    found: list[tuple[float, Sequence[Placed]]] = []
    for _ in range(snapshots * _DRAWS):
        at = begin + float(rng.random()) * (end - begin)
        there = [one for one in schedule.at(at) if one.job.hosts > 1]
        if len(there) > 1:
            found.append((at, there))
        if len(found) == snapshots:
            break
    return found
