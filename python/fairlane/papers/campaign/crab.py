"""Runs of CRAB (HLC-Lab/CRAB), which starts applications together and stores what those that collect have measured.

A run's folder has ``config.json`` (options, and of each application its wrapper, arguments, and whether it collects),
``environment.json``, what its batch job printed (``slurm_output.log``), and for each application that collects
``data_app_NUMBER.csv``: a line for each iteration with mean, minimum, maximum and median over the ranks. Newer versions
run several experiments in a run and have a folder for each. Here an experiment is a run: the applications that collect
are victims, one after the other, beside at most one aggressor. What a table of cells cannot say is left out and named.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np

from fairlane.core.errors import Problem, ScenarioError
from fairlane.inputs.csv_rows import LONGEST_S, read_rows
from fairlane.inputs.files import MOST_STORED, lines_of, parse_json, read_text, reading
from fairlane.inputs.hosts import members
from fairlane.papers.campaign.cells import Cell
from fairlane.papers.campaign.file import NONE
from fairlane.papers.campaign.measured import AGGRESSOR, VICTIM, Run, Times
from fairlane.papers.campaign.script import MOST_BYTES, MOST_NODES, cell_of

VICTIMS = {"a2a_comm_only": "All-to-All", "agtr_comm_only": "All-Gather", "inc_b": "Incast"}
"""Names of victims by the wrapper that runs them."""
AGGRESSORS = {
    "noise_a2a": "A2A",
    "bursty_noise_a2a": "A2A",
    "a2a_comm_only": "A2A",
    "noise_incast": "Inc",
    "bursty_noise_incast": "Inc",
    "inc_b": "Inc",
}
"""Names of aggressors by wrapper."""
_NOISE_BYTES = 2 << 20  # what aggressors send: that of `noise` and `bursty_noise` is fixed
_SAMPLES = 1000  # iterations of which a program keeps the times, unless it is told otherwise
_BYTES = 1024  # size of messages, unless it is told otherwise
_COMMAND = re.compile(r"SLURM command is: .*?--nodelist[ =](\S+) .*?/([A-Za-z0-9_-]+)(?: .*)?$")


class _LeftOutError(Exception):
    """Reason why a part of a run is not a cell."""


@dataclass(frozen=True)
class _Application:
    number: int
    wrapper: str
    arguments: Sequence[str]
    collects: bool
    start: str

    def option(self, name: str, default: str) -> str:
        """The value of an option of its program."""
        arguments = [*self.arguments, ""]
        return arguments[arguments.index(name) + 1] if name in arguments else default

    def whole(self, name: str, default: int) -> int:
        """The value of an option that is a whole number."""
        text = self.option(name, str(default))
        if not (text.isascii() and text.isdecimal() and len(text) < 20 and 1 <= int(text) <= MOST_BYTES):
            raise _LeftOutError(f"application {self.number}: {name} {text!r}: not from 1 to {MOST_BYTES}")
        return int(text)


def crab_runs(folder: Path) -> Iterator[Run]:
    """The runs in a folder of CRAB, or in those within it."""
    for config in sorted(folder.rglob("config.json")):
        data = _object(config)
        if not {"applications", "experiments"} & data.keys():
            continue
        try:
            options = data["global_options"]
            apart = data.get("experiments", {"": {"apps": data.get("applications")}})
            for name, experiment in apart.items():
                yield from _experiment(config, config.parent / name, options, _applications(experiment["apps"]))
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            message = f"is not as CRAB writes it: {type(error).__name__}: {error}"
            raise ScenarioError(Problem.of_file(config, message)) from None


def _object(file: Path) -> dict[str, Any]:
    with reading(file):
        data = parse_json(read_text(file))
    if not isinstance(data, dict):
        raise ScenarioError(Problem.of_file(file, "is not as CRAB writes it", allowed="an object"))
    return data


def _applications(apps: Mapping[str, Mapping[str, Any]]) -> list[_Application]:
    """The applications in the order in which CRAB numbers them."""
    keys = sorted(apps, key=lambda key: (not key.isdecimal(), int(key) if key.isdecimal() else 0, key))
    listed = [apps[key] for key in keys if apps[key].get("path")]
    return [
        _Application(
            number,
            PurePosixPath(app["path"]).stem,
            str(app.get("args", "")).split(),
            bool(app.get("collect", False)),
            str(app.get("start", "0")),
        )
        for number, app in enumerate(listed)
    ]


def _experiment(config: Path, folder: Path, options: Mapping[str, Any], apps: Sequence[_Application]) -> Iterator[Run]:
    """The run of an experiment; one for each repetition if it has several."""
    name = config.parent.name if folder == config.parent else f"{config.parent.name}/{folder.name}"
    system, nodes = _system(config), int(options["numnodes"])
    by_repetition: dict[str, list[tuple[Cell, Times]]] = {}
    left_out: list[str] = []
    placement: list[tuple[str, str]] = []
    try:
        if not 2 <= nodes <= MOST_NODES:
            raise _LeftOutError(f"{nodes} nodes, and a cell has 2 to {MOST_NODES}")
        victims, beside = _jobs(options, apps)
        placement = _placement(config.parent / "slurm_output.log", apps, nodes)
        for app in victims:
            for repetition, cell, times in _cells(folder, app, nodes, beside, left_out):
                by_repetition.setdefault(repetition, []).append((cell, times))
        if by_repetition and not placement:
            left_out.append(f"{folder}: its nodes are unknown: slurm_output.log does not list them")
    except _LeftOutError as error:
        left_out.append(f"{folder}: {error}")
    for repetition, cells in (by_repetition or {"1": []}).items():
        run_name = name if len(by_repetition) <= 1 else f"{name}#{repetition}"
        yield Run(system, run_name, nodes, folder, cells, placement, left_out)
        left_out = []


def _system(config: Path) -> str:
    """The machine's name; CRAB also has it as the name of the folder in which runs are."""
    environment = config.parent / "environment.json"
    system = _object(environment).get("CRAB_SYSTEM") if environment.is_file() else None
    return str(system or config.parent.resolve().parent.name)


Beside = tuple[str, float | None, float | None]  # an aggressor's name, its bursts and pauses


def _jobs(options: Mapping[str, Any], apps: Sequence[_Application]) -> tuple[list[_Application], Beside]:
    """The victims, and what is beside them."""
    victims = [app for app in apps if app.collects]
    others = [app for app in apps if not app.collects]
    if str(options.get("ppn", 1)) != "1":
        raise _LeftOutError(f"{options['ppn']} ranks on each node, and a cell has one")
    if options.get("outformat", "csv") != "csv":
        raise _LeftOutError(f"its data are stored as {options['outformat']}, and only csv can be read")
    if len(others) > 1:
        raise _LeftOutError(f"{len(others)} applications beside its victim, and a cell has one aggressor")
    if sum(not app.start.startswith("s") for app in victims) > 1:
        raise _LeftOutError("its victims run at the same time")
    return victims, _aggressor(others[0]) if others else (NONE, None, None)


def _aggressor(app: _Application) -> Beside:
    name = _known(app, AGGRESSORS, "an aggressor")
    if app.wrapper.startswith("bursty_"):
        texts = [*app.arguments, "", ""][:2]
        pause, burst = (_seconds(app, text) for text in texts)
        return name, burst, pause
    if not app.wrapper.startswith("noise_"):
        if (size := app.whole("-msgsize", _BYTES)) != _NOISE_BYTES:
            sizes = f"its messages have {size} B, and those of {name} {_NOISE_BYTES}"
            raise _LeftOutError(f"application {app.number}, {app.wrapper}: {sizes}")
        burst, pause = (_seconds(app, app.option(option, "0")) for option in ("-blength", "-bpause"))
        if burst and pause:
            return name, burst, pause
    return name, None, None


def _known(app: _Application, names: Mapping[str, str], kind: str) -> str:
    if app.wrapper not in names:
        unknown = f"application {app.number}: {app.wrapper} is not known as {kind}"
        raise _LeftOutError(f"{unknown}; known: {', '.join(names)}")
    return names[app.wrapper]


def _seconds(app: _Application, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value < LONGEST_S:
        raise _LeftOutError(f'application {app.number}, {app.wrapper}: "{text[:40]}" is not a valid time')
    return value


def _cells(
    folder: Path, app: _Application, nodes: int, beside: Beside, left_out: list[str]
) -> Iterator[tuple[str, Cell, Times]]:
    """The cells of a victim, one for each repetition, with its number; adds to ``left_out`` what has none."""
    aggressor, burst, pause = beside
    try:
        victim, size = _known(app, VICTIMS, "a victim"), app.whole("-msgsize", _BYTES)
        expected = min(app.whole("-iter", 1), app.whole("-maxsamples", _SAMPLES))
    except _LeftOutError as error:
        left_out.append(f"{folder}: {error}")
        return
    file = folder / f"data_app_{app.number}.csv"
    if not file.is_file():
        left_out.append(f"{file}: is missing, {victim} of {size} B: it had not ended, or with an error")
        return
    for repetition, times in _times(file, app.number).items():
        if len(times) < expected:
            left_out.append(f"{file}: {len(times)} iterations of {expected}, {victim} of {size} B: it was cut off")
        else:
            yield repetition, cell_of(nodes, victim, size, aggressor, burst, pause), np.array(times)


def _times(file: Path, number: int) -> dict[str, list[float]]:
    """The slowest rank's time of every iteration, by repetition."""
    column = f"{number}_Max-Duration_s"
    times: dict[str, list[float]] = {}
    for row in read_rows(file, ("run_id", column), others=True):
        times.setdefault(row["run_id"], []).append(row.seconds(column, zero=True))
    return times


def _placement(log: Path, apps: Sequence[_Application], nodes: int) -> list[tuple[str, str]]:
    """Job and node of each rank, of the commands that the batch job has printed; empty if it has not."""
    if not log.is_file():
        return []
    with reading(log):
        commands = [match for line in lines_of(read_text(log, MOST_STORED)) if (match := _COMMAND.search(line))]
    of_job: dict[str, set[tuple[str, ...]]] = {VICTIM: set(), AGGRESSOR: set()}
    for app in apps:
        job = VICTIM if app.collects else AGGRESSOR
        of_job[job] |= {tuple(members(command[1])) for command in commands if command[2] == app.wrapper}
    placed = [(job, node) for job, lists in of_job.items() for nodes_of_list in sorted(lists) for node in nodes_of_list]
    if any(len(lists) > 1 for lists in of_job.values()) or not of_job[VICTIM]:
        return []
    if (count := len(next(iter(of_job[VICTIM])))) != (nodes + 1) // 2:
        raise _LeftOutError(f"its victim has {count} of {nodes} nodes, and that of a cell half of them")
    return placed
