"""The agent on a testbed: it decides by its twin, sets levels on the trunks, and what that changes is measured.

*A controller in control of the testbed's ranks, by their progress: measured against runs without it, and simulated.*
Each repetition has a run of all jobs with the controller and one without, of the same length and on the same processes;
every second repetition has them in reverse order. A repetition is stored when it is complete. The same controller, with
the cost that reading and changing had here, controls the simulated jobs.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from statistics import fmean, median
from time import sleep
from typing import Any

import polars as pl

from fairlane.cluster.agent.agent import Agent
from fairlane.cluster.agent.backends.htb import LevelClass
from fairlane.cluster.agent.config import AgentConfig
from fairlane.cluster.agent.control import Period, Steered
from fairlane.cluster.agent.cost import parts
from fairlane.cluster.agent.journal import Journal
from fairlane.core.errors import Problem, ScenarioError
from fairlane.core.seeds import Purpose, stream
from fairlane.core.signals import temporary_folder
from fairlane.core.units import DURATION
from fairlane.core.wording import seconds
from fairlane.inputs.files import write_text
from fairlane.lab.testbed.file import SteerTable, TestbedFile
from fairlane.lab.testbed.machine import MeasurementError
from fairlane.lab.testbed.measure import (
    AGENT,
    STEERED,
    TOGETHER,
    Bench,
    Phase,
    backend_of,
    bench,
    linux,
    store,
    times_per_iteration,
)
from fairlane.lab.testbed.plan import Plan
from fairlane.lab.testbed.results import META, effects, measured_effect, measured_keys
from fairlane.lab.testbed.simulate import STARTS_PS, HostModel, qos_table, scenario, tables
from fairlane.results.milestones import common
from fairlane.sim.controller import control, controller_of

_SQUEUE, _JOURNAL = "squeue.json", "agent.db"


@dataclass(frozen=True)
class Controlled:
    """Settings by the agent, and the iterations before and after."""

    levels: dict[str, int]
    """Service level by job; jobs without one are left out."""
    decisions: tuple[str, ...]
    """Decisions that the agent reported."""
    iterations: pl.DataFrame
    """Rows as those of ``measure``, of the kinds ``together`` and ``agent``."""


def configuration(file: TestbedFile, model: HostModel, folder: Path, **more: Any) -> AgentConfig:
    """An agent's configuration: the fabric with the host model, ``squeue`` with the testbed's jobs, and ``more``."""
    jobs = [
        {"job_id": number, "name": job.name, "job_state": ["RUNNING"], "nodes": ",".join(job.hosts)}
        for number, job in enumerate(file.jobs, 1)
    ]
    (folder / _SQUEUE).write_text(json.dumps({"jobs": jobs}), encoding="utf-8")
    slurm = {"socket": str(folder / "agent.socket"), "squeue": ["cat", str(folder / _SQUEUE)]}
    keys = {"journal": str(folder / _JOURNAL), **tables(file, model), "slurm": slurm, **more}
    return AgentConfig.model_validate(keys)


def _with_twin(file: TestbedFile, model: HostModel, folder: Path) -> AgentConfig:
    """The configuration of an agent that decides by its twin, with a profile for each job."""
    assert file.agent is not None, "the testbed has a table agent"
    assert file.qos is not None, "and so it has levels"
    seconds = file.simulate.duration
    return configuration(
        file,
        model,
        folder,
        qos=qos_table(file.qos.levels),
        profile=[
            {"name": job.name, "workload": {"name": type(job.workload).name, **job.workload.parameters()}}
            for job in file.jobs
        ],
        policy={**file.agent.model_dump(), "changes_per_minute": 60},
        twin={
            "warm_up": DURATION.format(seconds // 5),
            "horizon": DURATION.format(seconds),
            "replicates": file.simulate.replicates,
            "seed": file.seed,
            "threads": 1,
        },
        backend=backend_of(file),
    )


def control_levels(
    bench: Bench, model: HostModel, folder: Path, repetitions: int, report: Callable[[str], object] = str
) -> Controlled:
    """Lets the agent decide and set levels, and measures all jobs with these levels and without any.

    The first phase with levels has them as the agent has set them; afterwards it takes them back, and the same levels
    are set again for the other repetitions. Every second repetition has its two phases in reverse order.

    Raises ``MeasurementError`` if what the agent set is not in force, or not taken back.
    """
    file = bench.file
    names = tuple(job.name for job in file.jobs)
    config = _with_twin(file, model, folder)
    lines: list[str] = []
    with Journal(config.journal) as journal:
        agent = Agent(config, journal, SimpleQueue(), apply=True, report=lines.append)
        agent.start()
        agent.run(once=True)
        settings = journal.in_force(config.backend.name)
        levels = {file.jobs[int(setting.job) - 1].name: setting.level for setting in settings}
        if config.backend.in_force() != {host: setting.level for setting in settings for host in setting.hosts}:
            raise MeasurementError("what the agent has set is not in force on the trunks")
        bench.mark(levels)
        first = bench.run(Phase(AGENT, names))
        bench.mark({})
    with Journal(config.journal) as journal:
        Agent(config, journal, SimpleQueue(), apply=True, report=lines.append).withdraw()
    if config.backend.in_force():
        raise MeasurementError("what the agent has set is still in force after it was taken back")
    report(f"the agent has set {levels}" if levels else "the agent has set nothing")
    measured = [_numbered(first, 0), _numbered(bench.run(Phase(TOGETHER, names)), 0)]
    for number in range(1, repetitions):
        phases = [Phase(TOGETHER, names), Phase(AGENT, names, levels)]
        measured += [_numbered(bench.phase(phase), number) for phase in phases[:: -1 if number % 2 else 1]]
    return Controlled(levels, tuple(lines), pl.concat(measured))


def _numbered(rows: pl.DataFrame, number: int) -> pl.DataFrame:
    return rows.with_columns(repetition=pl.lit(number, pl.Int64))


MEAN = "(mean)"
"""In place of a job's name: the mean over jobs."""


@dataclass(frozen=True)
class Steering:
    """Periods of a controller, measured and simulated."""

    improvement: pl.DataFrame
    """Rows as those of ``effects``, the last one for the mean over jobs."""
    periods: pl.DataFrame
    """A row for each repetition, period and job: ``state``, ``iterations``, ``read_s``, ``change_s`` ..."""

    def lines(self) -> Iterator[str]:
        """Yield lines on the cost of reading and changing, and on adopted changes."""
        periods_of = self.periods.unique(["repetition", "period"])
        changes = periods_of.filter(pl.col("change_s") > 0)["change_s"].to_list()
        for part in parts(periods_of["read_s"].to_list(), changes):
            middle, late = seconds(part["median_s"]), seconds(part["p95_s"])
            yield f"{part['what']} took {middle} (median), {late} (95th percentile), {part['times']} times"
        adopted = periods_of.group_by("repetition").agg(pl.col("accepted").sum())["accepted"]
        mean, periods = fmean(adopted.to_list()), periods_of["period"].n_unique()
        yield f"configurations adopted: {mean:.1f} in a repetition of {periods} periods"


def steer(file: TestbedFile, model: HostModel, folder: Path, report: Callable[[str], object] = str) -> Steering:
    """Measures the repetitions that ``folder`` does not have, and compares them with the simulated controller.

    Raises ``ScenarioError`` if the folder has repetitions of another testbed or controller, and as ``bench``.
    """
    table = file.steer
    assert table is not None, "the testbed has a table steer"
    _claim(folder, file)
    names = [folder / f"repetition-{number:04}.parquet" for number in range(table.repetitions)]
    if absent := [number for number, path in enumerate(names) if not path.is_file()]:
        length = 2 * table.periods * table.period * 1e-12
        report(f"the controller: {len(absent)} repetitions, about {len(absent) * length:.0f} s")
        with bench(file) as bench_of_file:
            for number in absent:
                iterations, periods = _repetition(bench_of_file, model, table, number)
                store(periods, _periods(names[number]))
                store(iterations, names[number])
                report(f"repetition {number + 1} of {table.repetitions} measured")
    measured = measured_effect(times_per_iteration(pl.concat(map(pl.read_parquet, names))), STEERED)
    periods = pl.concat([pl.read_parquet(_periods(path)) for path in names])
    cost = _cost(periods)
    report(f"simulating the controller; its settings are in effect {seconds(cost)} after the end of a period")
    predicted = simulated(file, model, cost)
    return Steering(effects(STEERED, _with_mean(measured), _with_mean(predicted)), periods)


def _repetition(bench: Bench, model: HostModel, table: SteerTable, number: int) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The iterations of a run with control and of one without, and the periods under control."""
    names = tuple(job.name for job in bench.file.jobs)
    seen: list[Period] = []
    runs = [
        (TOGETHER, lambda: sleep(table.periods * table.period * 1e-12)),
        (STEERED, lambda: seen.extend(_controlled(bench, model, table))),
    ]
    rows = [bench.run(Phase(kind, names), during) for kind, during in runs[:: -1 if number % 2 else 1]]
    numbered = pl.lit(number, pl.Int64).alias("repetition")
    return pl.concat(rows).with_columns(numbered), _rows(seen, names).with_columns(numbered)


def _controlled(bench: Bench, model: HostModel, table: SteerTable) -> list[Period]:
    """The periods of an agent with the controller, which takes back its settings at the end."""
    count = table.controller.service_levels
    levels = [LevelClass(level=level, share=1 / count, dscp=level) for level in range(count)]
    backend = linux(bench.file, levels, Plan(bench.file.fabric).marks)
    seen: list[Period] = []
    with temporary_folder("fairlane-steered-") as folder:
        config = configuration(
            bench.file,
            model,
            folder,
            controller=table.controller,
            progress={"period": DURATION.format(table.period), "through": [], "directories": [str(bench.pages)]},
            backend=backend,
        )
        with Journal(config.journal) as journal:
            agent = Steered(config, journal, SimpleQueue(), apply=True, observe=seen.append)
            agent.start()
            try:
                agent.run(periods=table.periods)
            finally:
                agent.withdraw()
            if agent.failed:
                raise MeasurementError("the agent could not carry out a change of the controller")
    if backend.in_force():
        raise MeasurementError("what the controller has set is still in force after it was taken back")
    return seen


def _rows(periods: list[Period], names: tuple[str, ...]) -> pl.DataFrame:
    rows: list[dict[str, Any]] = []
    for period in periods:
        for job, work in period.work.jobs.items():
            levels = {setting.rank: setting.weight for setting in period.settings if setting.job == job}
            rows.append({"period": period.number, "job": names[int(job) - 1], "state": period.state})
            rows[-1] |= {"accepted": period.accepted, "seconds": period.work.seconds, "iterations": work.work}
            rows[-1] |= {"advance": work.fractional, "weights": json.dumps(levels)}
            rows[-1] |= {"read_s": period.read_s, "change_s": period.change_s}
    return pl.DataFrame(rows, infer_schema_length=None)


def simulated(file: TestbedFile, model: HostModel, cost_s: float) -> dict[str, list[float]]:
    """The improvement of each job over the whole run by replicate, with the controller in simulated control."""
    table = file.steer
    assert table is not None, "the testbed has a table steer"
    names = [job.name for job in file.jobs]
    improvements: dict[str, list[float]] = {name: [] for name in names}
    cost = min(round(cost_s * 1e12), table.period - 1)
    for replicate in range(file.simulate.replicates):
        draw = stream(file.seed, Purpose.SNAPSHOT, replicate)
        starts = {name: int(draw.integers(1, STARTS_PS)) for name in names}
        scenario_of = scenario(file, model, names, starts=starts, duration=table.periods * table.period)
        made = controller_of(table.controller.model_copy(update={"cost": cost}, deep=True))
        *_, last = control(scenario_of, made, mode="online", period=table.period, periods=table.periods, threads=1)
        for name in names:
            runs = [last.reached[kind].get(name) for kind in ("treated", "default")]
            both = common(runs[0], runs[1], warm_up=False) if runs[0] and runs[1] else None
            improvements[name].append(float("nan") if both is None or both.change is None else both.change)
    return improvements


def _with_mean(values: Mapping[str, list[float]]) -> dict[str, list[float]]:
    return {**values, MEAN: [fmean(row) for row in zip(*values.values(), strict=True)]}


def _cost(periods: pl.DataFrame) -> float:
    """Median time from the end of a period until other settings are in force, s."""
    changed = periods.unique(["repetition", "period"]).filter(pl.col("change_s") > 0)
    times = (changed["read_s"] + changed["change_s"]).to_list()
    return median(times) if times else 0.0


def _periods(repetition: Path) -> Path:
    return repetition.with_name(repetition.name.replace("repetition", "periods"))


def _claim(folder: Path, file: TestbedFile) -> None:
    """Makes the folder, or finds that it is of the same testbed and controller."""
    assert file.steer is not None, "the testbed has a table steer"
    keys = {**measured_keys(file), "steer": file.steer.model_dump(mode="json", exclude={"repetitions"})}
    keys["steer"]["controller"] = {"name": file.steer.controller.name, **file.steer.controller.model_dump(mode="json")}
    keys["steer"]["marks"] = Plan(file.fabric).marks
    meta = folder / META
    if not meta.is_file():
        folder.mkdir(exist_ok=True)
        write_text(meta, json.dumps(keys, indent=1) + "\n")
    elif json.loads(meta.read_text(encoding="utf-8")) != keys:
        message = "has periods of another testbed or controller"
        raise ScenarioError(Problem("--out", message, str(folder), "the folder of the same file, or a new one"))
