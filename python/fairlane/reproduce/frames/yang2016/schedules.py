"""Section V of Yang et al. 2016: an allocator that knows patterns beside two that do not, on a recorded job log.

The log is replayed on the torus of the model ``torus-128``, which says how patterns, hosts and neighbours slow jobs
down; moments of each schedule are simulated by packets to see how far the model is off there. What the paper leaves
open is chosen here: the log of the iPSC/860 of NASA Ames, whose jobs come twice as fast, for a machine that is full.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from hashlib import sha256
from typing import Any

import polars as pl

from fairlane.errors import ScenarioError
from fairlane.reproduce.frames.running import source_of
from fairlane.reproduce.frames.traces import job_log
from fairlane.scheduler.compare import AWARE, BLIND, CONTIGUOUS
from fairlane.tasks.sources import sources
from fairlane.tasks.task import Answer, Stopwatch

__all__ = ["Schedules", "problem_with_log", "schedules_table"]


@dataclass(frozen=True)
class Schedules:
    """A task: the log under all three allocators. The answer has a row for each (see ``schedules_table``)."""

    log: str
    """Name of the job log."""
    moments: int
    """How many moments of each schedule are simulated by packets."""
    model: str = "torus-128"
    load: int = 2
    """Jobs come so many times as fast."""
    seed: int = 1
    label: str = "schedules"
    cost: float = 100.0

    @property
    def description(self) -> Mapping[str, Any]:
        """All that decides about it, but for the program."""
        return {key: value for key, value in asdict(self).items() if key not in ("label", "cost")}

    @cached_property
    def digest(self) -> str:
        """It is another one when the log, the model or the program change."""
        from fairlane.scheduler import load_model

        log = sha256(job_log(self.log).read_bytes()).hexdigest()
        model = load_model(self.model).model_dump_json()
        parts = [*self.description.items(), log, model, sources("none"), source_of(__name__)]
        return sha256("\0".join(map(repr, parts)).encode()).hexdigest()[:32]

    def compute(self, watch: Stopwatch) -> Answer:
        """Replays the log under each allocator, and simulates moments of what came of it."""
        from dataclasses import replace

        from fairlane.placement import PLACEMENTS
        from fairlane.scheduler import Forecast, compare_allocators, load_model, read_log, verify

        with watch.lap("set-up"):
            forecast = Forecast(load_model(self.model), self.seed)
            read = read_log(job_log(self.log), hosts=forecast.fabric.hosts)
            jobs = [replace(job, submit=round(job.submit / self.load)) for job in read.jobs]
            allocators = {name: PLACEMENTS[name]() for name in (CONTIGUOUS, BLIND, AWARE)}
        with watch.lap("replaying"):
            found = compare_allocators(jobs, forecast.fabric, allocators, seed=self.seed, forecast=forecast)
        with watch.lap("simulating"):
            checked = {name: verify(one, forecast, self.moments, self.seed) for name, one in found.schedules.items()}
        rows = {name: asdict(row) for name, row in found.metrics.items()}
        for name, one in checked.items():
            rows[name]["model"] = {"snapshots": one.snapshots, **(one.error.model_dump() if one.error else {})}
        return rows


def problem_with_log(log: str) -> str | None:
    """Why allocators cannot be compared here; None if the log is there."""
    try:
        job_log(log)
    except ScenarioError as error:
        return f"allocators are not compared: {error}"
    return None


def schedules_table(rows: Mapping[str, Mapping[str, Any]]) -> pl.DataFrame:
    """A row for each allocator: the fields of ``ScheduleMetrics``; ``model_*``: how far the model was off."""
    return pl.DataFrame(
        [
            {
                "allocator": name,
                **{key: value for key, value in row.items() if key != "model"},
                **{f"model_{key}": value for key, value in row["model"].items()},
            }
            for name, row in rows.items()
        ]
    )
