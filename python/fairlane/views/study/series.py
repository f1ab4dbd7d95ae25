"""The runs of studies in their charts and tables: a series for the default runs, and one for each treatment."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import altair
import polars as pl

from fairlane.core.wording import with_half_width
from fairlane.results.study import StudyResults
from fairlane.study.conditions import CONDITION, with_condition
from fairlane.study.replicates import outer_unit
from fairlane.views.charts import colour
from fairlane.views.tables import Column, Row, change, with_change

DEFAULT = "default"
IMPROVEMENT, W = "Change against the default run", "Change against the isolated run (W)"
WORDS = {"improvement": IMPROVEMENT, "w": W}
"""Effects in words, the most interesting first."""
VALUE = Column("change", with_change("value"))
RUN = Column("runs", "run", left=True)


@dataclass(frozen=True)
class Compared:
    """Studies by name, of those that compare runs, and what is asked of all of them."""

    studies: Mapping[str, StudyResults]
    tables: Mapping[str, pl.DataFrame]
    """The rows of ``work`` of each study, those of default runs first, with their condition and what they are called.

    ``run`` is the name of their series in all charts, ``label`` that in tables of the study, ``unit`` what replicates
    are; ``place``, ``replicate`` and ``where`` are the placement, the replicate and the point in words.
    """

    @classmethod
    def of(cls, studies: Mapping[str, StudyResults]) -> "Compared":
        """The series of studies: of each the default runs, and those with each treatment."""
        drawn = {name: study for name, study in studies.items() if study.measured is None and study.work.height}
        return cls(drawn, {name: _called(name, study, several=len(studies) > 1) for name, study in drawn.items()})

    @property
    def several(self) -> bool:
        """Whether there are several studies."""
        return len(self.studies) > 1

    @cached_property
    def work(self) -> pl.DataFrame:
        """The rows of all studies without their parameters, which have other types in other studies."""
        tables = [of.drop(of.columns[1 : of.columns.index("placement")]) for of in self.tables.values()]
        return pl.concat(tables, how="diagonal_relaxed")

    @cached_property
    def effects(self) -> dict[str, str]:
        """The effects that some row has, in words, the most interesting first."""
        return {name: effect for name, effect in WORDS.items() if self.tables and self.work[name].count()}

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
        return self.work["run"].unique(maintain_order=True).to_list()

    @cached_property
    def units(self) -> str:
        """Name of replicates, in the plural: placements, seeds, or both in several studies."""
        return " and ".join(f"{unit}s" for unit in self.work["unit"].unique(maintain_order=True))

    def colour(self, *, only: Sequence[str] | None = None, raised: bool = False) -> altair.Color:
        """The colours of the series, with those of ``only`` in the legend; default runs of a single study are grey."""
        default = self.work.filter(pl.col("treatment") == DEFAULT)["run"]
        greys = [] if self.several else default.unique(maintain_order=True).to_list()
        return colour("run", self.names, greys, shown=only, raised=raised)

    def with_effect(self, effect: str) -> list[str]:
        """The names of the series that have an effect."""
        return self.work.drop_nulls(effect)["run"].unique(maintain_order=True).to_list()


def _called(study: str, results: StudyResults, *, several: bool) -> pl.DataFrame:
    work, _ = with_condition(results.work)
    is_default = pl.col("treatment") == DEFAULT
    # Default runs are told apart by their baselines, where there are several.
    baselines = work.filter(is_default)["baseline"].n_unique()
    default = pl.format(f"{DEFAULT} ({{}})", pl.col("baseline").replace("", "whole"))
    label = pl.when(is_default & (baselines > 1)).then(default).otherwise("treatment")
    names = dict(enumerate(results.meta.placements))
    other, seed = pl.format("placement {}", "placement"), pl.format("seed {}", "seed")
    place = pl.col("placement").replace_strict(names, default=other, return_dtype=pl.String)
    labels = {CONDITION: pl.col(CONDITION), "placement": pl.format("placement: {}", place), "seed": seed}
    parts = [part for key, part in labels.items() if work[key].n_unique() > 1]
    unit = outer_unit(work)
    work = work.with_columns(
        study=pl.lit(study),
        label=label,
        run=pl.lit(f"{study}: " if several else "") + label,
        unit=pl.lit(unit),
        place=place,
        replicate=place if unit == "placement" else seed,
        where=pl.concat_str(parts, separator=", ") if parts else pl.format("point {}", "point"),
    )
    runs = work.sort(~is_default, maintain_order=True)["run"].unique(maintain_order=True)
    return work.sort(pl.col("run").cast(pl.Enum(runs)), maintain_order=True)


def alone_everywhere(work: pl.DataFrame) -> bool:
    """Whether no scenario has two jobs."""
    return bool((work.group_by("point").agg(pl.col("job").n_unique())["job"] == 1).all())


def in_words(row: Row, key: str = "value") -> str:
    """A change of a row with half the width of its interval."""
    return with_half_width(row[key], row[f"{key}_low"], row[f"{key}_high"], change)


def against(effect: str) -> str:
    """Name the reference of an effect."""
    return "the default run" if effect == "improvement" else "the isolated run"
