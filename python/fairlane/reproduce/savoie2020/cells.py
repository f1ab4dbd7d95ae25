"""Cells: an experiment with one placement and one treatment. Each is computed by itself."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any

import polars as pl

from fairlane.controller import control
from fairlane.controller.loop import Outcome, Phases
from fairlane.reproduce.running import source_of
from fairlane.reproduce.savoie2020.experiment import CONTROL, DEFAULT, Experiment, Scale
from fairlane.reproduce.savoie2020.rerouted import rerouted
from fairlane.tasks.sources import sources
from fairlane.tasks.task import Stopwatch, files_of
from fairlane.units import DURATION

__all__ = ["SCHEMA", "Cell"]

TRACE_RANKS = 32
"""About as many ranks as a trace has, for the estimate of the time left."""


@dataclass(frozen=True)
class Cell:
    """What one process computes: plain values only, so that it can be sent to any process."""

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
        simulator = sources("none" if self.treatment == DEFAULT else self.treatment)
        made_by = [simulator, *map(source_of, (__name__, rerouted.__module__))]
        files = sorted(set(files_of(scenarios, Path())))
        fields = asdict(self)
        del fields["scale"]["placements"]  # how many others there are
        key = [made_by, fields, scenarios, self._experiment.routing, self._parameters, files]
        return sha256(json.dumps(key, sort_keys=True).encode()).hexdigest()[:32]

    @property
    def description(self) -> Mapping[str, Any]:
        """Its fields."""
        return {"cell": {**asdict(self), "scale": {k: v for k, v in asdict(self.scale).items() if v is not None}}}

    @property
    def _experiment(self) -> Experiment:
        from fairlane.reproduce.savoie2020.experiments import EXPERIMENTS

        return EXPERIMENTS[self.experiment]

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
                {"name": "none" if untreated else self.treatment, **self._parameters},
                period=self.scale.period,
                periods=self.scale.periods,
                draws=self.scale.draws,
                default=False,
                isolated=untreated,
                threads=1,
            )
            rows = [row for outcome in outcomes for row in _rows(outcome, _workloads(phases))]
        return pl.DataFrame(rows, schema=SCHEMA).to_dict(as_series=False)


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


SCHEMA: Mapping[str, Any] = {
    "period": pl.Int32,
    "job": pl.String,
    "workload": pl.String,
    "state": pl.String,
    "accepted": pl.Boolean,
    "iterations": pl.Int64,
    "isolated_iterations": pl.Int64,
}
"""The columns of an answer."""
