"""The map of what is not known: in which share of the plausible space each cell is predicted, and what decides it.

The points are the beginning of a scrambled Sobol' sequence over the parameters that are not fitted, as in the
robustness maps of papers, without those whose values exclude each other. A cell counts as predicted at a point if its
verdict there is the right one. Simulations of a cell at a point have one replicate.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import log

import polars as pl

from fairlane.core.errors import FairlaneError, Problem
from fairlane.core.statistics.sensitivity import first_order, share
from fairlane.papers.campaign.cells import KEYS, Cell
from fairlane.papers.campaign.comparing import RIGHT, verdict
from fairlane.papers.campaign.predicting import simulated
from fairlane.papers.campaign.simulating import Model
from fairlane.papers.shares import verdict_of
from fairlane.papers.space import Value, columns_of
from fairlane.study.design import space_filling
from fairlane.study.tasks.executor import Executor
from fairlane.study.tasks.task import read

POINTS = 32
"""Number of points by default."""
TRIES = 8
"""So many times as many points are drawn at most, where values exclude each other."""


@dataclass(frozen=True)
class Mapped:
    """The cells at all points."""

    found: pl.DataFrame
    """A row for each cell and point: point, cell (its text), measured and predicted ratio of means, verdict."""
    points: pl.DataFrame
    """A row for each point: its number and the values of the parameters."""
    failed: Sequence[str]
    """Points that could not be simulated, with reasons."""
    excluded: Mapping[str, int] = field(default_factory=dict)
    """Points in whose place others were drawn: how many, by why their values exclude each other."""

    @property
    def cells(self) -> pl.DataFrame:
        """A row for each cell: the share of points at which it is predicted, with the interval, as maps draw it."""
        rows = []
        for (cell,), of in self.found.group_by("cell", maintain_order=True):
            usual, others = of.filter(pl.col("point") == 0), of.filter(pl.col("point") > 0)
            held = int((others["verdict"] == RIGHT).sum())
            part = share(held, max(1, others.height))
            rows.append(
                {
                    "claim": cell,
                    "clause": 0,
                    "says": f"{cell}: {of['measured'][0]:.2f}",
                    "verdict": verdict_of(held, others.height),
                    "share": part.value,
                    "share_low": part.low,
                    "share_high": part.high,
                    "default_points": usual.height,
                    "default_held": int((usual["verdict"] == RIGHT).sum()),
                }
            )
        return pl.DataFrame(rows)

    @property
    def indices(self) -> pl.DataFrame:
        """Return the share of the variance of a cell's predicted ratio that each parameter explains by itself."""
        names = [name for name in self.points.columns if name != "point"]
        rows = []
        for (cell,), of in self.found.filter(pl.col("point") > 0).group_by("cell", maintain_order=True):
            values = of.join(self.points, on="point").sort("point")
            inputs = {name: values[name].to_list() for name in names}
            for name, index in first_order(inputs, [log(value) for value in values["predicted"]]).items():
                rows.append((cell, 0, name, index.index, index.beyond_chance))
        kinds = {"claim": pl.String, "clause": pl.Int64, "parameter": pl.String, "index": pl.Float64}
        return pl.DataFrame(rows, {**kinds, "beyond_chance": pl.Boolean}, orient="row")


def mapped(model: Model, wanted: Sequence[Cell], executor: Executor, count: int = POINTS) -> Mapped:
    """Predicts the cells at so many points, and at the values that the model has, which are point 0.

    Cells that have no aggressor, or no isolated run, are left out. Raises ``ScenarioError`` without an unknown.
    """
    campaign, cells = model.campaign, model.cells
    if not campaign.unknown:
        message = "none is unknown, so the map has no axis"
        raise campaign.refuse(Problem("parameter", message, allowed="at least one [[parameter]] without fit = true"))
    usual = {parameter.name: model.values[parameter.name] for parameter in campaign.unknown}
    points: list[dict[str, Value]] = []
    models: list[Model] = []
    pairs = [(cell, alone) for cell in wanted if not cell.isolated and (alone := cells.isolated_of(cell)) is not None]
    excluded = Counter[str]()
    for values in [usual, *space_filling(campaign.unknown, TRIES * count)]:
        if len(points) > count:
            break
        at = Model(campaign, cells, {**model.values, **values})
        if points and pairs:
            try:
                read(at.task(pairs[0][1], 1)).resolve()
            except FairlaneError as error:
                excluded[str(error)] += 1
                continue
        points.append(values)
        models.append(at)
    tables = simulated(models, dict.fromkeys(cell for pair in pairs for cell in pair), executor)
    means = {(row["point"], *(row[name] for name in KEYS)): row["mean_s"] for row in tables["cells"].to_dicts()}
    errors = {(point, cell): error for point, cell, error in tables["failures"].iter_rows()}
    rows, failed = [], []
    for point in range(len(points)):
        for cell, alone in pairs:
            reasons = [errors[point, str(of)] for of in (cell, alone) if (point, str(of)) in errors]
            if reasons:
                failed.append(f"point {point}, {cell}: {reasons[0]}")
                continue
            measured = cells.measured[cell.key]["mean_s"].value / cells.measured[alone.key]["mean_s"].value
            predicted = means[point, *cell.key] / means[point, *alone.key]
            rows.append((point, str(cell), measured, predicted, verdict(measured, predicted, campaign.judging)))
    columns = {"point": pl.Int64, "cell": pl.String, "measured": pl.Float64, "predicted": pl.Float64}
    table_of_cells = pl.DataFrame(rows, {**columns, "verdict": pl.String}, orient="row")
    kinds = columns_of(campaign.unknown)
    table = pl.DataFrame([{"point": at, **values} for at, values in enumerate(points)], {"point": pl.Int64, **kinds})
    return Mapped(table_of_cells, table, failed, excluded)
