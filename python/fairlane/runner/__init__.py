"""From a scenario to a run: all jobs together, then each job alone on the same hosts, and what that shows.

The simulations do not depend on each other, so they run on all cores; the results do not depend on how many there are.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from fairlane.engine.measured import Measured, frame
from fairlane.inputs.problems import Problems
from fairlane.results import Run, RunMeta, derive, save
from fairlane.results.run import Timings
from fairlane.results.store import new_folder
from fairlane.runner.experiment import Experiment, Outcome
from fairlane.scenario.checks import late

if TYPE_CHECKING:
    from fairlane.scenario import Resolved, Scenario

__all__ = ["run"]


def run(
    scenario: Scenario,
    *,
    out: str | Path | None = None,
    isolated: bool = True,
    progress: bool = True,
    figures: bool = True,
) -> Run:
    """Simulates ``scenario`` and stores what it measured.

    Ctrl-C stops the simulations within a second; what they have measured is kept, and the run is marked ``partial``.

    Args:
        scenario: What to simulate.
        out: The folder to store the run in, new or empty; None for ``runs/<scenario>-<date>-<time>``.
        isolated: Whether to simulate each job alone as well, which ``w`` compares with.
        progress: Whether to show progress on standard error.
        figures: Whether to draw the figures (not done for an interrupted run).

    Raises:
        ScenarioError: The scenario is wrong.
        RunError: A simulation cannot go on.
        ResultsError: The directory exists and is not empty, or cannot be written.
    """
    started, wall, cpu = datetime.now().astimezone(), time.monotonic(), time.process_time()
    folder = new_folder(scenario.name, started, None if out is None else Path(out))
    problems = list(late(scenario, scenario.duration))
    if problems:
        raise scenario.error(Problems(*problems))
    resolved = scenario.resolve()
    begun = time.monotonic()
    outcome = Experiment(resolved, isolated=isolated).perform(progress=progress)
    simulated = time.monotonic()
    timings = Timings(
        set_up_s=begun - wall - resolved.calibration_s,
        calibration_s=resolved.calibration_s,
        simulation_s=simulated - begun,
        engine_s=outcome.engine_s,
        isolated_s=outcome.isolated_s,
    )
    meta = RunMeta(
        version=version("fairlane"),
        scenario=scenario.name,
        seed=scenario.seed,
        digest=outcome.together.digest,
        duration_ps=resolved.duration,
        simulated_ps=outcome.together.now,
        packet_hops=outcome.together.packet_hops,
        wall_s=time.monotonic() - wall,
        cpu_s=time.process_time() - cpu,
        started=started,
        partial=outcome.partial,
        notes=resolved.notes,
        timings=timings,
    )
    stored = save(_run(meta, resolved, outcome), folder, scenario.text, json.dumps(resolved.spec))
    written = time.monotonic()
    if figures and not outcome.partial:
        from fairlane.plot import draw_all

        draw_all(stored)
    spent = {"writing_s": written - simulated, "figures_s": time.monotonic() - written}
    return replace(stored, meta=meta.model_copy(update={"timings": timings.model_copy(update=spent)}))


def _run(meta: RunMeta, resolved: Resolved, outcome: Outcome) -> Run:
    together = outcome.together
    labels = derive.labels_of(resolved)
    links = _links(resolved.tables["fabric"])
    hosts = derive.host_names(links)
    record = outcome.record
    return Run(
        meta=meta,
        jobs=derive.jobs(labels, together, outcome.alone),
        ranks=derive.ranks(labels, together, hosts),
        calls=derive.calls(labels, together),
        ports=derive.ports(links, together),
        interference=derive.interference(labels, together),
        latency=None if outcome.latency is None else derive.latency(labels, outcome.latency),
        latency_histogram=None if outcome.latency is None else derive.latency_histogram(labels, outcome.latency),
        samples=None if outcome.samples is None else derive.samples(links, outcome.samples),
        iterations=None if outcome.marks is None else derive.iterations(labels, outcome.marks),
        power=_power(resolved, together, hosts),
        counters=outcome.counted,
        messages=derive.messages(record["messages"]) if "messages" in record else None,
        waits=derive.waits(record["waits"]) if "waits" in record else None,
        departures=derive.departures(labels, links, record["departures"]) if "departures" in record else None,
    )


def _power(resolved: Resolved, together: Measured, hosts: Sequence[str] | None) -> pl.DataFrame | None:
    from fairlane.power import power

    jobs = [job.power for job in resolved.jobs if job.power is not None]
    if not jobs:
        return None
    stays = [(job.start, job.stop) for job in resolved.jobs]
    table = power([job.name for job in resolved.jobs], jobs, together.ranks, together.now, stays)
    return derive.with_host_names(table, hosts)


def _links(fabric: Mapping[str, Any]) -> pl.DataFrame:
    from fairlane import _core

    built = _core.Fabric(json.dumps(fabric))
    return derive.links(frame(built.links()), built.classes())
