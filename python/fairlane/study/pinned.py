"""Pinned scenarios: hosts, lanes, compute times and numbers of random streams are in the scenario's tables.

So a scenario means the same with other service levels, with one job isolated, and on another machine; and two that mean
the same have the same tables, so their simulation is recognised.

Workers compute compute times, whole simulations, and periods under a controller. Every function takes a scenario, its
arguments and a stopwatch, and returns JSON that depends on nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from fairlane.core.tables import Work
from fairlane.model.scenario import Resolved, Scenario
from fairlane.model.scenario.models import Job
from fairlane.model.scenario.resolve import without_strategy
from fairlane.model.scenario.resolved import ResolvedJob
from fairlane.results.derive import work
from fairlane.results.milestones import milestones
from fairlane.sim.controller import control as perform
from fairlane.sim.controller import controller_of, row_of
from fairlane.sim.runner.experiment import later_iterations
from fairlane.study.tasks.task import Stopwatch, Task, cost_of


def pin(scenario: Scenario, decided: Resolved, folder: str, place: str) -> Task:
    """``scenario`` as it was ``decided``, of which tasks are made; compute times stay until they are known.

    ``place`` names point, placement and seed.
    """
    data = scenario.model_dump(mode="json", exclude_none=True, exclude={"placement", "jobs"})
    strategy = scenario.qos.strategy is not None
    if strategy:  # what it stands for depends on the jobs: an isolated run keeps the levels and lanes of all
        data["qos"] = without_strategy(scenario).qos.model_dump(mode="json", exclude_none=True)
    data["fabric"].setdefault("routing", {"name": decided.tables["fabric"]["routing"]})
    copies = [(job, copy) for job in scenario.jobs for copy in range(job.count)]
    ranks_per_host = scenario.placement.ranks_per_host
    jobs = []
    for number, ((job, copy), resolved) in enumerate(zip(copies, decided.jobs, strict=True)):
        table = _job(job, number if job.stream is None else job.stream + copy, resolved)
        of_job = job.placement.ranks_per_host if job.placement else ranks_per_host
        table["ranks_per_host"] = job.ranks_per_host or of_job
        if strategy and resolved.service_level is not None:
            table["service_level"] = resolved.service_level
        jobs.append(table)
    for message_class in decided.tables["qos"].get("classes", ()):
        chosen = {"job": message_class["jobs"], "service_level": message_class["service_level"]}
        data["classes"][message_class["name"]] |= {key: value for key, value in chosen.items() if value is not None}
    lanes = decided.tables["qos"]["sl2vl"]  # of all jobs, also where a run has only some of them
    tables = {**data, "qos": {**data["qos"], "sl2vl": lanes}, "jobs": jobs}
    return Task("", tables, folder, place, cost=cost_of(tables))


def _job(job: Job, stream: int, resolved: ResolvedJob) -> dict[str, Any]:
    """One copy of a job, with a name, hosts and random streams of its own."""
    table = job.model_dump(mode="json", exclude_none=True, exclude={"count", "placement"})
    hosts = list(dict.fromkeys(resolved.hosts[: resolved.placed_ranks]))
    placement = {"name": "list", "hosts": hosts} | ({"shared": True} if resolved.placement.shared else {})
    if job.trace:
        files = {"path": job.trace.path, "groups": job.trace.groups}
        table["trace"] |= {key: str(Path(file).resolve()) for key, file in files.items() if file}
    return {**table, "name": resolved.name, "stream": stream, "placement": placement}


def calibrate(scenario: Scenario, _arguments: Mapping[str, Any], watch: Stopwatch) -> dict[str, Any]:
    """The compute time of each job, ps."""
    with watch.lap("set-up"):
        return {"compute": [job.compute for job in scenario.resolve().jobs]}


def simulate(scenario: Scenario, _arguments: Mapping[str, Any], watch: Stopwatch) -> dict[str, Any]:
    """One simulation of the scenario's duration: what each job has done."""
    with watch.lap("set-up"):
        resolved = scenario.resolve()
    with watch.lap("simulating"):
        engine = watch.drive(resolved)
        measured, hops, digest = Work.of(engine), engine.packet_hops, engine.digest()
        if len(resolved.jobs) == 1 and resolved.jobs[0].iterates:
            measured = replace(measured, later_iterations=later_iterations(engine))
    reached = milestones(measured, [job.start for job in resolved.jobs], [job.stop for job in resolved.jobs])
    rows = (
        work(measured, resolved.jobs)
        .sort("job")
        .select("ranks", "iterations", "span_ps", "compute_share", "communication_share")
    )
    each = measured.ranks.group_by("job", maintain_order=True).agg("iterations")["iterations"].to_list()
    jobs = [
        {"job": job.name, **row, "rank_iterations": ranks, "milestones": reached[number].written()}
        for number, (job, row, ranks) in enumerate(zip(resolved.jobs, rows.iter_rows(named=True), each, strict=True))
    ]
    return {"jobs": jobs, "packet_hops": hops, "digest": digest}


def control(scenario: Scenario, arguments: Mapping[str, Any], watch: Stopwatch) -> dict[str, Any]:
    """Periods under a controller: what each job has done in each of them.

    This is the only place that calls controllers.
    """
    options = {key: value for key, value in arguments.items() if key not in ("controller", "parameters")}
    with scenario.reading():
        made = controller_of({"name": arguments["controller"], **arguments["parameters"]})
    rows = list[dict[str, Any]]()
    reached: dict[str, dict[str, Any]] = {}
    with watch.lap("simulating"):
        # One thread: the other cores have cells of their own to work at.
        for outcome in perform(scenario, made, **options, threads=1):
            rows += [row_of(outcome, job) for job in outcome.jobs]
            reached = {run: {job: of.written() for job, of in jobs.items()} for run, jobs in outcome.reached.items()}
            watch.reached((outcome.period + 1) / arguments["periods"])
    return {"periods": rows, "milestones": reached}
