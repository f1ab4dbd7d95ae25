"""A prediction: every cell simulated several times, and median, mean and 99th percentile of its iterations.

Each replicate has a start of the victim, seeds and, where nodes are not known, a placement of its own. What is
predicted is the mean over replicates of each statistic, with its 95% interval; replicates with the same results, bit
for bit, count once.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy
import polars as pl

from fairlane.campaign.cells import KEYS, VALUES, Cell
from fairlane.campaign.simulating import Model
from fairlane.statistics import of_ratios
from fairlane.tasks.executor import Executor
from fairlane.tasks.task import Answer

FEWEST_TAIL = 100
"""Of fewer iterations in all replicates no 99th percentile is predicted."""
SCHEMA: Mapping[str, Any] = {
    **dict(zip(KEYS, (pl.Int64, pl.String, pl.String, pl.Float64, pl.Float64, pl.Int64), strict=True)),
    "replicates": pl.Int64,
    "iterations": pl.Int64,
    **{f"{value}{end}": pl.Float64 for value in VALUES for end in ("", "_low", "_high")},
    "aggressor_s": pl.Float64,
    "simulated_s": pl.Float64,
    "packet_hops": pl.Int64,
}
"""Columns of predicted cells: the keys, how many replicates and iterations, the values, s, with their intervals, the
mean time of an iteration of the aggressor, s, simulated time, s, and packet-hops of all replicates."""
_STATISTICS: Mapping[str, Callable[[Any], Any]] = {
    "median_s": numpy.median,
    "mean_s": numpy.mean,
    "p99_s": lambda times: numpy.quantile(times, 0.99, method="higher"),
}


def predicted(model: Model, cells: Sequence[Cell], executor: Executor) -> pl.DataFrame:
    """Simulates the cells: a row of ``SCHEMA`` for each. Raises the error of the first simulation that fails."""
    tasks = model.tasks(cells)
    executor.run(tasks.values())
    by_cell: dict[Cell, list[Answer]] = {}
    for (cell, _), task in tasks.items():
        if (answer := executor.answer(task)) is not None:
            by_cell.setdefault(cell, []).append(answer)
    return table((row_of(cell, answers) for cell, answers in by_cell.items()))


def table(rows: Iterable[Mapping[str, Any]]) -> pl.DataFrame:
    """Rows of ``SCHEMA`` as a table."""
    return pl.DataFrame(list(rows), SCHEMA)


def row_of(cell: Cell, answers: Sequence[Answer]) -> Mapping[str, Any]:
    """What its simulations predict of a cell."""
    distinct = list({answer["digest"]: answer for answer in answers}.values())
    times = [numpy.asarray(answer["times_s"]) for answer in distinct]
    iterations = sum(map(len, times))
    row: dict[str, Any] = {name: getattr(cell, name) for name in KEYS}
    row |= {"replicates": len(distinct), "iterations": iterations}
    for name, statistic in _STATISTICS.items():
        tail = name == "p99_s" and iterations < FEWEST_TAIL and not cell.isolated
        found = None if tail else of_ratios([float(statistic(one)) for one in times])
        for end, value in (("", "value"), ("_low", "low"), ("_high", "high")):
            row[f"{name}{end}"] = None if found is None else getattr(found, value)
    rounds = [answer["aggressor_s"] for answer in distinct if answer["aggressor_s"] is not None]
    row["aggressor_s"] = float(numpy.mean(rounds)) if rounds else None
    row["simulated_s"] = sum(answer["simulated_s"] for answer in distinct)
    row["packet_hops"] = sum(answer["packet_hops"] for answer in distinct)
    return row


def shown(model: Model) -> Mapping[str, str]:
    """The values of a model's parameters as text."""
    return {one.name: one.shown(model.values[one.name]) for one in model.campaign.parameter}
