"""The cells of a campaign: who ran beside whom, on which nodes, and what was measured.

The measured table has a row for each cell. Its keys are ``nodes``, ``victim``, ``aggressor`` (``none`` for an isolated
run), ``msg_bytes``, and, where there are such columns, ``burst_s`` and ``pause_s`` (of the aggressor) and ``run``, by
which the table of placements names the nodes. Its values are ``median_s``, ``mean_s`` and ``p99_s``, the time of an
iteration, that of its slowest rank. A prediction reads the keys alone.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any

import polars as pl

from fairlane.campaign.file import NONE, CampaignFile
from fairlane.errors import Problem, ScenarioError, nearest
from fairlane.inputs.files import reading
from fairlane.inputs.packed import read_unpacked
from fairlane.statistics.estimate import Estimate
from fairlane.statistics.replicates import of_ratios

KEYS = ("nodes", "victim", "aggressor", "burst_s", "pause_s", "msg_bytes")
"""Columns that tell cells from each other."""
VALUES = ("median_s", "mean_s", "p99_s")
"""Columns of what was measured, s."""
_KINDS: Mapping[str, Any] = {
    "nodes": pl.Int64,
    "victim": pl.String,
    "aggressor": pl.String,
    "burst_s": pl.Float64,
    "pause_s": pl.Float64,
    "msg_bytes": pl.Int64,
}
_OPTIONAL = ("burst_s", "pause_s")
_UNIT = re.compile(r"(?P<name>median|mean|p99|burst|pause)_(?P<unit>\w+)|msg_(?P<size>\w+)")


@dataclass(frozen=True)
class Cell:
    """A victim of one message size on half of so many nodes, beside an aggressor on the other half or alone."""

    nodes: int
    victim: str
    aggressor: str
    burst_s: float | None
    pause_s: float | None
    msg_bytes: int
    runs: tuple[str | None, ...]
    """The names of its runs in the table of placements: one, or one for each repetition."""
    lines: tuple[int, ...]
    """Their lines in the measured table."""

    @property
    def key(self) -> tuple[Any, ...]:
        """What tells it from other cells."""
        return tuple(getattr(self, name) for name in KEYS)

    @property
    def alone(self) -> tuple[Any, ...]:
        """The key of the isolated run that it is compared with."""
        return (self.nodes, self.victim, NONE, None, None, self.msg_bytes)

    @property
    def isolated(self) -> bool:
        """Whether it has no aggressor."""
        return self.aggressor == NONE

    def __str__(self) -> str:
        bursts = "" if self.burst_s is None else f" ({self.burst_s:g} s of {self.burst_s + (self.pause_s or 0):g} s)"
        beside = "alone" if self.isolated else f"beside {self.aggressor}{bursts}"
        return f"{self.victim} of {self.msg_bytes} B {beside}, {self.nodes} nodes"


class Table:
    """A CSV file that a campaign names: its rows as text, with the line of each. Raises ``ScenarioError``."""

    def __init__(self, file: Path) -> None:
        self.file = file
        with reading(file):
            text = read_unpacked(file).decode()
        try:
            self.rows = pl.read_csv(text.encode(), infer_schema=False).with_row_index("line", 2)
        except pl.exceptions.PolarsError as error:
            raise ScenarioError(Problem.of_file(file, f"is no table: {str(error).splitlines()[0]}")) from None

    def refuse(self, message: str, line: int | None = 1, **more: Any) -> ScenarioError:
        """The error about a line."""
        return ScenarioError(Problem(message=message, file=str(self.file), line=line, **{"key": "", **more}))

    def require(self, columns: Sequence[str]) -> None:
        """Raises ``ScenarioError`` unless the table has these columns, in these units."""
        names = [name for name in self.rows.columns if name != "line"]
        for name in names:
            if (found := _UNIT.fullmatch(name)) and name not in (*KEYS, *VALUES):
                meant = "msg_bytes, in bytes" if found["size"] else f"{found['name']}_s, in seconds"
                raise self.refuse("is in another unit", key=name, allowed=meant)
        missing = [name for name in columns if name not in names]
        if missing:
            near = nearest(missing[0], names)
            raise self.refuse(f"has no column {missing[0]}", allowed=", ".join(columns), nearest=near)

    def select(self, where: Mapping[str, str | int]) -> "Table":
        """Keeps rows with these values. Raises ``ScenarioError`` for a column or value that it lacks."""
        self.require(list(where))
        for name, value in where.items():
            known = self.rows[name].unique().drop_nulls().to_list()
            if str(value) not in known:
                raise self.refuse(f"no row has {name} = {value}", None, allowed=", ".join(sorted(known)[:20]))
            self.rows = self.rows.filter(pl.col(name) == str(value))
        return self

    def numbers(self, name: str, kind: Any) -> pl.Series:
        """A column as numbers above zero, empty where nothing is given. Raises ``ScenarioError``."""
        found = self.rows[name].cast(kind, strict=False)
        wrong = self.rows.filter((found.is_null() & self.rows[name].is_not_null()) | ~(found.fill_null(1) > 0))
        if wrong.height:
            raise self.refuse("is no number above zero", wrong["line"][0], key=name, value=wrong[name][0])
        return found


class Cells:
    """The cells of a campaign with their nodes; and, apart from them, the measured values."""

    def __init__(self, campaign: CampaignFile) -> None:
        self.campaign = campaign
        self._table = table = Table(campaign.folder / campaign.measured)
        table.require([name for name in KEYS if name not in _OPTIONAL])
        table.select(campaign.where)
        known = [*campaign.aggressors, NONE]
        columns = {name: self._column(name) for name in KEYS}
        runs = table.rows["run"].to_list() if "run" in table.rows.columns else [None] * table.rows.height
        self._rows: dict[tuple[Any, ...], list[int]] = {}
        for at, key in enumerate(zip(*(columns[name] for name in KEYS), strict=True)):
            of = self._rows.setdefault(key, [])
            if any(runs[at] == runs[other] for other in of):
                line = table.rows["line"][of[0]]
                raise table.refuse(f"is the cell of line {line} again, of the same run", table.rows["line"][at])
            of.append(at)
        lines = table.rows["line"].to_list()
        self.all = [
            Cell(*(*key, tuple(runs[at] for at in of), tuple(lines[at] for at in of))) for key, of in self._rows.items()
        ]
        for cell in self.all:
            for column, name, names in (
                ("victim", cell.victim, list(campaign.victims)),
                ("aggressor", cell.aggressor, known),
            ):
                if name not in names:
                    words = Problem.unknown(column, column, name, names, name)
                    raise ScenarioError(words.at(str(table.file), cell.lines[0]))
        self._by_key = {cell.key: cell for cell in self.all}

    def _column(self, name: str) -> list[Any]:
        table = self._table
        if name not in table.rows.columns:
            return [None] * table.rows.height
        if _KINDS[name] == pl.String:
            return [NONE if value is None and name == "aggressor" else value for value in table.rows[name].to_list()]
        found = table.numbers(name, _KINDS[name])
        if name not in _OPTIONAL and found.null_count():
            raise table.refuse("is empty", table.rows.filter(found.is_null())["line"][0], key=name)
        return found.to_list()

    def of(self, nodes: Sequence[int] = ()) -> list[Cell]:
        """The cells of these numbers of nodes, or all. Raises ``ScenarioError`` if there are none of a number."""
        known = sorted({cell.nodes for cell in self.all})
        for number in nodes:
            if number not in known:
                raise ScenarioError(Problem("--nodes", "no cell has so many", number, ", ".join(map(str, known))))
        return [cell for cell in self.all if not nodes or cell.nodes in nodes]

    def isolated_of(self, cell: Cell) -> Cell | None:
        """The isolated run that a cell is compared with, if there is one."""
        return self._by_key.get(cell.alone)

    @cached_property
    def hosts(self) -> Mapping[tuple[str, str], Sequence[str]]:
        """The nodes of each run's jobs in the order of ranks, by run and job; empty if the nodes are not known."""
        if self.campaign.placements is None:
            return {}
        table = Table(self.campaign.folder / self.campaign.placements)
        table.require(["run", "job", "node"])
        found: dict[tuple[str, str], list[str]] = {}
        for line, run, job, node in table.rows.select("line", "run", "job", "node").iter_rows():
            if job not in ("victim", "aggressor"):
                raise ScenarioError(
                    Problem.unknown("job", "job", str(job), ["victim", "aggressor"], job).at(str(table.file), line)
                )
            found.setdefault((run, job), []).append(node)
        self._placed = table
        return found

    def nodes_of(self, cell: Cell, job: str, repetition: int = 0) -> Sequence[str] | None:
        """The nodes of a cell's victim or aggressor; None if they are not known. Raises ``ScenarioError``."""
        if self.campaign.placements is None:
            return None
        at = repetition % len(cell.runs)
        run = cell.runs[at]
        found = self.hosts.get((str(run), job))
        if found is None:
            runs = sorted({run for run, _ in self.hosts})
            raise ScenarioError(
                Problem(
                    "run",
                    f"{self.campaign.placements} has no {job} of this run, so this cell has no placement",
                    run,
                    nearest=nearest(str(run), runs),
                    file=str(self._table.file),
                    line=cell.lines[at],
                )
            )
        return found

    def check_nodes(self, names: Sequence[str]) -> None:
        """Raises ``ScenarioError`` if a placement names a node that the fabric lacks."""
        if self.campaign.placements is None:
            return
        _ = self.hosts
        known = set(names)
        for line, node in self._placed.rows.select("line", "node").iter_rows():
            if node not in known:
                words = f"is no host of the fabric, which has {len(known)}"
                raise self._placed.refuse(words, line, key="node", value=node, nearest=nearest(str(node), names))

    @cached_property
    def measured(self) -> Mapping[tuple[Any, ...], Mapping[str, Estimate]]:
        """What was measured, s, by the keys of the cells: the mean of repetitions. Only comparing and fitting ask."""
        self._table.require(VALUES)
        columns = {name: self._table.numbers(name, pl.Float64).to_list() for name in VALUES}
        found = {}
        for key, rows in self._rows.items():
            values = {name: of_ratios([it for at in rows if (it := columns[name][at]) is not None]) for name in VALUES}
            known = {name: value for name, value in values.items() if value is not None}
            if len(known) == len(VALUES):
                found[key] = known
        return found

    def lines(self) -> Iterator[str]:
        """Cells and nodes as text: what a prediction depends on beside the model."""
        for cell in self.all:
            of = [(job, at) for job in jobs_of(cell) for at in range(len(cell.runs))]
            yield repr((cell.key, [tuple(self.nodes_of(cell, job, at) or ()) for job, at in of]))

    @property
    def digest(self) -> str:
        """The same for the same cells on the same nodes, whatever was measured."""
        return sha256("\n".join(sorted(self.lines())).encode()).hexdigest()


def jobs_of(cell: Cell) -> Sequence[str]:
    """The jobs of a cell, the victim first."""
    return ("victim",) if cell.isolated else ("victim", "aggressor")
