"""What measures a campaign on a user's machine: an MPI program, and for each number of nodes its cells and a script.

The cells are those of the campaign's measured file, of which only the keys are read; or every victim with given sizes
of its messages, isolated and beside every aggressor.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from importlib.resources import files
from itertools import product
from pathlib import Path
from shlex import quote
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from fairlane.campaign.cells import KEYS, Cell
from fairlane.campaign.file import FILE, NONE
from fairlane.campaign.lines import lines, pause_of, whole_of
from fairlane.errors import Problem, ScenarioError
from fairlane.inputs.document import Document
from fairlane.inputs.files import write_text
from fairlane.inputs.problems import Problems
from fairlane.inputs.table import Table
from fairlane.units import Size, Written

COMMANDS = ("victim_command", "aggressor_command")
"""Further columns of the lists of cells that scripts run: the arguments of ``measure``."""
_NAME = r"^[A-Za-z0-9][A-Za-z0-9 ._+/-]{0,60}$"
_WORD = r"[A-Za-z0-9][A-Za-z0-9._-]{0,60}"
MOST_NODES, MOST_BYTES = 100_000, 2**31 - 1
"""Most nodes of a cell, and bytes of a message."""


class Pattern(Table):
    """What the ranks of a job do in an iteration: the workloads that ``measure`` has, with the keys of scenarios."""

    name: Literal["all_posted", "ring_allgather", "incast"]
    """The workload."""
    message_size: Annotated[Size | None, Field(ge=1, le=MOST_BYTES)] = None
    """Bytes of a message; of a victim the cell has it."""
    messages_per_iteration: int = Field(default=1, ge=1, le=1)
    """Messages to each partner in an iteration."""
    barrier: bool | None = None
    """Whether iterations begin with a barrier, which is not timed."""

    @model_validator(mode="after")
    def _can_wait(self) -> Self:
        if self.name == "incast" and self.barrier:
            raise Problems(Problem("barrier", "an incast has none", self.barrier, "false, or all_posted"))
        return self

    def arguments(self, size: int) -> str:
        """The arguments of ``measure`` that all its jobs have."""
        return f"{self.name} --bytes {size}{' --no-barrier' if self.barrier is False else ''}"


class _Campaign(Table):
    title: str = Field(min_length=1)
    victims: dict[Annotated[str, Field(pattern=_NAME)], Written[Pattern]] = Field(min_length=1)
    aggressors: dict[Annotated[str, Field(pattern=_NAME)], Written[Pattern]] = Field(default_factory=dict)
    where: dict[str, str | int] = Field(default_factory=dict)
    measured: str

    @model_validator(mode="after")
    def _sizes(self) -> Self:
        problems = [
            Problem(f"aggressors.{name}.message_size", "missing", allowed='a size, as "2 MiB"')
            for name, pattern in self.aggressors.items()
            if pattern.message_size is None
        ]
        if NONE in self.aggressors:
            problems.append(Problem(f"aggressors.{NONE}", "is the name of isolated runs", allowed="another name"))
        if problems:
            raise Problems(*problems)
        return self


@dataclass(frozen=True)
class Campaign:
    """What a campaign measures."""

    title: str
    system: str
    victims: Mapping[str, Pattern]
    aggressors: Mapping[str, Pattern]
    cells: tuple[Cell, ...]


@dataclass(frozen=True)
class Wanted:
    """Which cells of a campaign are measured; without sizes they are those of its measured file."""

    nodes: Sequence[int] = ()
    """Numbers of nodes, half of them the victim's; of measured cells all by default."""
    sizes: Sequence[int] = ()
    """Sizes of the victim's messages, bytes."""
    bursts: Sequence[tuple[float, float]] = ()
    """Bursts and pauses, s, with which every aggressor runs besides its endless one."""


def campaign_of(folder: Path, wanted: Wanted = Wanted()) -> Campaign:
    """The cells of a campaign's folder; raises ``ScenarioError`` with file, line and key of what is wrong."""
    document = Document.read(folder / FILE)
    own = {key: value for key, value in document.data.items() if key in _Campaign.model_fields}
    campaign = _Campaign.from_document(replace(document, data=own))
    found = _product(campaign, wanted) if wanted.sizes else _measured(campaign, folder / campaign.measured, wanted)
    system = str(campaign.where.get("system", re.sub(r"[^a-z0-9]+", "-", campaign.title.lower()).strip("-")))
    return Campaign(campaign.title, system, campaign.victims, campaign.aggressors, tuple(dict.fromkeys(found)))


def cell_of(nodes: int, victim: str, size: int, aggressor: str = NONE, *pauses: float | None) -> Cell:
    """A cell that has not been measured; ``pauses`` are the lengths of bursts and of pauses, s."""
    burst, pause = pauses or (None, None)
    return Cell(nodes, victim, aggressor, burst, pause, size, (), ())


def _product(campaign: _Campaign, wanted: Wanted) -> Iterator[Cell]:
    for nodes, victim, size in product(wanted.nodes, campaign.victims, wanted.sizes):
        yield cell_of(nodes, victim, size)
        for aggressor in campaign.aggressors:
            yield cell_of(nodes, victim, size, aggressor)
            yield from (cell_of(nodes, victim, size, aggressor, *pauses) for pauses in wanted.bursts)


def _measured(campaign: _Campaign, file: Path, wanted: Wanted) -> Iterator[Cell]:
    counts = set()
    for line, row in lines(file, [*KEYS, *campaign.where]):
        if any(row[key] != str(value) for key, value in campaign.where.items()):
            continue
        for column, known in (("victim", campaign.victims), ("aggressor", {NONE: None, **campaign.aggressors})):
            if row[column] not in known:
                problem = Problem.unknown(column, f"{column} of {FILE}", row[column], list(known), row[column])
                raise ScenarioError(problem.at(str(file), line))
        nodes = whole_of("nodes", row["nodes"], MOST_NODES, file, line)
        size = whole_of("msg_bytes", row["msg_bytes"], MOST_BYTES, file, line)
        pauses = [pause_of(row[key], file, line) for key in ("burst_s", "pause_s")]
        counts.add(nodes)
        if not wanted.nodes or nodes in wanted.nodes:
            yield cell_of(nodes, row["victim"], size, row["aggressor"], *pauses)
    for number in wanted.nodes:
        if number not in counts:
            allowed = ", ".join(map(str, sorted(counts)))
            raise ScenarioError(Problem("--nodes", f"no cell of {file} has so many", number, allowed))


@dataclass(frozen=True)
class Options:
    """How the cells are run, and for whom."""

    system: str | None = None
    """Name of the machine in tables; by default the campaign's."""
    launcher: Literal["srun", "mpirun"] = "srun"
    launcher_options: str = ""
    """Further options of the launcher, as its shell takes them."""
    account: str | None = None
    partition: str | None = None
    time: str = "04:00:00"
    """Time limit of a batch job, as Slurm takes it."""
    directives: tuple[str, ...] = ()
    """Further options of ``sbatch``."""
    repetitions: int = 2
    iterations: int = 1000
    warm_up: int = 5
    """Iterations before those that are measured."""
    cell_limit_s: int = 1200
    """The longest that a cell may take, s."""
    victim_level: int | None = None
    """The service level of the victim's messages (``UCX_IB_SL``)."""
    aggressor_level: int | None = None


def write(campaign: Campaign, folder: Path, options: Options) -> list[Path]:
    """Writes program, lists of cells and scripts into a folder; returns the scripts, by number of nodes.

    Raises ``ScenarioError`` if the folder has something already, or an option does not fit into a script's line.
    """
    system = options.system or campaign.system
    if re.fullmatch(_WORD, system) is None:
        raise ScenarioError(Problem("--system", "is no name of a machine", system, "letters, digits, '.', '_' and '-'"))
    for name, value in (("--account", options.account), ("--partition", options.partition), ("--time", options.time)):
        if value is not None and re.fullmatch(r"[!-~]+", value) is None:
            raise ScenarioError(Problem(name, "is not one word", value))
    for value in (*options.directives, options.launcher_options):
        if not value.isprintable():
            raise ScenarioError(Problem("--sbatch, --launcher-options", "is not one line", value))
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ScenarioError(Problem("--out", "exists; choose another folder", str(folder)))
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("measure.c", "run.bash"):
        write_text(folder / name, (files("fairlane.campaign") / name).read_text("utf-8"))
    write_text(folder / "Makefile", _MAKEFILE)
    scripts = []
    for nodes in sorted({cell.nodes for cell in campaign.cells}):
        of_size = [cell for cell in campaign.cells if cell.nodes == nodes]
        write_text(folder / f"nodes-{nodes}.csv", _listed(campaign, of_size))
        scripts.append(folder / f"nodes-{nodes}.sbatch")
        write_text(scripts[-1], _script(campaign, nodes, options))
    return scripts


_MAKEFILE = """\
# mpicc is the MPI compiler of the machine, cc on some.
MPICC = mpicc
CFLAGS = -std=c99 -O2 -Wall -Wextra

measure: measure.c
\t$(MPICC) $(CFLAGS) -o $@ measure.c

clean:
\trm -f measure
"""


def _listed(campaign: Campaign, listed: Iterable[Cell]) -> str:
    lines = [",".join(("cell", *KEYS[1:], *COMMANDS))]
    for number, cell in enumerate(listed, 1):
        aggressor = ""
        if cell.aggressor != NONE:
            pattern = campaign.aggressors[cell.aggressor]
            aggressor = pattern.arguments(pattern.message_size or 1)
            if cell.burst_s is not None:
                aggressor += f" --burst {cell.burst_s:.9g} --pause {cell.pause_s:.9g}"
        pauses = ("" if value is None else f"{value:.9g}" for value in (cell.burst_s, cell.pause_s))
        victim = campaign.victims[cell.victim].arguments(cell.msg_bytes)
        keys = (f"{number:03}", cell.victim, cell.aggressor, *pauses, str(cell.msg_bytes))
        lines.append(",".join((*keys, victim, aggressor)))
    return "\n".join(lines) + "\n"


def _script(campaign: Campaign, nodes: int, options: Options) -> str:
    level = [options.victim_level, options.aggressor_level]
    directives = {
        "job-name": f"{options.system or campaign.system}-{nodes}",
        "nodes": nodes,
        "ntasks-per-node": 1,
        "exclusive": None,
        "time": options.time,
        "output": f"nodes-{nodes}-%j.log",
        "account": options.account,
        "partition": options.partition,
    }
    optional = ("account", "partition")
    lines = [
        f"--{name}" if value is None else f"--{name}={value}"
        for name, value in directives.items()
        if value is not None or name not in optional
    ]
    settings = {
        "NODES": nodes,
        "CELLS": f"nodes-{nodes}.csv",
        "SYSTEM": options.system or campaign.system,
        "REPETITIONS": options.repetitions,
        "ITERATIONS": options.iterations,
        "WARM_UP": options.warm_up,
        "CELL_LIMIT": options.cell_limit_s,
        "VICTIM_LEVEL": "" if level[0] is None else level[0],
        "AGGRESSOR_LEVEL": "" if level[1] is None else level[1],
        "LAUNCHER": options.launcher,
        "WRITTEN_BY": f"fairlane {version('fairlane')}",
    }
    return "\n".join(
        [
            "#!/bin/bash",
            *(f"#SBATCH {line}" for line in (*lines, *options.directives)),
            f"# {' '.join(campaign.title.split())}: the cells of {nodes} nodes.",
            f"# In this folder: make && sbatch nodes-{nodes}.sbatch",
            f"# Without Slurm: bash nodes-{nodes}.sbatch HOSTS, a file with a host on each line.",
            '[ $# -eq 0 ] || set -- "$(realpath "$1")"',
            'cd "$(dirname "$0")" && [ -f run.bash ] || cd "${SLURM_SUBMIT_DIR:-.}" || exit 2',
            *(f"{name}={quote(str(value))}" for name, value in settings.items()),
            f"LAUNCHER_OPTIONS={quote(options.launcher_options)}${{LAUNCHER_OPTIONS:+ $LAUNCHER_OPTIONS}}",
            "source ./run.bash",
            "",
        ]
    )
