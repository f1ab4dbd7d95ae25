"""The agent on a testbed: it decides by its twin, sets levels on the trunks, and what that changes is measured."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import polars as pl

from fairlane.agent import Agent, AgentConfig, Journal
from fairlane.testbed.errors import MeasurementError
from fairlane.testbed.file import TestbedFile
from fairlane.testbed.host_model import HostModel
from fairlane.testbed.measure import AGENT, TOGETHER, Bench, Phase, backend_of
from fairlane.testbed.simulate import qos_table, tables
from fairlane.units import DURATION

_SQUEUE, _JOURNAL = "squeue.json", "agent.db"


@dataclass(frozen=True)
class Controlled:
    """What the agent did, and the iterations before and after."""

    levels: dict[str, int]
    """Service level by job; jobs without one are left out."""
    decisions: tuple[str, ...]
    """What the agent reported."""
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
    found = {"journal": str(folder / _JOURNAL), **tables(file, model), "slurm": slurm, **more}
    return AgentConfig.model_validate(found)


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


def control(
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
        levels = {file.jobs[int(one.job) - 1].name: one.level for one in settings}
        if config.backend.in_force() != {host: one.level for one in settings for host in one.hosts}:
            raise MeasurementError("what the agent has set is not in force on the trunks")
        bench.mark(levels)
        first = bench.run(Phase(AGENT, names))
        bench.mark({})
    with Journal(config.journal) as journal:
        Agent(config, journal, SimpleQueue(), apply=True, report=lines.append).withdraw()
    if config.backend.in_force():
        raise MeasurementError("what the agent has set is still in force after it was taken back")
    report(f"the agent has set {levels}" if levels else "the agent has set nothing")
    found = [_numbered(first, 0), _numbered(bench.run(Phase(TOGETHER, names)), 0)]
    for number in range(1, repetitions):
        phases = [Phase(TOGETHER, names), Phase(AGENT, names, levels)]
        found += [_numbered(bench.phase(phase), number) for phase in phases[:: -1 if number % 2 else 1]]
    return Controlled(levels, tuple(lines), pl.concat(found))


def _numbered(rows: pl.DataFrame, number: int) -> pl.DataFrame:
    return rows.with_columns(repetition=pl.lit(number, pl.Int64))
