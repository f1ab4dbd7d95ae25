"""The files of a reproduction: the tables of ``paper.toml``, ``claims.toml`` and ``figures.toml`` of its folder.

Study files and perhaps a ``method.py`` are in the same folder; ``docs/reproduction/folders.md`` has an example.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal, Self, TypeVar

from pydantic import AfterValidator, Field, field_validator, model_validator
from pydantic_core import from_json

from fairlane.core.errors import Problem, ScenarioError
from fairlane.inputs.problems import Problems
from fairlane.inputs.table import Table
from fairlane.views.vegalite import problems_of

BAND = re.compile(r"(?P<operator>[<>]=?|=)\s*(?P<bound>[\w.+-]+)|\[\s*(?P<low>[\w.+-]+)\s*,\s*(?P<high>[\w.+-]+)\s*\]")
"""A comparison with a number or a column of the query, or an interval of two."""


class _Different(Table):
    """Changes to a study file."""

    set: dict[str, Any] = Field(default_factory=dict)
    """Keys of the study file by dotted path; of a function its arguments."""
    scenario: dict[str, Any] = Field(default_factory=dict)
    """Keys of the scenario by dotted path."""
    only: dict[str, list[str]] = Field(default_factory=dict)
    """Levels to run, by factor; by default all."""
    rules: list[dict[str, Any]] = Field(default_factory=list)
    """Rules in addition to those of the study file."""
    note: str = ""
    """Difference of the study from the paper's, or the reason why it is omitted."""


class Change(_Different):
    """Changes of studies: for ``--quick``, of a variant, or of a robustness map. A ``note`` makes claims *scaled*."""

    skip: bool = False
    """Whether the study is omitted."""

    def updated(self, other: Change) -> Change:
        """Both, where ``other`` says it in place of this."""
        return Change(
            set={**self.set, **other.set},
            scenario={**self.scenario, **other.scenario},
            only={**self.only, **other.only},
            rules=[*self.rules, *other.rules],
            skip=self.skip or other.skip,
            note=other.note or self.note,
        )


OWN_FILES = (
    "cells.csv",
    "charts.json",
    "claims.csv",
    "claims.png",
    "clauses.csv",
    "manifest.json",
    "report.md",
    "reproduction.json",
    "verdicts.md",
    "verdicts.parquet",
)
"""Names of files that every reproduction has: no table, text or figure may have one of them."""


def file_name(given: str) -> str:
    """The name of a file in the folder of results. Raises ``Problems`` for one that would be elsewhere."""
    if not given or given.startswith(".") or any(sign in given for sign in "/\\\0:"):
        raise Problems(Problem("", "is no name of a file", given, "a name without a folder that begins with no point"))
    return given


FileName = Annotated[str, AfterValidator(file_name)]


def _one_of(table: StudyEntry | Derived, key: str) -> None:
    """Raises ``Problems`` unless a table has either a key or ``call``."""
    if (getattr(table, key) is None) == (table.call is None):
        raise Problems(Problem(key, "needs one of both", allowed=f"{key} or call"))


class Conditional(Table):
    """An output that depends on studies."""

    studies: list[str] = Field(default_factory=list)
    """It is produced if one of these was run; by default always."""
    complete: bool = False
    """Whether all of these are required, without failures."""


class StudyEntry(_Different):
    """A study of the paper: a study file with some keys replaced, or a function of ``method.py``."""

    name: str = Field(min_length=1)
    """Its name in claims and queries."""
    file: str | None = None
    """The study file."""
    call: str | None = None
    """Instead of a study file, ``method.py:name`` of a function that returns tables."""
    title: str = ""
    """Its subject, in one line."""
    figure: str = ""
    """The paper's figure."""
    differs: str = ""
    """A choice of the model that is not the paper's and takes nothing away: shown, without an effect on verdicts."""
    quick: Change = Field(default_factory=Change)
    """Changes for ``--quick``, in addition to those of the paper for all studies with this file."""

    @model_validator(mode="after")
    def _given(self) -> Self:
        _one_of(self, "file")
        return self


class Derived(Conditional):
    """A table derived from others, by SQL or by a function of ``method.py``; each may use those before it."""

    name: str = Field(pattern=r"^[A-Za-z_]\w*$")
    """Its name."""
    sql: str | None = None
    """One SELECT."""
    call: str | None = None
    """Instead of ``sql``, ``method.py:name`` of a function of a ``Database`` that returns one or more data frames."""
    csv: FileName | None = None
    """Name of a CSV file in which it is stored; with ``{column}`` in it a file for each value of the column."""
    parquet: FileName | None = None
    """The same as Parquet, with all digits."""

    @model_validator(mode="after")
    def _given(self) -> Self:
        _one_of(self, "sql")
        return self


class Text(Conditional):
    """A text file, such as a data sheet."""

    file: FileName
    """Its name."""
    text: str
    """Its text; columns of the query in braces are replaced."""
    sql: str
    """One SELECT, with one row."""


class Replicates(Table):
    """Differences between replicates of a paper."""

    varies: str = "every seed of its studies"
    """Choices of chance in the paper that replicates draw again, as text."""
    fixed: list[str] = Field(default_factory=list)
    """Studies in which nothing is left to chance: they are run once, for all replicates."""


class Variant(Table):
    """Another model of a paper's system: what it changes in all studies, in a study file, or in a study."""

    title: str = Field(min_length=1)
    """The difference, in a line."""
    all: Change = Field(default_factory=Change)
    """Changes to all studies with a study file."""
    study: dict[str, Change] = Field(default_factory=dict)
    """Changes by study file or by study, in addition."""
    claims: list[str] = Field(default_factory=list)
    """The claims that are judged under it; all if none are named."""


class PaperTable(Table):
    """The file ``paper.toml``."""

    title: str
    """Authors, year and subject, in a line."""
    citation: str
    """Reference of its publication."""
    options: list[Literal["placements", "periods", "also"]] = Field(default_factory=list)
    """Options of the command that it supports."""
    also: str | None = None
    """The treatment that ``--also`` copies with another controller."""
    variant: dict[str, Variant] = Field(default_factory=dict)
    """Other models of the paper's system for ``--variant``, by name."""
    quick: dict[str, Change] = Field(default_factory=dict)
    """Changes for ``--quick``, by study file."""
    study: list[StudyEntry] = Field(min_length=1)
    """The studies, in the paper's order."""
    table: list[Derived] = Field(default_factory=list)
    """Tables derived from those of the studies."""
    text: list[Text] = Field(default_factory=list)
    """Files of text."""
    notes: list[str] = Field(default_factory=list)
    """Sentences for the report."""
    replicates: Replicates = Field(default_factory=Replicates)
    """Differences between replicates."""


class Clause(Table):
    """A part of a claim: a number, and the interval in which it must be."""

    says: str
    """The measurement, as text: ``{value:.3f}`` and other columns of the query are replaced."""
    band: str
    """``>= 0.15``, ``[0.15, 0.45]``, or with a column of the query in place of a number: ``< bound``."""
    value: str = "value"
    """The column to compare."""
    shown: str | None = None
    """Text for the interval, if it is not shown as written."""
    sql: str | None = None
    """One SELECT, with a row for each number; by default that of the claim."""
    where: str | None = None
    """A condition on the rows of the query."""
    reported: str = ""
    """The paper's value."""
    calibrated: str = ""
    """The input that was chosen by this number: then it is not a finding, and does not count for the claim."""
    near_certain: str = ""
    """Why the clause can hardly fail whatever is simulated: that it holds is then no evidence for the claim."""
    chance: float = Field(default=0.0, ge=0, lt=1)
    """Probability that it holds in a replicate under ``null``: it holds only if its share is beyond chance."""
    null: str = ""
    """Model in which nothing of the claim is true, by which ``chance`` is known."""

    @field_validator("band")
    @classmethod
    def _read(cls, given: str) -> str:
        match = BAND.fullmatch(given.strip())
        if match is None:
            raise Problems(Problem("", "is no band", given, '">= 0.15", "[0.15, 0.45]", or a column for a number'))
        try:
            ends = [] if match["operator"] else [float(match["low"]), float(match["high"])]
        except ValueError:  # of a column
            ends = []
        if ends != sorted(ends):
            raise Problems(Problem("", "is empty", given, "a least and a greater value"))
        return given.strip()

    @model_validator(mode="after")
    def _of_a_model(self) -> Self:
        if bool(self.chance) != bool(self.null):
            missing = "null" if self.chance else "chance"
            raise Problems(Problem(missing, "needs one with the other", allowed="chance and null"))
        return self


class Claim(Table):
    """One statement of a paper."""

    id: str
    """Its name."""
    where: str
    """Section and figure."""
    setup: str
    """The studies that it needs."""
    claim: str
    """The paper's statement."""
    check: str
    """The condition with its intervals, as text."""
    studies: list[str] = Field(default_factory=list)
    """The studies whose results it needs."""
    shown: list[str] = Field(default_factory=list)
    """Related studies that do not affect the verdict."""
    sql: str | None = None
    """The query for clauses without one."""
    because: str = ""
    """Why the claim does not hold or is undecided, as text that completes "contradicted, because"."""
    clause: list[Clause] = Field(min_length=1)
    """The claim holds if all clauses do."""


class ClaimsTable(Table):
    """The file ``claims.toml``."""

    claim: list[Claim] = Field(min_length=1)


class Chart(Table):
    """A chart: the rows of a query, and how they are drawn.

    What its specification leaves out follows from the query:

    - Columns of numbers are ``quantitative``, others ``nominal``. Names, panels and colours are in the order of the
      rows; of a colour's ``domain`` and ``range``, names that do not occur are left out.
    - A layer without a title, axis or scale has those of the other layers. A line break in a name (``chr(10)``) is one
      in its label. Tooltips have the columns that are drawn.
    - ``facet``, ``row`` and ``column``, as channels or as the operator ``facet``, make panels; a page arranges them by
      its width. ``width`` is that of a panel of the PNG file.
    - The mark ``boxplot`` has a box for each combination of its other channels, computed from all rows. Whiskers reach
      the quantiles of 1% and 99% or, if no box has 100 values, the last values within 1.5 interquartile ranges, unless
      ``extent`` says otherwise; the note says which. Without a ``scale.type``, its axis is logarithmic if the 95%
      quantile of the values is more than ten times the 5% quantile. A query with the columns ``least``, ``low``,
      ``q1``, ``median``, ``q3``, ``high``, ``most`` and ``values`` (how many) has the boxes themselves, whose whiskers
      are from ``low`` to ``high``; ``y`` is the field ``median``.
    - The styles ``ink`` and ``muted`` have the colours of the theme.
    """

    sql: str
    """One SELECT; ``this`` is a table with the figure's row of ``each``."""
    spec: dict[str, Any]
    """A specification of Vega-Lite without data, as a table or as text in JSON."""

    @field_validator("spec", mode="before")
    @classmethod
    def _parsed(cls, given: Any) -> Any:
        try:
            return from_json(given) if isinstance(given, str) else given
        except ValueError as error:
            raise Problems(Problem("", f"is no JSON: {error}", given, "a table, or JSON")) from None

    @field_validator("spec")
    @classmethod
    def _checked(cls, given: dict[str, Any]) -> dict[str, Any]:
        if problems := problems_of(given):
            raise Problems(*problems)
        return given


class Figure(Conditional):
    """A figure."""

    file: FileName
    """Name of its file, without ``.png``; columns of ``each`` in braces are replaced, here and in title and note."""
    title: str
    """Title."""
    note: str = ""
    """Subtitle, in small type."""
    each: str | None = None
    """A query with a row for each figure of this kind."""
    columns: int | None = Field(default=None, ge=1)
    """Panels beside each other, where there is room; by default as many as their charts say, or three."""
    chart: list[Chart] = Field(min_length=1)
    """Charts, from left to right."""


class FiguresTable(Table):
    """The file ``figures.toml``."""

    figure: list[Figure] = Field(default_factory=list)


_Model = TypeVar("_Model", bound=Table)


@dataclass(frozen=True)
class Folder:
    """The folder of a reproduction. Reading it raises ``ScenarioError`` with everything that is wrong."""

    path: Path

    @property
    def name(self) -> str:
        """Its name."""
        return self.path.resolve().name

    @cached_property
    def paper(self) -> PaperTable:
        """The content of ``paper.toml``."""
        table = self.read("paper.toml", PaperTable)
        names = [entry.name for entry in table.study]
        self._distinct("paper.toml", "study", names)
        self._distinct("paper.toml", "table", [part.name for part in table.table])
        written = [f"{name}.csv" for name in (part.csv for part in table.table) if name]
        written += [f"{name}.parquet" for name in (part.parquet for part in table.table) if name]
        self._distinct(
            "paper.toml", "file of a table or text", [*written, *(part.file for part in table.text)], OWN_FILES
        )
        files = list(dict.fromkeys(entry.file for entry in table.study if entry.file))
        self._unknown("paper.toml", files, [("", "quick", [*table.quick])], "study file")
        changed = ((f"variant.{key}", "study", [*part.study]) for key, part in table.variant.items())
        self._unknown("paper.toml", [*names, *files], changed, "study or study file")
        self._unknown("paper.toml", names, (("table", part.name, part.studies) for part in table.table))
        self._unknown("paper.toml", names, (("text", part.file, part.studies) for part in table.text))
        self._unknown("paper.toml", names, [("replicates", "fixed", table.replicates.fixed)])
        return table

    @cached_property
    def claims(self) -> Sequence[Claim]:
        """Its claims."""
        every = self.read("claims.toml", ClaimsTable).claim
        needed = (("claim", member.id, [*member.studies, *member.shown]) for member in every)
        self._distinct("claims.toml", "claim", [member.id for member in every])
        self._unknown("claims.toml", [entry.name for entry in self.paper.study], needed)
        for at, claim in enumerate(every):
            if claim.sql is None and any(clause.sql is None for clause in claim.clause):
                file = str(self.path / "claims.toml")
                raise ScenarioError(Problem(f"claim[{at}].sql", "missing", allowed="a SELECT", file=file))
        judged = ((f"variant.{key}", "claims", member.claims) for key, member in self.paper.variant.items())
        self._unknown("paper.toml", [member.id for member in every], judged, "claim")
        return every

    @cached_property
    def figures(self) -> Sequence[Figure]:
        """Its figures; none without the file."""
        if not (self.path / "figures.toml").is_file():
            return []
        every = self.read("figures.toml", FiguresTable).figure
        plain = [f"{drawing.file}.png" for drawing in every if "{" not in drawing.file]
        self._distinct("figures.toml", "file of a figure", plain, OWN_FILES)
        needed = (("figure", drawing.file, drawing.studies) for drawing in every)
        self._unknown("figures.toml", [entry.name for entry in self.paper.study], needed)
        return every

    def read(self, name: str, model: type[_Model]) -> _Model:
        """One of its files as a model. Raises ``ScenarioError``."""
        return model.from_file(self.path / name)

    def _distinct(self, file: str, what: str, names: Sequence[str], taken: Sequence[str] = ()) -> None:
        """Raises ``ScenarioError`` for a name that comes twice, or that is ``taken``."""
        every = [*taken, *names]
        again = next((name for at, name in enumerate(every) if name in every[:at]), None)
        if again is not None:
            message = "is a file of every reproduction" if again in taken else "duplicate name"
            raise ScenarioError(Problem(what, message, again, file=str(self.path / file)))

    def _unknown(
        self, file: str, names: Sequence[str], needed: Iterable[tuple[str, str, Sequence[str]]], kind: str = "study"
    ) -> None:
        """Raises ``ScenarioError`` for names of studies, or of another kind, that do not exist."""
        wrong = [
            Problem.unknown(f"{table} {of}".strip(), kind, name, names, name)
            for table, of, given in needed
            for name in given
            if name not in names
        ]
        if wrong:
            raise ScenarioError(problem.at(str(self.path / file), None) for problem in wrong)
