"""Results of a reproduction, and of a robustness map: tables as data frames, and the folder that they are in."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import polars as pl
from pydantic import Field

from fairlane.core.errors import ResultsError
from fairlane.core.wording import plural
from fairlane.inputs.table import Table
from fairlane.results.base import Results
from fairlane.results.manifest import Sealed, read_as, seal

META, FIGURES, MAP = "reproduction.json", "charts.json", "robustness.json"
REPRODUCTION_SCHEMA_VERSION = 1
"""Version of the layout of the folders of reproductions and robustness maps."""
ROBUST, DEPENDS, RARE, CALIBRATED = "robust", "depends", "rarely holds", "calibrated"
"""Verdicts of a map: holds at 90% of the points or more; between; at 10% or fewer; an input was chosen by it."""
TOO_FEW = "too few points"
"""Of which nothing can be said."""
MAP_VERDICTS = (ROBUST, DEPENDS, RARE, CALIBRATED, TOO_FEW)
"""In the order in which figures and pages name them."""
MAP_TABLES = ("robustness", "robustness-clauses", "robustness-indices", "robustness-levels")
"""Tables of a map, which are CSV files: every number at every point, clauses, indices, shares by level."""


class Number(Table):
    """A number of a clause over replicates."""

    label: str
    """The measured quantity."""
    band: str
    """The interval in which it has to be, as text."""
    reported: str = ""
    """The paper's value."""
    replicates: list[int]
    values: list[float | None]
    """By replicate; None where nothing was measured."""
    lows: list[float | None]
    highs: list[float | None]
    """Ends of the band, by replicate; None where it has none."""
    holds: list[bool]


class ClauseResult(Table):
    """A clause and what was measured."""

    verdict: str
    brief: str = ""
    """The verdict, and whether the clause can hardly fail."""
    explained: str
    """The verdict, with the input that was chosen by the number, or why the clause can hardly fail."""
    numbers: list[Number]


class ClaimResult(Table):
    """A claim and what was measured."""

    id: str
    where: str
    """The place in the paper."""
    paper: str
    """The paper's statement."""
    verdict: str
    words: str
    """The verdict with the number of replicates and its reason."""
    brief: str = ""
    """The same without the reason."""
    missing: list[str] = Field(default_factory=list)
    clauses: list[ClauseResult]
    under: list["ClaimResult"] = Field(default_factory=list)
    """The same claim by variants of the paper's folder: their ``id`` has the variant."""


class ReproductionMeta(Table):
    """Content of ``reproduction.json``."""

    schema_version: int = REPRODUCTION_SCHEMA_VERSION
    version: str
    """Version of fairlane."""
    paper: str
    title: str
    citation: str
    quick: bool
    """Whether it is scaled."""
    simulator: str
    """A digest of the simulator's files."""
    simulations: int
    cpu_s: float
    notes: list[str] = Field(default_factory=list)
    """Notes on the results, a sentence each."""
    claims: list[ClaimResult]


class ChartData(Table):
    """A chart of a figure: how it is drawn, and the rows of its query by column."""

    spec: dict[str, Any]
    """A specification of Vega-Lite without data."""
    columns: dict[str, list[Any]]
    rows: int
    """Number of rows of the query; of many, evenly spaced ones are kept."""


class FigureData(Table):
    """A figure: its file without a suffix, title, note, charts."""

    file: str
    title: str
    note: str = ""
    columns: int | None = None
    """Panels beside each other."""
    charts: list[ChartData]


class _Figures(Table):
    figures: list[FigureData]


class MapMeta(Table):
    """Content of ``robustness.json``."""

    schema_version: int = REPRODUCTION_SCHEMA_VERSION
    version: str
    paper: str
    title: str
    simulator: str
    lines: list[str]
    """Number of points, the system, and the processor time."""
    parameters: list[dict[str, str]]
    """``name``, ``title``, ``range``, ``default`` and ``source`` of each."""
    left_out: list[str] = Field(default_factory=list)


@dataclass(frozen=True, repr=False)
class RobustnessResults(Results):
    """A robustness map."""

    meta: MapMeta
    frames: Mapping[str, pl.DataFrame]
    """Its tables by name."""
    folder: Path | None = None
    """Its folder."""

    TABLES = ()

    def tables(self) -> dict[str, pl.DataFrame]:
        """Every table by name."""
        return {name.replace("-", "_"): table for name, table in self.frames.items()}

    def headline(self) -> str:
        """Subject of the map, in a line."""
        return f"{self.meta.title}: robustness of {plural(self.frames['robustness-clauses'].height, 'clause')}"

    @classmethod
    def load(cls, folder: Path) -> Self:
        """Reads a map from its folder. Raises ``ResultsError`` if it is not complete."""
        return cls._of(Sealed.open(folder, "reproduction", REPRODUCTION_SCHEMA_VERSION))

    @classmethod
    def _of(cls, sealed: Sealed) -> Self:
        frames = {name: _csv(sealed, name) for name in MAP_TABLES}
        return cls(read_as(MapMeta, sealed.path(MAP)), frames, sealed.folder)


@dataclass(frozen=True, repr=False)
class ReproductionResults(Results):
    """All results of a reproduction."""

    meta: ReproductionMeta
    """Provenance, and the claims with their numbers."""
    claims: pl.DataFrame
    """One row per claim."""
    clauses: pl.DataFrame
    """One row per number of a clause and replicate."""
    cells: pl.DataFrame
    """One row per simulation: the time that it took, s."""
    figures: Sequence[FigureData] = ()
    """The data of the figures of ``figures.toml``."""
    robustness: RobustnessResults | None = None
    """The robustness map in the same folder, if there is one."""
    folder: Path | None = None
    """Its folder."""

    TABLES = ("claims", "clauses", "cells")

    def headline(self) -> str:
        """Title, in a line."""
        scaled = " (scaled)" if self.meta.quick else ""
        return f"{self.meta.title}{scaled}: {plural(len(self.meta.claims), 'claim')}"

    @classmethod
    def load(cls, folder: Path) -> Self:
        """Reads a reproduction from its folder. Raises ``ResultsError`` if it is not complete."""
        sealed = Sealed.open(folder, "reproduction", REPRODUCTION_SCHEMA_VERSION)
        meta = read_as(ReproductionMeta, sealed.path(META))
        tables = {name: _csv(sealed, name) for name in cls.TABLES}
        figures = read_as(_Figures, sealed.path(FIGURES)).figures if FIGURES in sealed else []
        robustness_map = RobustnessResults._of(sealed) if MAP in sealed else None
        return cls(meta, **tables, figures=figures, robustness=robustness_map, folder=folder)


def is_reproduction(folder: Path) -> bool:
    """Whether a folder is one of a reproduction that was stored without what pages need: by an earlier version."""
    return (folder / "claims.csv").is_file() and not (folder / META).is_file()


def write_figures(path: Path, figures: Sequence[FigureData]) -> None:
    """Writes the data of figures."""
    path.write_text(_Figures(figures=list(figures)).model_dump_json(), encoding="utf-8")


def seal_reproduction(folder: Path) -> None:
    """Writes the manifest over all tables in the folder, of a reproduction and of a map. Raises ``ResultsError``."""
    tables = [path.name for path in folder.iterdir() if path.suffix in (".csv", ".parquet")]
    texts = [name for name in (META, FIGURES, MAP) if (folder / name).is_file()]
    seal(folder, "reproduction", REPRODUCTION_SCHEMA_VERSION, [*tables, *texts])


def _csv(sealed: Sealed, name: str) -> pl.DataFrame:
    path = sealed.path(f"{name}.csv")
    try:
        return pl.read_csv(path, infer_schema_length=None)
    except (pl.exceptions.PolarsError, OSError) as error:
        raise ResultsError(f"{path}: cannot be read: {str(error).splitlines()[0]}") from error
