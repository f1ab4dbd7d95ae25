"""Cells: an experiment with one placement and one treatment. Each is computed by itself, stored at once, kept for ever.

A cell is performed and stored as the tasks of studies are: in processes that are replaced when they die, or on Dask.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any

import polars as pl

from fairlane.controller import control, make
from fairlane.controller.loop import Outcome, Phases
from fairlane.reproduce.experiment import CONTROL, DEFAULT, Experiment, Scale
from fairlane.reproduce.rerouted import rerouted
from fairlane.study.execute import Executed, Watcher, execute
from fairlane.study.pool import Pool
from fairlane.study.sources import sources
from fairlane.study.store import Store
from fairlane.study.task import Stopwatch, files_of
from fairlane.units import DURATION

__all__ = ["Cell", "Done", "run_cells"]

TRACE_RANKS = 32
"""About as many ranks as a trace has, for the estimate of the time left."""


@dataclass(frozen=True)
class Cell:
    """What one process computes: plain values only, so that it can be sent to any process."""

    paper: str
    experiment: str
    placement: int
    treatment: str
    scale: Scale

    @property
    def label(self) -> str:
        """What it is, for people."""
        return f"{self.experiment}, placement {self.placement}, {self.treatment}"

    @property
    def cost(self) -> float:
        """About how long it takes, compared with others."""
        ranks = sum(job.count * (job.ranks or TRACE_RANKS) for job in self._phases[0].jobs)
        return self.scale.periods * DURATION.parse(self.scale.period) * ranks * 1e-9

    @cached_property
    def digest(self) -> str:
        """Another one for anything that gives other rows: other scenarios, another simulator, another controller."""
        scenarios = {at: phase.model_dump(mode="json") for at, phase in self._phases.items()}
        made_by = sources("none" if self.treatment == DEFAULT else self.treatment)
        files = sorted(set(files_of(scenarios, Path())))
        fields = asdict(self)
        del fields["scale"]["placements"]  # how many others there are
        key = [made_by, fields, scenarios, self._experiment.routing, self._parameters, files]
        return sha256(json.dumps(key, sort_keys=True).encode()).hexdigest()[:32]

    @property
    def written(self) -> Mapping[str, Any]:
        """Its fields."""
        return {"cell": {**asdict(self), "scale": {k: v for k, v in asdict(self.scale).items() if v is not None}}}

    @property
    def _experiment(self) -> Experiment:
        from fairlane.reproduce import PAPERS

        return PAPERS[self.paper].experiments[self.experiment]

    @property
    def _phases(self) -> Phases:
        return self._experiment.phases(self.placement, self.scale)

    @property
    def _parameters(self) -> Mapping[str, Any]:
        return self._experiment.parameters if self.treatment == CONTROL else {}

    def compute(self, watch: Stopwatch) -> dict[str, Any]:
        """A row for each period and job, column by column. Depends on nothing but the cell."""
        phases, routing = self._phases, self._experiment.routing
        if routing is not None:
            with watch.lap("set-up"):
                phases = {at: rerouted(phase, routing) for at, phase in phases.items()}
        untreated = self.treatment == DEFAULT
        with watch.lap("simulating"):
            outcomes = control(
                phases,
                make("none" if untreated else self.treatment, self._parameters),
                period=self.scale.period,
                periods=self.scale.periods,
                draws=self.scale.draws,
                default=False,
                isolated=untreated,
                threads=1,
            )
            rows = [row for outcome in outcomes for row in _rows(outcome, _workloads(phases))]
        return pl.DataFrame(rows, schema=_SCHEMA).to_dict(as_series=False)


@dataclass(frozen=True)
class Done:
    """A cell with its rows, or with why it has none."""

    cell: Cell
    rows: pl.DataFrame | None
    seconds: float = 0.0
    """Wall time that it took when it was computed."""
    cpu: float = 0.0
    """Processor time that it took."""
    error: str | None = None


def _workloads(phases: Phases) -> dict[str, str]:
    return {name: job.kind for phase in phases.values() for job in phase.jobs for name in job.names()}


def _rows(outcome: Outcome, workloads: dict[str, str]) -> Iterator[dict[str, Any]]:
    for job, done in outcome.treated.jobs.items():
        alone = outcome.isolated.get(job)
        yield {
            "period": outcome.period,
            "job": job,
            "workload": workloads[job],
            "state": outcome.state,
            "accepted": outcome.accepted,
            "iterations": done.work,
            "isolated_iterations": alone.work if alone else None,
        }


_SCHEMA: dict[str, Any] = {
    "period": pl.Int32,
    "job": pl.String,
    "workload": pl.String,
    "state": pl.String,
    "accepted": pl.Boolean,
    "iterations": pl.Int64,
    "isolated_iterations": pl.Int64,
}


def run_cells(cells: Sequence[Cell], pool: Pool, store: Store, watcher: Watcher) -> list[Done]:
    """Computes the cells that the store does not have yet; every one is stored as soon as it is done.

    A cell that fails twice is reported with its error, and the others go on.
    """
    executed = Executed()
    execute(cells, pool, store, watcher, executed)
    return [_done(cell, executed, store) for cell in cells]


def _done(cell: Cell, executed: Executed, store: Store) -> Done:
    answer = executed.of(cell)
    if answer is None:
        return Done(cell, None, error=executed.failures[cell.digest].error)
    kept = store.answer(cell) or {}
    return Done(cell, pl.DataFrame(answer, schema=_SCHEMA), sum(kept.get("laps", {}).values()), kept.get("cpu", 0.0))
