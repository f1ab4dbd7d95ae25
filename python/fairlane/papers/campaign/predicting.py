"""Predictions of cells: a study whose points are models, which simulates every cell several times.

*A prediction: median, mean and 99th percentile of the iterations of a cell.* What is predicted is the mean over
replicates of each statistic, with its 95% interval; replicates with the same results, bit for bit, count once.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy
import polars as pl
from typing_extensions import override

from fairlane.core.statistics import of_ratios
from fairlane.papers.campaign.cells import KEYS, VALUES, Cell
from fairlane.papers.campaign.simulating import Model
from fairlane.study.plan import Plan, compute
from fairlane.study.tasks.executor import Executor
from fairlane.study.tasks.task import Answer, Computable

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


class CampaignPlan(Plan):
    """The simulations of cells by models, which are the points: so many ``replicates`` of each cell."""

    def __init__(self, models: Sequence[Model], cells: Iterable[Cell], replicates: int) -> None:
        seeds, cells = range(1, replicates + 1), list(cells)
        self._runs = [
            (point, cell, [model.task(cell, seed) for seed in seeds])
            for point, model in enumerate(models)
            for cell in cells
        ]

    @override
    def tasks(self) -> Sequence[Computable]:
        return [task for _, _, tasks in self._runs for task in tasks]

    @override
    def tables(self, executor: Executor) -> dict[str, pl.DataFrame]:
        """Table ``cells``, a row of ``SCHEMA`` for each point and cell, and ``failures``."""
        rows, failures = [], []
        for point, cell, tasks in self._runs:
            answers = [answer for task in tasks if (answer := executor.answer(task)) is not None]
            rows += [{"point": point, **_row(cell, answers)}] if answers else []
            failed = (executor.failures[task.digest] for task in tasks if task.digest in executor.failures)
            failures += [(point, str(cell), failure.error) for failure in failed]
        columns = {"point": pl.Int64, "cell": pl.String, "error": pl.String}
        cells = pl.DataFrame(rows, {"point": pl.Int64, **SCHEMA})
        return {"cells": cells, "failures": pl.DataFrame(failures, columns, orient="row")}


def simulated(
    models: Sequence[Model], cells: Iterable[Cell], executor: Executor, replicates: int = 1
) -> dict[str, pl.DataFrame]:
    """The tables of a plan, computed. Raises the error of the first simulation that fails, if the executor does."""
    plan = CampaignPlan(models, cells, replicates)
    compute([plan], executor)
    return plan.tables(executor)


def predicted(model: Model, cells: Sequence[Cell], executor: Executor) -> pl.DataFrame:
    """Simulates the cells: a row of ``SCHEMA`` for each. Raises the error of the first simulation that fails."""
    return simulated([model], cells, executor, model.campaign.measure.replicates)["cells"].drop("point")


def _row(cell: Cell, answers: Sequence[Answer]) -> Mapping[str, Any]:
    """Predict a cell from the answers of its simulations."""
    distinct = list({answer["digest"]: answer for answer in answers}.values())
    times = [numpy.asarray(answer["times_s"]) for answer in distinct]
    iterations = sum(map(len, times))
    row: dict[str, Any] = {name: getattr(cell, name) for name in KEYS}
    row |= {"replicates": len(distinct), "iterations": iterations}
    for name, statistic in _STATISTICS.items():
        tail = name == "p99_s" and iterations < FEWEST_TAIL and not cell.isolated
        estimate = None if tail else of_ratios([float(statistic(times_of_run)) for times_of_run in times])
        for end, value in (("", "value"), ("_low", "low"), ("_high", "high")):
            row[f"{name}{end}"] = None if estimate is None else getattr(estimate, value)
    rounds = [answer["aggressor_s"] for answer in distinct if answer["aggressor_s"] is not None]
    row["aggressor_s"] = float(numpy.mean(rounds)) if rounds else None
    row["simulated_s"] = sum(answer["simulated_s"] for answer in distinct)
    row["packet_hops"] = sum(answer["packet_hops"] for answer in distinct)
    return row


def shown(model: Model) -> Mapping[str, str]:
    """The values of a model's parameters as text."""
    return {parameter.name: parameter.shown(model.values[parameter.name]) for parameter in model.campaign.parameter}
