"""The jobs of a cluster by their nodes, the map of its nodes, and the fabric that the map describes.

A map lists every node with its cell (the group of a Dragonfly+) and its leaf switch. It does not list cables: a leaf
has one to each spine of its cell, a spine one to each other cell, and there are as many spines as leaves in the largest
cell, unless the fabric's parameters say otherwise.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fairlane.core.errors import Problem, ScenarioError, nearest
from fairlane.core.wording import plural
from fairlane.inputs.csv_rows import read_rows
from fairlane.inputs.hosts import members
from fairlane.model.fabric.table import FabricTable
from fairlane.model.fabric.view import Fabric

_MAP = ("node", "cell", "leaf_switch")
_JOBS = ("job", "nodes")
_SHOWN = 10  # problems of a file that are named


@dataclass(frozen=True)
class NodeMap:
    """The nodes of a cluster in the order of the fabric's hosts: leaf by leaf, cell by cell."""

    file: Path
    cells: dict[str, dict[str, list[str]]]
    """Nodes by leaf switch, by cell: cells and leaves in the order of their names, nodes in that of the file."""
    hosts: dict[str, int] = field(init=False)
    """Number of each node's host."""

    def __post_init__(self) -> None:
        names = (node for leaves in self.cells.values() for nodes in leaves.values() for node in nodes)
        object.__setattr__(self, "hosts", {name: number for number, name in enumerate(names)})

    @classmethod
    def read(cls, file: Path) -> "NodeMap":
        """Reads columns ``node``, ``cell``, ``leaf_switch`` and, unused, ``rack``."""
        cells: dict[str, dict[str, list[str]]] = {}
        lines: dict[str, int] = {}
        cell_of: dict[str, str] = {}
        problems: list[Problem] = []
        for row in read_rows(file, _MAP, ("rack",)):
            node, cell, leaf = (row[key] for key in _MAP)
            if empty := [key for key in _MAP if not row[key]]:
                problems.append(row.problem(empty[0], f"{node or 'a node'} has none"))
            elif node in lines:
                problems.append(row.problem("node", f"the node is on line {lines[node]} already"))
            elif cell_of.setdefault(leaf, cell) != cell:
                words = f"the leaf switch is in cell {cell_of[leaf]} on an earlier line"
                problems.append(row.problem("cell", words, cell_of[leaf]))
            else:
                lines[node] = row.line
                cells.setdefault(cell, {}).setdefault(leaf, []).append(node)
        _refuse(file, problems, empty=not lines, what="nodes")
        return cls(
            file,
            {cell: dict(sorted(leaves.items(), key=_natural)) for cell, leaves in sorted(cells.items(), key=_natural)},
        )

    def fabric(self, assignments: Sequence[str] = ()) -> Fabric:
        """The Dragonfly+ of these cells and leaves; ``assignments`` (``KEY=VALUE``) set its other parameters."""
        most = max(map(len, self.cells.values()))
        table: dict[str, Any] = {
            "topology": "dragonfly_plus",
            "groups": len(self.cells),
            "leaves": most,
            "spines": most,
            "global_links": len(self.cells) - 1,
            "bandwidth": "200 Gb/s",
            "hosts_per_leaf": [[len(nodes) for nodes in leaves.values()] for leaves in self.cells.values()],
            "host_names": list(self.hosts),
            "leaf_names": [list(leaves) for leaves in self.cells.values()],
        }
        return Fabric.build(FabricTable.read(table, assignments).spec)


def _natural(item: tuple[str, Any]) -> tuple[int, str]:
    """A key that sorts numbers by value and names of one length by letters."""
    return len(item[0]), item[0]


@dataclass(frozen=True)
class Allocation:
    """A job and its nodes."""

    job: str
    nodes: tuple[str, ...]


def read_allocations(file: Path, nodes: NodeMap) -> tuple[list[Allocation], list[Allocation]]:
    """Reads columns ``job``, ``nodes`` (names with spaces between them) and optionally ``hosts``, their number.

    Returns the jobs on nodes of the map, and those without any, as on visualisation nodes of the same cluster.
    """
    found: list[Allocation] = []
    outside: list[Allocation] = []
    lines: dict[str, int] = {}
    problems: list[Problem] = []
    for row in read_rows(file, _JOBS, ("hosts",)):
        try:
            job = Allocation(row["job"], tuple(_names(row["nodes"])))
        except ValueError as error:
            problems.append(row.problem("nodes", str(error)))
            continue
        if job.job in lines:
            problems.append(row.problem("job", f"duplicate job name, as on line {lines[job.job]}"))
        problems += [problem.at(str(file), row.line) for problem in _wrong(job, row.get("hosts"), nodes)]
        lines.setdefault(job.job, row.line)
        (found if nodes.hosts.keys() & set(job.nodes) else outside).append(job)
    if not problems and not found and outside:
        problems = [_unknown(outside[0], outside[0].nodes, nodes).at(str(file), lines[outside[0].job])]
    _refuse(file, problems, empty=not found, what="jobs")
    return found, outside


def _names(text: str) -> Iterator[str]:
    for word in text.split():
        yield from members(word) if "[" in word else [word]


def _wrong(job: Allocation, hosts: str | None, nodes: NodeMap) -> Iterator[Problem]:
    """Yield the problems of a job; one without any node of the map has none."""
    unknown = [name for name in job.nodes if name not in nodes.hosts]
    count = str(len(job.nodes))
    if not job.job:
        yield Problem("job", "the job has no name")
    if not job.nodes:
        yield Problem("nodes", f"job {job.job} has none")
    elif 0 < len(unknown) < len(job.nodes):
        yield _unknown(job, unknown, nodes)
    elif twice := [name for name, times in Counter(job.nodes).items() if times > 1]:
        yield Problem("nodes", f"job {job.job} has the node twice", twice[0])
    elif hosts is not None and hosts != count:
        yield Problem("hosts", f"the line has {count} nodes", hosts, count)


def _unknown(job: Allocation, unknown: Sequence[str], nodes: NodeMap) -> Problem:
    more = f", nor {plural(len(unknown) - 1, 'other')} of job {job.job}" if len(unknown) > 1 else ""
    words = f"{nodes.file} has no such node{more}"
    return Problem("nodes", words, unknown[0], nearest=nearest(unknown[0], nodes.hosts))


def _refuse(file: Path, problems: list[Problem], *, empty: bool, what: str) -> None:
    if empty and not problems:
        problems = [Problem.of_file(file, f"lists no {what}")]
    if len(problems) > _SHOWN:
        rest = Problem.of_file(file, f"{len(problems) - _SHOWN} more lines are wrong")
        problems = [*problems[:_SHOWN], rest]
    if problems:
        raise ScenarioError(problems)


def moment(jobs: Sequence[Allocation], number: int = 1) -> list[Allocation]:
    """Jobs that can have run at the same time, since no two have a node in common.

    The first moment takes jobs in order, each whose nodes are free; the second does so with those that the first leaves
    out, and so on.
    """
    left = list(jobs)
    for at in range(1, number + 1):
        if not left:
            raise ScenarioError(Problem("--moment", "all jobs are in earlier ones", number, f"1 to {at - 1}"))
        taken: set[str] = set()
        chosen, rest = [], []
        for job in left:
            if taken.isdisjoint(job.nodes):
                taken.update(job.nodes)
                chosen.append(job)
            else:
                rest.append(job)
        left = rest
    return chosen
