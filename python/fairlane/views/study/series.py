"""The runs of studies in their charts and tables: a series for the default runs, and one for each treatment."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import altair
import polars as pl

from fairlane.results.study import StudyResults
from fairlane.study.conditions import CONDITION, with_condition
from fairlane.study.replication import outer_unit
from fairlane.views.charts import colour
from fairlane.views.tables import Column, Row, change, with_change
from fairlane.wording import with_half_width

DEFAULT = "default"
IMPROVEMENT, W = "Change against the default run", "Change against the isolated run (W)"
WORDS = {"improvement": IMPROVEMENT, "w": W}
"""Effects in words, the most interesting first."""
VALUE = Column("change", with_change("value"))
RUN = Column("runs", "run", left=True)


@dataclass(frozen=True)
class Series:
    """The default runs of a study over one baseline, or its runs with one treatment."""

    study: str
    results: StudyResults
    treatment: str
    label: str
    """What the tables of its study call it."""
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
    def work(self) -> pl.DataFrame:
        """The rows of all series without their parameters, which have other types in other studies.

        ``run`` is the name of the series, ``is_default`` whether it is one of default runs, ``unit`` what replicates
        are; ``place``, ``replicate`` and ``where`` are the placement, the replicate and the point in words.
        """
        return pl.concat([_in_words(one) for one in self.series], how="diagonal_relaxed")

    @cached_property
    def effects(self) -> dict[str, str]:
        """The effects that some row has, in words, the most interesting first."""
        return {name: words for name, words in WORDS.items() if any(one.work[name].count() for one in self.series)}

    @cached_property
    def effect(self) -> str:
        """The most interesting effect."""
        return next(iter(self.effects))

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

    def of_study(self, study: str) -> list[Series]:
        """The series of a study."""
        return [one for one in self.series if one.study == study]

    def colour(self, *, only: Sequence[str] | None = None, raised: bool = False) -> altair.Color:
        """The colours of the series, with those of ``only`` in the legend; default runs of a single study are grey."""
        greys = [one.name for one in self.series if one.is_default and not self.several]
        return colour("run", self.names, greys, shown=only, raised=raised)

    def with_effect(self, effect: str) -> list[str]:
        """The names of the series that have an effect."""
        return [one.name for one in self.series if one.work[effect].count()]


def _in_words(series: Series) -> pl.DataFrame:
    work = series.work
    names = dict(enumerate(series.results.meta.placements))
    other = pl.format("placement {}", "placement")
    place, seed = (
        pl.col("placement").replace_strict(names, default=other, return_dtype=pl.String),
        pl.format("seed {}", "seed"),
    )
    parts = {CONDITION: pl.col(CONDITION), "placement": pl.format("placement: {}", place), "seed": seed}
    several = [part for key, part in parts.items() if work[key].n_unique() > 1]
    return work.drop(work.columns[1 : work.columns.index("placement")]).with_columns(
        run=pl.lit(series.name),
        study=pl.lit(series.study),
        is_default=pl.lit(series.is_default),
        unit=pl.lit(series.unit),
        place=place,
        replicate=place if series.unit == "placement" else seed,
        where=pl.concat_str(several, separator=", ") if several else pl.format("point {}", "point"),
    )


def alone_everywhere(work: pl.DataFrame) -> bool:
    """Whether no scenario has two jobs."""
    return bool((work.group_by("point").agg(pl.col("job").n_unique())["job"] == 1).all())


def _series(study: str, results: StudyResults, several: bool) -> Iterator[Series]:
    work, _ = with_condition(results.work)
    unit = outer_unit(results.work)
    pairs = sorted(
        work.select("baseline", "treatment").unique(maintain_order=True).rows(), key=lambda of: of[1] != DEFAULT
    )
    default = [pair for pair in pairs if pair[1] == DEFAULT]
    for baseline, treatment in pairs:
        # Default runs are told apart by their baselines, where there are several.
        label = f"{DEFAULT} ({baseline or 'whole'})" if len(default) > 1 and treatment == DEFAULT else treatment
        rows = work.filter(baseline=baseline, treatment=treatment)
        yield Series(study, results, treatment, label, f"{study}: {label}" if several else label, rows, unit)


def in_words(row: Row, key: str = "value") -> str:
    """A change of a row with half the width of its interval."""
    return with_half_width(row[key], row[f"{key}_low"], row[f"{key}_high"], change)


def against(effect: str) -> str:
    """What an effect is a change against."""
    return "the default run" if effect == "improvement" else "the isolated run"
