"""Replicates of a study's conditions: as many as its effects need to be precise, where they are least certain.

A replicate is a point with a placement seed and a scenario seed of its own, so it varies everything that is left to
chance. Every condition (combination of cases, parameters and factors) begins with the same few. Then those whose effect
is least certain get half as many again, until the 95% interval of the mean over replicates is narrow enough under every
condition, or the replicates are used up. What is added depends on results alone: not on the number of workers, nor on
what was computed before an interruption.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil
from typing import TYPE_CHECKING, Any, Literal

import polars as pl
from pydantic import Field

from fairlane.inputs.table import Table
from fairlane.scenario.until import Share
from fairlane.statistics import Estimate
from fairlane.study.conditions import condition_of
from fairlane.study.replication import distinct, estimate
from fairlane.wording import fine_percent, listed, percent, plural

if TYPE_CHECKING:
    from fairlane.study.study import Point

GROWTH = 0.5
"""By which share of its replicates a condition grows at a time."""


class Replicates(Table):
    """How many replicates a study has: as many as a precision needs."""

    precision: Share
    """What half of the 95% interval of every effect, the mean over jobs, may be at most, as ``"0.5%"``."""
    at_most: int = Field(ge=3)
    """Replicates of all conditions together after which none is added; no fewer than those that are always there."""
    at_least: int = Field(default=5, ge=3)
    """Replicates of each condition that are always there."""
    of: Literal["improvement", "w"] | None = None
    """The effect: by default the improvement of every treatment, or W of a study without treatments."""


@dataclass
class Allocation:
    """How many replicates each condition has, and how certain its effects are."""

    asked: Replicates
    counts: dict[str, int] = field(default_factory=dict)
    """Replicates of each condition so far, by its key."""
    _names: dict[str, str] = field(default_factory=dict)
    _halves: dict[str, float | None] = field(default_factory=dict)

    def further(self, work: pl.DataFrame, points: Sequence["Point"]) -> bool:
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
        halves = [found.half_width for found in effects(work, self.asked.of).values()]
        known = [half for half in halves if half is not None]
        return max(known) if known and len(known) == len(halves) else None

    def words(self) -> str:
        """What was found: how precise the effects are, and how many replicates the others would need."""
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
    found: dict[str, Estimate] = {}
    for (treatment,), rows in work.group_by("treatment", maintain_order=True):
        one = estimate(rows, column, "placement") if rows[column].count() else None
        if one is not None:
            found[str(treatment)] = one
    return found


def key_of(case: str | None, parameters: Mapping[str, Any]) -> str:
    """A condition as text that tells it from others."""
    return json.dumps([case, dict(parameters)], sort_keys=True, default=str)
