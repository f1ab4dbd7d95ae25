"""Write the programs that measure a campaign: an MPI program, and for each number of nodes its cells and a script.

The cells are those of the campaign's measured file, of which only the keys are read; or every victim with given sizes
of its messages, isolated and beside every aggressor.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from importlib.resources import files
from itertools import product
from pathlib import Path
from shlex import quote
from typing import Any, Literal, TypeVar

from fairlane.core.errors import Problem, ScenarioError
from fairlane.core.units import DURATION, SIZE
from fairlane.inputs.files import write_text
from fairlane.inputs.problems import Problems
from fairlane.model.workload import WORKLOADS, Workload
from fairlane.papers.campaign.cells import KEYS, Cell, Cells
from fairlane.papers.campaign.file import NONE, CampaignFile

_T = TypeVar("_T")
COMMANDS = ("victim_command", "aggressor_command")
"""Further columns of the lists of cells that scripts run: the arguments of ``measure``."""
_NAME = r"^[A-Za-z0-9][A-Za-z0-9 ._+/-]{0,60}$"
_NAME_WORDS = "letters, digits, spaces and . _ + / -"
_WORD = r"[A-Za-z0-9][A-Za-z0-9._-]{0,60}"
MOST_NODES, MOST_BYTES = 100_000, 2**31 - 1
"""Most nodes of a cell, and bytes of a message."""
PATTERNS = ("all_posted", "ring_allgather", "incast")
"""The workloads that ``measure`` has."""


def pattern_of(table: Mapping[str, Any]) -> Workload:
    """The workload of a campaign's victim or aggressor; raises ``Problems`` if ``measure`` does something else."""
    name = str(table.get("name"))
    if name not in PATTERNS:
        raise Problems(Problem.unknown("name", "workload of measured jobs", name, PATTERNS, name))
    workload: Any = WORKLOADS.read({"compute": "0 ns", **table})
    measured = {"compute": 0, "messages_per_iteration": 1, "operation": None, "burst": None, "pause": None}
    wrong = []
    for key, allowed in measured.items():
        if getattr(workload, key, allowed) != allowed:
            of_cells = " here: cells have it" if key in ("burst", "pause") else ""
            need = "none" + of_cells if allowed is None else str(allowed)
            wrong.append(
                Problem(key, "cannot be measured by the MPI program", table.get(key, getattr(workload, key)), need)
            )
    if not 1 <= workload.message_size <= MOST_BYTES:
        wrong.append(
            Problem(
                "message_size",
                "cannot be sent as one message",
                table.get("message_size"),
                "1 B or more, less than 2 GiB",
            )
        )
    if wrong:
        raise Problems(*wrong)
    return workload  # type: ignore[no-any-return]


def arguments(workload: Any, size: int) -> str:
    """The arguments of ``measure`` that victims and aggressors have."""
    return f"{type(workload).name} --bytes {size}{'' if getattr(workload, 'barrier', True) else ' --no-barrier'}"


@dataclass(frozen=True)
class Campaign:
    """Cells that a campaign measures."""

    title: str
    system: str
    victims: Mapping[str, Workload]
    aggressors: Mapping[str, Workload]
    cells: tuple[Cell, ...]


@dataclass(frozen=True)
class Wanted:
    """Choice of cells that are measured; without sizes they are those of the campaign's measured file."""

    nodes: Sequence[int] = ()
    """Numbers of nodes, half of them the victim's; of measured cells all by default."""
    sizes: Sequence[int] = ()
    """Sizes of the victim's messages, bytes."""
    bursts: Sequence[tuple[float, float]] = ()
    """Bursts and pauses, s, with which every aggressor runs besides its endless one."""


def wanted_of(nodes: str | None, sizes: str | None, bursts: str | None) -> Wanted:
    """Read the options ``--nodes``, ``--sizes`` and ``--bursts``. Raises ``ScenarioError``."""

    def seconds(pair: str) -> tuple[float, float]:
        burst, pause = (DURATION.parse(part.strip()) / 10**12 for part in pair.split(":"))
        return burst, pause

    size = 'sizes of 1 B or more, less than 2 GiB, as "512 B, 2 MiB"'
    wanted = Wanted(
        numbers_of(
            "--nodes", nodes, int, f"numbers from 4 to {MOST_NODES}, as 8,16", lambda number: 4 <= number <= MOST_NODES
        ),
        numbers_of("--sizes", sizes, SIZE.parse, size, lambda number: 1 <= number <= MOST_BYTES),
        numbers_of("--bursts", bursts, seconds, 'pairs of a burst and a pause, as "100 ms:1 us"', all),
    )
    if wanted.sizes and not wanted.nodes:
        raise ScenarioError(Problem("--nodes", "is needed with --sizes", allowed="numbers of nodes, as 8,16"))
    if wanted.bursts and not wanted.sizes:
        message = "needs --sizes: measured cells have bursts of their own"
        raise ScenarioError(Problem("--bursts", message, bursts))
    return wanted


def numbers_of(
    option: str,
    given: str | None,
    parse: Callable[[str], _T],
    allowed: str,
    fits: Callable[[_T], bool] = lambda _: True,
) -> list[_T]:
    """The values of an option that takes a list. Raises ``ScenarioError``."""
    if given is None:
        return []
    try:
        numbers = [parse(word.strip()) for word in given.split(",")]
    except ValueError:
        numbers = []
    if not numbers or not all(map(fits, numbers)):
        raise ScenarioError(Problem(option, "cannot be used", given, allowed))
    return numbers


def campaign_of(folder: Path, wanted: Wanted = Wanted()) -> Campaign:
    """The cells of a campaign's folder; raises ``ScenarioError`` with file, line and key of what is wrong."""
    file = CampaignFile.load(folder)
    patterns: dict[str, dict[str, Workload]] = {"victims": {}, "aggressors": {}}
    problems: list[Problem] = []
    for kind, tables in (("victims", file.victims), ("aggressors", file.aggressors)):
        for name, table in tables.items():
            if re.fullmatch(_NAME, name) is None:
                problems.append(Problem(f"{kind}.{name}", "cannot be used as a name in scripts", name, _NAME_WORDS))
            try:
                patterns[kind][name] = pattern_of(table)
            except Problems as error:
                problems += [problem.under(f"{kind}.{name}") for problem in error.problems]
    if problems:
        raise file.refuse(*problems)
    cells = list(_product(file, wanted)) if wanted.sizes else Cells(file).of(wanted.nodes)
    for cell in cells:
        if not (4 <= cell.nodes <= MOST_NODES and cell.msg_bytes <= MOST_BYTES):
            message = f"4 to {MOST_NODES} nodes, and messages of less than 2 GiB"
            raise ScenarioError(Problem("", f"{cell}: cannot be measured", allowed=message))
    system = str(file.where.get("system", re.sub(r"[^a-z0-9]+", "-", file.title.lower()).strip("-")))
    # Right after its isolated run comes a victim of one size beside each aggressor: they are compared.
    victims, aggressors = list(file.victims), [NONE, *file.aggressors]
    cells.sort(
        key=lambda wanted_cell: (
            *(wanted_cell.nodes, victims.index(wanted_cell.victim), wanted_cell.msg_bytes),
            *(aggressors.index(wanted_cell.aggressor), wanted_cell.burst_s or 0, wanted_cell.pause_s or 0),
        )
    )
    return Campaign(file.title, system, patterns["victims"], patterns["aggressors"], tuple(cells))


def cell_of(nodes: int, victim: str, size: int, aggressor: str = NONE, *pauses: float | None) -> Cell:
    """A cell that is not in a table; ``pauses`` are the lengths of bursts and of pauses, s."""
    burst, pause = pauses or (None, None)
    return Cell(nodes, victim, aggressor, burst, pause, size, (), ())


def _product(file: CampaignFile, wanted: Wanted) -> Iterator[Cell]:
    for nodes, victim, size in product(dict.fromkeys(wanted.nodes), file.victims, dict.fromkeys(wanted.sizes)):
        yield cell_of(nodes, victim, size)
        for aggressor in file.aggressors:
            yield cell_of(nodes, victim, size, aggressor)
            yield from (cell_of(nodes, victim, size, aggressor, *pauses) for pauses in dict.fromkeys(wanted.bursts))


@dataclass(frozen=True)
class Options:
    """Options of the scripts: how the cells are run, and for whom."""

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
        raise ScenarioError(
            Problem("--system", "cannot be used as a name in scripts", system, "letters, digits, '.', '_' and '-'")
        )
    for name, value in (("--account", options.account), ("--partition", options.partition), ("--time", options.time)):
        if value is not None and re.fullmatch(r"[!-~]+", value) is None:
            raise ScenarioError(Problem(name, "must be one word", value))
    for value in (*options.directives, options.launcher_options):
        if not value.isprintable():
            raise ScenarioError(Problem("--sbatch, --launcher-options", "must be one line", value))
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ScenarioError(Problem("--out", "exists and is not empty; choose another folder", str(folder)))
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("measure.c", "run.bash"):
        write_text(folder / name, (files("fairlane.papers.campaign") / name).read_text("utf-8"))
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
            workload = campaign.aggressors[cell.aggressor]
            aggressor = arguments(workload, workload.message_size)
            if cell.burst_s is not None:
                aggressor += f" --burst {cell.burst_s:.9g} --pause {cell.pause_s or 0:.9g}"
        pauses = ("" if value is None else f"{value:.9g}" for value in (cell.burst_s, cell.pause_s))
        victim = arguments(campaign.victims[cell.victim], cell.msg_bytes)
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
