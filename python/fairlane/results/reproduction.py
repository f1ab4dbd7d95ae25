"""Results of a reproduction, and of a robustness map: tables as data frames, and the folder that they are in."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, groupby
from operator import itemgetter
from pathlib import Path
from typing import Any, Self

import polars as pl
from pydantic import Field

from fairlane.core.errors import ResultsError
from fairlane.core.wording import plural, significant
from fairlane.inputs.table import Table
from fairlane.results.base import Results
from fairlane.results.manifest import Sealed, read_as, seal
from fairlane.results.parquet import read_parquet
from fairlane.results.schemas import MAP, VERDICTS, types

META, FIGURES, MAP_META = "reproduction.json", "charts.json", "robustness.json"
TABLE = "verdicts.parquet"
REPRODUCTION_SCHEMA_VERSION = 2
"""Version of the layout of the folders of reproductions and robustness maps."""
ROBUST, DEPENDS, RARE, CALIBRATED = "robust", "depends", "rarely holds", "calibrated"
"""Verdicts of a map: holds at 90% of the points or more; between; at 10% or fewer; an input was chosen by it."""
TOO_FEW = "too few points"
"""Of which nothing can be said."""
MAP_VERDICTS = (ROBUST, DEPENDS, RARE, CALIBRATED, TOO_FEW)
"""In the order in which figures and pages name them."""


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
        frames = {name: _csv(sealed, name, types(schema)) for name, schema in MAP.items()}
        return cls(read_as(MapMeta, sealed.path(MAP_META)), frames, sealed.folder)


@dataclass(frozen=True, repr=False)
class ReproductionResults(Results):
    """All results of a reproduction."""

    meta: ReproductionMeta
    """Provenance."""
    verdicts: pl.DataFrame
    """The claims with their clauses and numbers: ``schemas.VERDICTS``."""
    cells: pl.DataFrame
    """One row per simulation: the time that it took, s."""
    figures: Sequence[FigureData] = ()
    """The data of the figures of ``figures.toml``."""
    robustness: RobustnessResults | None = None
    """The robustness map in the same folder, if there is one."""
    folder: Path | None = None
    """Its folder."""

    TABLES = ("claims", "clauses", "cells", "verdicts")

    @cached_property
    def claims(self) -> pl.DataFrame:
        """One row per claim, with its numbers as text."""
        return pl.DataFrame([_claim(settings[0]) for settings in claims_of(self.verdicts)])

    @cached_property
    def clauses(self) -> pl.DataFrame:
        """One row per number of a clause and replicate."""
        share = pl.col("clause_held") / pl.col("clause_replicates")
        return self.verdicts.filter(pl.col("number").is_not_null()).with_columns(share=share).select(CLAUSE_COLUMNS)

    def headline(self) -> str:
        """Title, in a line."""
        scaled = " (scaled)" if self.meta.quick else ""
        return f"{self.meta.title}{scaled}: {plural(self.verdicts['claim'].n_unique(), 'claim')}"

    @classmethod
    def load(cls, folder: Path) -> Self:
        """Reads a reproduction from its folder. Raises ``ResultsError`` if it is not complete."""
        sealed = Sealed.open(folder, "reproduction", REPRODUCTION_SCHEMA_VERSION)
        meta = read_as(ReproductionMeta, sealed.path(META))
        verdicts = read_parquet(sealed.path(TABLE), VERDICTS)
        figures = read_as(_Figures, sealed.path(FIGURES)).figures if FIGURES in sealed else []
        robustness_map = RobustnessResults._of(sealed) if MAP_META in sealed else None
        cells = _csv(sealed, "cells")
        return cls(meta, verdicts, cells, figures=figures, robustness=robustness_map, folder=folder)


Row = Mapping[str, Any]
"""A row of the table of verdicts."""
CLAUSE_COLUMNS = (
    *("claim", "clause", "measured", "replicate", "value", "low", "high", "in_band", "scaled", "simulator", "variant"),
    *("median", "min", "max", "share", "clause_verdict", "claim_verdict"),
)
"""Columns of ``clauses.csv``."""
_ANSWERS = {"holds": "yes", "contradicted": "no", "not run": "-"}


def claims_of(verdicts: pl.DataFrame) -> Iterator[list[list[Row]]]:
    """For each claim the rows of each of its settings: the folder itself or a variant, then the other variants."""
    for _, claim in groupby(verdicts.iter_rows(named=True), itemgetter("claim")):
        yield [list(rows) for _, rows in groupby(claim, itemgetter("variant"))]


def clauses_of(setting: Sequence[Row]) -> Iterator[list[list[Row]]]:
    """For each clause that has numbers the rows of each number, which are its replicates."""
    measured = (row for row in setting if row["number"] is not None)
    for _, clause in groupby(measured, itemgetter("clause")):
        yield [list(rows) for _, rows in groupby(clause, itemgetter("number"))]


def numbers_of(setting: Sequence[Row]) -> Iterator[list[Row]]:
    """The rows of each number."""
    return chain.from_iterable(clauses_of(setting))


def held_of(number: Sequence[Row]) -> int:
    """In how many replicates a number is in its band."""
    return sum(row["in_band"] for row in number)


def spread_of(number: Sequence[Row]) -> str:
    """Median and range over replicates, as text."""
    row = number[0]
    if row["median"] is None:
        return "–"
    middle, least, greatest = (significant(row[name]) for name in ("median", "min", "max"))
    return middle if least == greatest else f"{middle} ({least} to {greatest})"


def clause_words(row: Row) -> str:
    """The verdict on a clause, and whether it says little."""
    return f"{row['clause_verdict']}, near certain" if row["near_certain"] else str(row["clause_verdict"])


def explained(row: Row) -> str:
    """The same with the input that was chosen by the number, or why the clause can hardly fail, or by chance."""
    words = clause_words(row)
    return f"{words}: {row['clause_why']}" if row["clause_why"] else words


def _claim(setting: Sequence[Row]) -> Row:
    """A row of ``claims.csv``: the numbers in the first replicate, over all replicates where there are several."""
    row = setting[0]
    return {
        **{name: row[name] for name in ("claim", "where", "paper")},
        "measured": "; ".join(map(_measured, numbers_of(setting))),
        "missing": "; ".join(row["missing"]),
        "holds": _ANSWERS.get(row["verdict"], row["verdict"]),
        "verdict": row["line"],
    }


def _measured(number: Sequence[Row]) -> str:
    """A number in words: that of the first replicate, and over several their median and range."""
    row, held = number[0], held_of(number)
    if row["replicates"] <= 1 or row["median"] is None:
        return f"{row['text']}: {'yes' if row['in_band'] else 'no'}"
    return f"{row['text']}; over {len(number)} replicates {spread_of(number)}: {held} of {len(number)} in the band"


def is_reproduction(folder: Path) -> bool:
    """Whether a folder is one of a reproduction that was stored without what pages need: by an earlier version."""
    return (folder / "claims.csv").is_file() and not (folder / META).is_file()


def write_figures(path: Path, figures: Sequence[FigureData]) -> None:
    """Writes the data of figures."""
    path.write_text(_Figures(figures=list(figures)).model_dump_json(), encoding="utf-8")


def seal_reproduction(folder: Path) -> None:
    """Writes the manifest over all tables in the folder, of a reproduction and of a map. Raises ``ResultsError``."""
    tables = [path.name for path in folder.iterdir() if path.suffix in (".csv", ".parquet")]
    texts = [name for name in (META, FIGURES, MAP_META) if (folder / name).is_file()]
    seal(folder, "reproduction", REPRODUCTION_SCHEMA_VERSION, [*tables, *texts])


def _csv(sealed: Sealed, name: str, columns: Mapping[str, Any] | None = None) -> pl.DataFrame:
    path = sealed.path(f"{name}.csv")
    try:
        return pl.read_csv(path, infer_schema_length=None, schema_overrides=columns)
    except (pl.exceptions.PolarsError, OSError) as error:
        raise ResultsError(f"{path}: cannot be read: {str(error).splitlines()[0]}") from error
