"""The runs of studies in their charts and tables: a series for the default runs, and one for each treatment."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import altair
import polars as pl

from fairlane.results.study import StudyResults
from fairlane.statistics import Estimate
from fairlane.study.conditions import with_condition
from fairlane.study.replication import outer_unit
from fairlane.views.charts import colour
from fairlane.views.tables import Column, Row, change, with_change
from fairlane.wording import with_half_width

DEFAULT = "default"
IMPROVEMENT, W = "Change against the default run", "Change against the isolated run (W)"
WORDS = {"improvement": IMPROVEMENT, "w": W}
"""Effects in words, the most interesting first."""


@dataclass(frozen=True)
class Series:
    """The default runs of a study over one baseline, or its runs with one treatment."""

    study: str
    results: StudyResults
    baseline: str
    treatment: str
    name: str
    """What legends call it; no two have the same."""
    work: pl.DataFrame
    """Its rows of the table ``work``, with their condition."""
    unit: str
    """What replicates of the study are: placements or seeds."""

    @property
    def is_default(self) -> bool:
        """Whether these are default runs."""
        return self.treatment == DEFAULT


@dataclass(frozen=True)
class Compared:
    """Studies by name, of those that compare runs the series, and what is asked of all of them."""

    studies: Mapping[str, StudyResults]
    series: Sequence[Series]

    @classmethod
    def of(cls, studies: Mapping[str, StudyResults]) -> "Compared":
        """The series of studies: of each the default runs first."""
        own = {name: one for name, one in studies.items() if one.measured is None and one.work.height}
        return cls(own, [one for name, study in own.items() for one in _series(name, study, len(studies) > 1)])

    @property
    def several(self) -> bool:
        """Whether there are several studies."""
        return len(self.studies) > 1

    @cached_property
    def effects(self) -> list[str]:
        """The effects that some row has, the most interesting first."""
        return [name for name in WORDS if any(one.work[name].count() for one in self.series)]

    @cached_property
    def treated(self) -> bool:
        """Whether any run is compared with a default run."""
        return "improvement" in self.effects

    @cached_property
    def co_running(self) -> bool:
        """Whether any scenario has two jobs: otherwise there is nothing that W could show."""
        return not all(alone_everywhere(study.work) for study in self.studies.values())

    @property
    def names(self) -> list[str]:
        """The names of the series."""
        return [one.name for one in self.series]

    @cached_property
    def units(self) -> str:
        """What replicates are, in the plural: placements, seeds, or both in several studies."""
        return " and ".join(dict.fromkeys(f"{one.unit}s" for one in self.series))

    def colour(self, *, only: Sequence[str] | None = None, raised: bool = False) -> altair.Color:
        """The colours of the series, with those of ``only`` in the legend; default runs of a single study are grey."""
        greys = [one.name for one in self.series if one.is_default and not self.several]
        return colour("run", self.names, greys, shown=only, raised=raised)

    def with_effect(self, effect: str) -> list[str]:
        """The names of the series that have an effect."""
        return [one.name for one in self.series if one.work[effect].count()]


def alone_everywhere(work: pl.DataFrame) -> bool:
    """Whether no scenario has two jobs."""
    return bool((work.group_by("point").agg(pl.col("job").n_unique())["job"] == 1).all())


def _series(study: str, results: StudyResults, several: bool) -> Iterator[Series]:
    work, _ = with_condition(results.work)
    unit = outer_unit(results.work)
    pairs = list(work.select("baseline", "treatment").unique(maintain_order=True).iter_rows())
    default = [pair for pair in pairs if pair[1] == DEFAULT]
    for baseline, treatment in [*default, *(pair for pair in pairs if pair[1] != DEFAULT)]:
        name = run_name(baseline, treatment, len(default))
        rows = work.filter(baseline=baseline, treatment=treatment)
        yield Series(study, results, baseline, treatment, f"{study}: {name}" if several else name, rows, unit)


def run_name(baseline: str, treatment: str, baselines: int) -> str:
    """The treatment; of default runs what they are like, where there are several."""
    return f"{DEFAULT} ({baseline or 'whole'})" if baselines > 1 and treatment == DEFAULT else treatment


def ends(estimate: Estimate | None, key: str = "value") -> dict[str, float | None]:
    """An estimate as fields of a row: the value and the ends of its interval."""
    values = (None, None, None) if estimate is None else (estimate.value, estimate.low, estimate.high)
    return dict(zip((key, f"{key}_low", f"{key}_high"), values, strict=True))


def in_words(row: Row, key: str = "value") -> str:
    """A change of a row with half the width of its interval."""
    return with_half_width(row[key], row[f"{key}_low"], row[f"{key}_high"], change)


def against(effect: str) -> str:
    """What an effect is a change against."""
    return "the default run" if effect == "improvement" else "the isolated run"


VALUE = Column("change", with_change("value"))
RUN = Column("runs", "run", left=True)
