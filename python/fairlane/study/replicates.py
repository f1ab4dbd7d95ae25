"""Replicates of a study's conditions: as many as its effects need to be precise, where they are least certain.

A replicate is a point with a placement seed and a scenario seed of its own, so it varies everything that is left to
chance. Every condition (combination of cases, parameters and factors) begins with the same few. Then those whose effect
is least certain get half as many again, until the 95% interval of the mean over replicates is narrow enough under every
condition, or the replicates are used up. What is added depends on results alone: not on the number of workers, nor on
what was computed before an interruption.

*Points of a study with the same results, bit for bit: seeds, placements and factors that change nothing.* Found by the
digests of results, so it does not matter why they are the same. Points of one condition that repeat each other are one
replicate (``same_as`` in ``work``).

*Means over the placements and seeds of a study, with intervals.* The outer units are placements; where there is one
placement, seeds are. A unit's value is the mean over its seeds and jobs. With fewer than three units there is no
interval, unless it is one run of one job: then it is the run's own.

Points of a condition with the same results, bit for bit, are one replicate.

A run of a job with fewer than two iterations has no time per iteration and no rate: it was too slow. A mean over the
other runs would be that of the fast ones, so there is none.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil
from typing import Any

import polars as pl

from fairlane.core.statistics import SPREAD, Estimate, over_replicates, spread
from fairlane.core.wording import fine_percent, listed, percent, plural
from fairlane.results import notes
from fairlane.results.derive import interval
from fairlane.results.notes import sentence
from fairlane.study.conditions import condition_of
from fairlane.study.repetition import Repeat
from fairlane.study.setting import Point

_RUN = ("baseline", "treatment", "job")


def repeated(runs: pl.DataFrame, work: pl.DataFrame | None, *, once: bool = True) -> Iterator[str]:
    """Sentences about points, and about cases, parameters and factors, that change nothing.

    A study that measures has no table ``work``: then the digests of ``runs`` say so. ``once``: whether they count once.
    """
    conditions = runs.columns[1 : runs.columns.index("placement")]
    measured = runs.filter(pl.col("digest").is_not_null()).with_columns(
        same_as=pl.col("point").min().over(*conditions, *_RUN, "digest")
    )
    yield from _points(measured if work is None else work, conditions, once)
    if no_effect := _like_default(runs):
        words = "changes nothing: its" if len(no_effect) == 1 else "change nothing: their"
        yield f"{listed(no_effect)} {words} results are those of the default runs, bit for bit, at all points."
    for name in conditions:
        if runs[name].n_unique() > 1 and _changes_nothing(runs, name, [one for one in conditions if one != name]):
            yield f"{name} changes nothing: results are the same, bit for bit, at all its values."


def _like_default(runs: pl.DataFrame) -> list[str]:
    """The treatments whose results are those of the default run at every point."""
    default = runs.filter(pl.col("treatment") == "default").select("point", "baseline", default="digest")
    treated = runs.filter(pl.col("job").is_null(), pl.col("treatment") != "default")
    same = treated.join(default, on=["point", "baseline"], how="left").group_by("treatment", maintain_order=True)
    unchanged = same.agg((pl.col("digest") == pl.col("default")).fill_null(value=False).all().alias("same"))
    return unchanged.filter("same")["treatment"].to_list()


def _points(table: pl.DataFrame, conditions: Sequence[str], once: bool) -> Iterator[str]:
    """Yield sentences on points that repeat another of their condition, by treatment."""
    treatments = table["treatment"].unique(maintain_order=True).to_list()
    by_count: dict[tuple[int, int, tuple[str, ...]], list[str]] = {}
    for treatment in treatments:
        of = table.filter(pl.col("treatment") == treatment)
        points, repeats = (rows["point"].n_unique() for rows in (of, of.filter(pl.col("same_as") < pl.col("point"))))
        if repeats:
            by_count.setdefault((repeats, points, _constant(of, conditions)), []).append(treatment)
    for (repeats, points, constant), names in by_count.items():
        whose = "" if names == treatments else f" in {listed(names)} runs"
        yield sentence(repeats, points, constant, what="point", whose=whose, once=once)


def _constant(table: pl.DataFrame, conditions: Sequence[str]) -> tuple[str, ...]:
    """Names of those among placements and seeds that change nothing in any condition."""
    varied = [name for name in ("placement", "seed") if table[name].n_unique() > 1]
    if table.group_by(*conditions, "baseline").agg(pl.col("same_as").n_unique())["same_as"].max() == 1:
        return tuple(f"{name}s" for name in varied)
    names = []
    for name, other in (("placement", "seed"), ("seed", "placement")):
        groups = table.group_by(*conditions, "baseline", other).agg(pl.col(name, "same_as").n_unique())
        if groups[name].max() != 1 and groups["same_as"].max() == 1:
            names.append(f"{name}s")
    return tuple(names)


def _changes_nothing(runs: pl.DataFrame, name: str, others: Sequence[str]) -> bool:
    """Whether all values of a column have the same results, wherever points differ in nothing else."""
    groups = runs.group_by(*others, "placement", "seed", *_RUN).agg(
        pl.col(name).n_unique().alias("values"),
        pl.col("digest").n_unique(),
        pl.col("digest").null_count().alias("none"),
    )
    compared = groups.filter(pl.col("values") > 1)
    return compared.height > 0 and bool(((compared["digest"] == 1) & (compared["none"] == 0)).all())


EFFECTS = ("w", "improvement")
"""Effects in ``work``: their means are over the rows that have one."""
PACE = ("seconds_per_iteration", "iterations_per_second")
"""Times and rates in ``work``: there is a mean only where every row has a value."""


def distinct(work: pl.DataFrame) -> pl.DataFrame:
    """The rows of ``work`` without those that repeat another of the same condition (``same_as``)."""
    if "same_as" not in work.columns:
        return work
    row = [name for name in ("same_as", "baseline", "treatment", "job") if name in work.columns]
    return notes.distinct(work, row)


def outer_unit(work: pl.DataFrame) -> str:
    """The column that has the outer units: ``placement``, or ``seed`` where there is one placement."""
    return "placement" if distinct(work)["placement"].n_unique() > 1 else "seed"


def estimate(rows: pl.DataFrame, column: str, unit: str, *, complete: bool = False) -> Estimate | None:
    """The mean of a column of ``work`` over replicates; None without a value.

    With ``complete``, and for columns of ``PACE``, None also if any row has no value.
    """
    rows = distinct(rows)
    known = rows.filter(pl.col(column).is_not_null())
    if known.height < rows.height and (complete or column in PACE):
        return None
    if known.height == 1:
        [value, low, high] = known.select(column, f"{column}_low", f"{column}_high").row(0)
        return Estimate(value, low, high, count=1)
    by_seed = known.group_by(unit, "seed" if unit != "seed" else "placement", maintain_order=True).agg(
        pl.col(column).mean()
    )
    units = by_seed.group_by(unit, maintain_order=True).agg(column)[column].to_list()
    return over_replicates(units)


def over_points(
    work: pl.DataFrame, by: Sequence[str], columns: Sequence[str] = EFFECTS, unit: str = ""
) -> pl.DataFrame:
    """One row per group of rows of ``work``: each column's mean as by ``estimate``, and the ends of its interval.

    ``unit`` is what replicates are, by default the ``outer_unit`` of the rows.
    """
    unit = unit or outer_unit(work)
    rows = []
    for key, of_group in work.group_by(by, maintain_order=True):
        cells = [interval(column, estimate(of_group, column, unit)) for column in columns]
        cells += [_spread(of_group, column, unit) for column in columns if column in PACE]
        rows.append(dict(zip(by, key, strict=True)) | {name: it for one in cells for name, it in one.items()})
    schema: dict[str, Any] = {name: work.schema[name] for name in by}
    schema |= {f"{column}{end}": pl.Float64 for column in columns for end in ("", "_low", "_high")}
    schema |= {f"{column}{end}": pl.Float64 for column in columns if column in PACE for end in SPREAD}
    return pl.DataFrame(rows, schema=schema)


def _spread(rows: pl.DataFrame, column: str, unit: str) -> dict[str, float | None]:
    """The median, the least and the greatest of the units' means; nothing of a single run."""
    if rows.height < 2 or rows[column].null_count():
        return {}
    ends = spread(rows.group_by(unit).agg(pl.col(column).mean())[column].to_list())
    return {f"{column}{end}": value for end, value in zip(SPREAD, ends, strict=True)} if ends else {}


GROWTH = 0.5
"""By which share of its replicates a condition grows at a time."""


@dataclass
class Allocation:
    """Number of replicates of each condition, and the precision of its effects."""

    asked: Repeat
    counts: dict[str, int] = field(default_factory=dict)
    """Replicates of each condition so far, by its key."""
    _names: dict[str, str] = field(default_factory=dict)
    _halves: dict[str, float | None] = field(default_factory=dict)

    def further(self, work: pl.DataFrame, points: Sequence[Point]) -> bool:
        """Adds replicates by the results of these points, and says whether there are any to add."""
        of_point: dict[str, list[int]] = {}
        for number, point in enumerate(points):
            key = key_of(point.case, point.parameters)
            of_point.setdefault(key, []).append(number)
            self._names[key] = condition_of({"case": point.case, **point.parameters}) or "the only condition"
        self.counts = {key: len(numbers) for key, numbers in of_point.items()}
        self._halves = {
            key: self._half(work.filter(pl.col("point").is_in(numbers))) for key, numbers in of_point.items()
        }
        left = max(0, self.asked.at_most - sum(self.counts.values()))
        before = dict(self.counts)
        for key in sorted(self._wide(), key=lambda one: -(self._halves[one] or 0.0)):
            more = min(left, ceil(GROWTH * self.counts[key]), self._missing(key)) if self._halves[key] else 0
            self.counts[key] += more
            left -= more
        return self.counts != before

    def _wide(self) -> list[str]:
        """The conditions whose effects are not precise enough, or not known."""
        return [key for key, half in self._halves.items() if half is None or half > self.asked.precision]

    def _missing(self, key: str) -> int:
        """About how many more a condition needs: the width falls with the root of their number."""
        wider = (self._halves[key] or 0.0) / self.asked.precision
        return max(1, ceil(self.counts[key] * wider**2) - self.counts[key])

    def _half(self, work: pl.DataFrame) -> float | None:
        """Half of the widest interval of a condition's effects; None if one of them has none, 0 if nothing varies."""
        if work["point"].n_unique() > 1 == distinct(work)["point"].n_unique():
            return 0.0
        halves = [effect.half_width for effect in effects(work, self.asked.of).values()]
        known = [half for half in halves if half is not None]
        return max(known) if known and len(known) == len(halves) else None

    @property
    def half_width(self) -> float | None:
        """Half of the widest interval of an effect; None if one has none."""
        known = [half for half in self._halves.values() if half is not None]
        return max(known) if known and len(known) == len(self._halves) else None

    def words(self) -> str:
        """Format the precision of the effects, and the replicates that the others would need."""
        total, wanted = plural(sum(self.counts.values()), "replicate"), f"±{fine_percent(self.asked.precision)}"
        wide = self._wide()
        if not wide:
            everywhere = "" if len(self.counts) == 1 else " under every condition"
            return f"Mean effects over jobs are precise to {wanted}{everywhere}, with {total} in all."
        each = [f"{self._names[key]} ({self._how_far(key)})" for key in wide]
        of = "" if len(self.counts) == 1 else f" under {len(wide)} of {plural(len(self.counts), 'condition')}"
        return f"Mean effects over jobs are not precise to {wanted}{of}, with {total} in all: {listed(each)}."

    def _how_far(self, key: str) -> str:
        half, count = self._halves[key], plural(self.counts[key], "replicate")
        if half is None:
            return f"not measured with {count}"
        return f"±{percent(half)} with {count}; about {self.counts[key] + self._missing(key):,} needed"


def effects(work: pl.DataFrame, of: str | None) -> Mapping[str, Estimate]:
    """By treatment the effect over replicates: its improvement; without treatments W of the default runs."""
    column = of or ("improvement" if work["improvement"].count() else "w")
    by_treatment: dict[str, Estimate] = {}
    for (treatment,), rows in work.group_by("treatment", maintain_order=True):
        effect = estimate(rows, column, "placement") if rows[column].count() else None
        if effect is not None:
            by_treatment[str(treatment)] = effect
    return by_treatment


def key_of(case: str | None, parameters: Mapping[str, Any]) -> str:
    """A condition as text that tells it from others."""
    return json.dumps([case, dict(parameters)], sort_keys=True, default=str)
