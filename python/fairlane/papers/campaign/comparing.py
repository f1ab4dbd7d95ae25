"""Measured cells against a registered prediction: ratios to the isolated run, verdicts of cells, and the bars."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy
import polars as pl

from fairlane.core.errors import Problem, ScenarioError
from fairlane.core.statistics import Estimate
from fairlane.core.wording import plural
from fairlane.papers.campaign.cells import KEYS, VALUES, Cell, Cells
from fairlane.papers.campaign.file import Judging
from fairlane.papers.campaign.registry import Registration, chosen

RIGHT, MISS, FALSE_ALARM, FAR = "right", "miss", "false alarm", "far"
"""Verdicts of a cell: as it was measured; a slowdown that was not predicted; one that was not measured; a slowdown by
another factor."""
SHOWN = 8  # cells that an error names


@dataclass(frozen=True)
class Bar:
    """A demand on the predictions, and what was found."""

    what: str
    found: float | None
    """The share of cells that meet it, or the rank correlation; None if no cell is asked."""
    wanted: float
    cells: int
    """Number of cells that it is asked of."""
    met: int | None = None
    """Number of them that meet it."""

    @property
    def holds(self) -> bool | None:
        """Whether it is reached; None if no cell is asked."""
        return None if self.found is None else self.found >= self.wanted - 1e-9

    @property
    def text(self) -> str:
        """Its value as text."""
        if self.found is None:
            return "no cell"
        if self.met is None:
            return f"{self.found:.2f} over {plural(self.cells, 'cell')}, at least {self.wanted:.2f}"
        return f"{self.met} of {self.cells} ({self.found:.0%}), at least {self.wanted:.0%}"


@dataclass(frozen=True)
class Comparison:
    """All cells that have been measured and predicted."""

    cells: Cells
    registration: Registration
    registrations: Sequence[Registration]
    table: pl.DataFrame
    """A row for each cell: its keys, measured and predicted values and ratios to the isolated run, and a verdict."""

    def judged(self, nodes: Sequence[int]) -> pl.DataFrame:
        """The rows that are judged, of these numbers of nodes."""
        wanted = pl.col("nodes").is_in(list(nodes)) if nodes else pl.lit(True)
        return self.table.filter(wanted & (pl.col("msg_bytes") >= self.cells.campaign.judging.smallest))

    @property
    def nodes(self) -> Mapping[str, Sequence[int]]:
        """Numbers of nodes of the cells that are judged, and of those on which variants were chosen; empty for all."""
        judging = self.cells.campaign.judging
        return {"judged": judging.judge, **({"used to choose the model": judging.choose} if judging.choose else {})}

    @cached_property
    def parts(self) -> Mapping[str, Sequence[Bar]]:
        """The bars on the cells that are judged, and apart from them on those on which variants were chosen."""
        judging = self.cells.campaign.judging
        return {name: list(bars(self.judged(nodes), judging)) for name, nodes in self.nodes.items()}

    @property
    def holds(self) -> bool:
        """Whether every bar on the judged cells is reached."""
        return all(bar.holds is not False for bar in self.parts["judged"])


def compared(cells: Cells, wanted: Sequence[Cell], number: int | None = None) -> Comparison:
    """Compares measured cells with a registered prediction, by default the newest.

    Raises ``ScenarioError`` if one of them has no registered prediction, or no measured values.
    """
    registration, every = chosen(cells, number)
    predicted = {tuple(row[name] for name in KEYS): row for row in registration.table.iter_rows(named=True)}
    missing = [cell for cell in wanted if cell.key not in predicted]
    if missing:
        shown = "; ".join(map(str, missing[:SHOWN]))
        more = f" and {len(missing) - SHOWN} more" if len(missing) > SHOWN else ""
        message = f"{plural(len(missing), 'measured cell')} without a registered prediction: {shown}{more}"
        message += "; predict them first, or select others by --nodes"
        raise ScenarioError(Problem.of_file(registration.folder, message))
    measured = cells.measured
    rows = [_row(cells, cell, measured, predicted) for cell in wanted if cell.key in measured]
    if not rows:
        raise ScenarioError(Problem("DIR", "no cell has measured values", str(cells.campaign.folder)))
    table = pl.DataFrame(rows, infer_schema_length=None)
    return Comparison(cells, registration, every, table)


def _row(
    cells: Cells,
    cell: Cell,
    measured: Mapping[tuple[Any, ...], Mapping[str, Estimate]],
    predicted: Mapping[tuple[Any, ...], Mapping[str, Any]],
) -> Mapping[str, Any]:
    of, prediction = measured[cell.key], predicted[cell.key]
    row: dict[str, Any] = {name: getattr(cell, name) for name in KEYS}
    for name in VALUES:
        for end, value in (("", of[name].value), ("_low", of[name].low), ("_high", of[name].high)):
            row[f"measured_{name}{end}"] = value
    for name in VALUES:
        row |= {f"predicted_{name}{end}": prediction[f"{name}{end}"] for end in ("", "_low", "_high")}
    row |= {name: prediction[name] for name in ("replicates", "iterations")}
    alone = None if cell.isolated else cells.isolated_of(cell)
    for name in VALUES:
        short = name[:-2]
        both = alone is not None and alone.key in measured and alone.key in predicted
        ratio = _over(of[name].value, measured[alone.key][name].value) if both and alone else None
        row[f"measured_{short}_ratio"] = ratio
        for end in ("", "_low", "_high"):
            base = predicted[alone.key][name] if both and alone else None
            row[f"predicted_{short}_ratio{end}"] = _over(prediction[f"{name}{end}"], base)
    row["verdict"] = verdict(row["measured_mean_ratio"], row["predicted_mean_ratio"], cells.campaign.judging)
    return row


def _over(value: float | None, base: float | None) -> float | None:
    return None if value is None or not base else value / base


def verdict(measured: float | None, predicted: float | None, judging: Judging) -> str | None:
    """Judge a predicted ratio of means by the measured one; None of an isolated run."""
    if measured is None or predicted is None:
        return None
    if measured > judging.slow_above:
        if within(measured, predicted, judging.factor):
            return RIGHT
        return MISS if predicted <= judging.calm_at_most else FAR
    if measured <= judging.calm_below:
        return RIGHT if predicted <= judging.calm_at_most else FALSE_ALARM
    return RIGHT if within(measured, predicted, judging.factor) else FAR


def within(measured: float, predicted: float, factor: float) -> bool:
    """Whether one is within a factor of the other."""
    return 1 / factor <= predicted / measured <= factor


def bars(rows: pl.DataFrame, judging: Judging) -> Iterator[Bar]:
    """The bars of a campaign on these rows."""
    from scipy.stats import spearmanr

    alone = rows.filter(pl.col("aggressor") == "none")
    off = (alone["predicted_median_s"] / alone["measured_median_s"] - 1).abs()
    near = int((off <= judging.isolated_within).sum())
    what = f"isolated medians within {judging.isolated_within:.0%}"
    yield Bar(what, near / alone.height if alone.height else None, 1.0, alone.height, near)
    beside = rows.filter(pl.col("measured_mean_ratio").is_not_null() & pl.col("predicted_mean_ratio").is_not_null())
    measured, predicted = (beside[f"{of}_mean_ratio"].to_numpy() for of in ("measured", "predicted"))
    slow, calm = measured > judging.slow_above, measured <= judging.calm_below
    ratio = predicted[slow] / measured[slow]
    met = int(((ratio <= judging.factor) & (ratio >= 1 / judging.factor)).sum())
    what = f"measured ratio above {judging.slow_above:g}: predicted within a factor of {judging.factor:g}"
    yield _of_shares(what, met, int(slow.sum()), judging.slow_share)
    met = int((predicted[calm] <= judging.calm_at_most).sum())
    what = f"measured ratio at most {judging.calm_below:g}: predicted at most {judging.calm_at_most:g}"
    yield _of_shares(what, met, int(calm.sum()), judging.calm_share)
    if judging.every_at_most is not None:
        met = int((predicted <= judging.every_at_most).sum())
        yield _of_shares(f"predicted ratio at most {judging.every_at_most:g}", met, len(predicted), 1.0)
    if judging.spearman is not None:
        enough = len(measured) >= 3 and len(numpy.unique(measured)) > 1 and len(numpy.unique(predicted)) > 1
        correlation = float(spearmanr(measured, predicted).statistic) if enough else None
        yield Bar("rank correlation of ratios (Spearman)", correlation, judging.spearman, len(measured))


def _of_shares(what: str, met: int, of: int, wanted: float) -> Bar:
    return Bar(what, met / of if of else None, wanted, of, met)
