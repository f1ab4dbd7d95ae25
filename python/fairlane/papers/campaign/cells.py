"""The cells of a campaign: who ran beside whom, on which nodes, and what was measured.

The measured table has a row for each cell. Its keys are ``nodes``, ``victim``, ``aggressor`` (``none`` for an isolated
run), ``msg_bytes``, and, where there are such columns, ``burst_s`` and ``pause_s`` (of the aggressor) and ``run``, by
which the table of placements names the nodes. Its values are ``median_s``, ``mean_s`` and ``p99_s``, the time of an
iteration, that of its slowest rank. A prediction reads the keys alone.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from typing import Any

from fairlane.core.errors import Problem, ScenarioError
from fairlane.core.statistics import Estimate, of_ratios
from fairlane.core.wording import data_size, seconds
from fairlane.inputs.csv_rows import Row, read_rows
from fairlane.papers.campaign.file import NONE, CampaignFile

KEYS = ("nodes", "victim", "aggressor", "burst_s", "pause_s", "msg_bytes")
"""Columns that tell cells from each other."""
VALUES = ("median_s", "mean_s", "p99_s")
"""Columns of what was measured, s."""
_OPTIONAL = ("burst_s", "pause_s")


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
        """Key that distinguishes it from other cells."""
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
        lengths = ""
        if self.burst_s is not None:
            lengths = f" (bursts of {seconds(self.burst_s)}, pauses of {seconds(self.pause_s or 0)})"
        beside = "isolated" if self.isolated else f"beside {self.aggressor}{lengths}"
        return f"{self.victim} of {data_size(self.msg_bytes)} {beside}, {self.nodes} nodes"


class Cells:
    """The cells of a campaign with their nodes; and, apart from them, the measured values."""

    def __init__(self, campaign: CampaignFile) -> None:
        self.campaign = campaign
        self._rows: dict[tuple[Any, ...], list[Row]] = {}
        for row in self._read():
            of = self._rows.setdefault(self._key(row), [])
            if before := [earlier.line for earlier in of if earlier.get("run") == row.get("run")]:
                message = f"repeats the cell of line {before[0]} in the same run"
                raise ScenarioError(Problem.of_file(row.file, message, row.line))
            of.append(row)
        self.all = [
            Cell(*(*key, tuple(row.get("run") or None for row in of), tuple(row.line for row in of)))
            for key, of in self._rows.items()
        ]
        self._by_key = {cell.key: cell for cell in self.all}

    def _read(self, values: Sequence[str] = ()) -> Sequence[Row]:
        """The rows of the measured table that count; it must have these columns."""
        campaign = self.campaign
        file = campaign.folder / campaign.measured
        required = dict.fromkeys([*(name for name in KEYS if name not in _OPTIONAL), *campaign.where, *values])
        rows = list(read_rows(file, [*required], [*_OPTIONAL, *VALUES], others=True))
        for name, value in campaign.where.items():
            known = ", ".join(sorted({row[name] for row in rows})[:20])
            rows = [row for row in rows if row[name] == str(value)]
            if not rows:
                raise ScenarioError(Problem(name, "no row has this value", value, known, file=str(file)))
        if not rows:
            raise ScenarioError(Problem.of_file(file, "lists no cells"))
        return rows

    def _key(self, row: Row) -> tuple[Any, ...]:
        victim = row.one_of("victim", [*self.campaign.victims])
        aggressor = row.one_of("aggressor", [*self.campaign.aggressors, NONE]) if row["aggressor"] else NONE
        pauses = (row.seconds_if_given(name) for name in _OPTIONAL)
        return (row.whole("nodes"), victim, aggressor, *pauses, row.whole("msg_bytes"))

    def of(self, nodes: Sequence[int] = ()) -> list[Cell]:
        """The cells of these numbers of nodes, or all. Raises ``ScenarioError`` if there are none of a number."""
        known = sorted({cell.nodes for cell in self.all})
        for number in nodes:
            if number not in known:
                raise ScenarioError(
                    Problem("--nodes", "no cell has this number of nodes", number, ", ".join(map(str, known)))
                )
        return [cell for cell in self.all if not nodes or cell.nodes in nodes]

    def isolated_of(self, cell: Cell) -> Cell | None:
        """The isolated run that a cell is compared with, if there is one."""
        return self._by_key.get(cell.alone)

    @cached_property
    def _placed(self) -> Sequence[Row]:
        if self.campaign.placements is None:
            return ()
        return [*read_rows(self.campaign.folder / self.campaign.placements, ("run", "job", "node"), others=True)]

    @cached_property
    def hosts(self) -> Mapping[tuple[str, str], Sequence[str]]:
        """The nodes of each run's jobs in the order of ranks, by run and job; empty if the nodes are not known."""
        nodes: dict[tuple[str, str], list[str]] = {}
        for row in self._placed:
            nodes.setdefault((row["run"], row.one_of("job", ("victim", "aggressor"))), []).append(row["node"])
        return nodes

    def nodes_of(self, cell: Cell, job: str, repetition: int = 0) -> Sequence[str] | None:
        """The nodes of a cell's victim or aggressor; None if they are not known. Raises ``ScenarioError``."""
        if self.campaign.placements is None:
            return None
        at = repetition % len(cell.runs)
        nodes = self.hosts.get((str(cell.runs[at]), job))
        if nodes is None:
            message = f"{self.campaign.placements} has no {job} of this run, so this cell has no placement"
            raise ScenarioError(
                self._rows[cell.key][at].problem("run", message, names=sorted({run for run, _ in self.hosts}))
            )
        return nodes

    def check_nodes(self, names: Sequence[str]) -> None:
        """Raises ``ScenarioError`` if a placement names a node that the fabric lacks."""
        known = set(names)
        for row in self._placed:
            if row["node"] not in known:
                raise ScenarioError(row.problem("node", f"unknown host; the fabric has {len(known)}", names=names))

    @cached_property
    def measured(self) -> Mapping[tuple[Any, ...], Mapping[str, Estimate]]:
        """Return the measured means, s, by the keys of the cells. Only comparing and fitting ask."""
        self._read(VALUES)  # it refuses a table without them
        estimates = {}
        for key, rows in self._rows.items():
            values = {
                name: of_ratios([seconds for row in rows if (seconds := row.seconds_if_given(name)) is not None])
                for name in VALUES
            }
            known = {name: value for name, value in values.items() if value is not None}
            if len(known) == len(VALUES):
                estimates[key] = known
        return estimates

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
