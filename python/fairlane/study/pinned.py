"""Pinned scenarios: hosts, lanes, compute times and numbers of random streams are in the scenario's tables.

So a scenario means the same with other service levels, with one job isolated, and on another machine; and two that mean
the same have the same tables, so their simulation is recognised.

*What workers compute: compute times, whole simulations, periods under a controller.* Every function takes a scenario,
its arguments and a stopwatch, and returns JSON that depends on nothing else.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from fairlane.core.tables import Work
from fairlane.core.units import DURATION
from fairlane.model.scenario import Resolved, Scenario
from fairlane.model.scenario.models import Job
from fairlane.model.scenario.resolve import without_strategy
from fairlane.model.scenario.resolved import ResolvedJob
from fairlane.results.derive import labels_of, work
from fairlane.results.milestones import milestones
from fairlane.sim.controller import control as perform
from fairlane.sim.controller import controller_of, row_of
from fairlane.sim.runner.experiment import later_iterations
from fairlane.study.tasks.task import Stopwatch, Task


@dataclass(frozen=True)
class Pinned:
    """The tables of a scenario in which all decisions are pinned, and how to make tasks of it.

    ``lanes`` is ``sl2vl`` of all its jobs together, ``folder`` what paths are relative to, and ``place`` says for
    people which point, placement and seed it is.
    """

    data: Mapping[str, Any]
    lanes: Sequence[int]
    folder: str
    place: str = ""

    @property
    def seed(self) -> int:
        """Its seed."""
        return int(self.data["seed"])

    @property
    def names(self) -> list[str]:
        """The jobs' names."""
        return [job["name"] for job in self.data["jobs"]]

    def with_compute_times(self, compute: Sequence[int | None]) -> Pinned:
        """The same with these compute times, ps; None where a job is a trace."""
        jobs = []
        for job, time in zip(self.data["jobs"], compute, strict=True):
            workload = {key: value for key, value in job.get("workload", {}).items() if key != "compute_share"}
            jobs.append(job if time is None else {**job, "workload": {**workload, "compute": f"{time} ps"}})
        return replace(self, data={**self.data, "jobs": jobs})

    def with_duration(self, duration: int) -> Pinned:
        """The same with another duration, ps."""
        return replace(self, data={**self.data, "duration": DURATION.format(duration)})

    def without_start_and_stop(self) -> Pinned:
        """The same with jobs that start at the beginning and never end."""
        jobs = [{key: it for key, it in job.items() if key not in ("start", "stop")} for job in self.data["jobs"]]
        return replace(self, data={**self.data, "jobs": jobs})

    def isolated(self, job: int) -> Pinned:
        """One job by itself: on its hosts, with its random numbers, on a fabric with the lanes of all jobs."""
        return self.only([job])

    def only(self, jobs: Sequence[int]) -> Pinned:
        """Some jobs, on their hosts, with their random numbers, on a fabric with the lanes of all."""
        qos = {key: value for key, value in self.data["qos"].items() if key != "service_levels"}
        kept = [self.data["jobs"][job] for job in jobs]
        data = {**self.data, "jobs": kept, "qos": {**qos, "sl2vl": list(self.lanes)}}
        names = {job["name"] for job in kept}
        if "observe" in data:
            data["observe"] = _observing(data["observe"], names)
        if "classes" in data:
            data["classes"] = dict(_selecting(data["classes"], names))
        return replace(self, data=data)

    def task(self, function: str, label: str, arguments: Mapping[str, Any] | None = None, runs: int = 1) -> Task:
        """A task on this scenario, in which about ``runs`` simulations of its duration are made."""
        ranks = sum(job.get("ranks", 1) for job in self.data["jobs"])
        cost = runs * ranks * DURATION.parse(self.data["duration"]) * 1e-9
        return Task(function, self.data, self.folder, f"{self.place}: {label}", dict(arguments or {}), cost)


def _observing(observe: Mapping[str, Any], jobs: Set[str]) -> dict[str, Any]:
    """The table ``observe`` without the keys that refer to absent jobs."""
    found = {key: it for key, it in observe.items() if key not in ("record", "switch_counters") or it["job"] in jobs}
    return {**found, "iterations": [name for name in observe.get("iterations", ()) if name in jobs]}


def _selecting(classes: Mapping[str, Any], jobs: Set[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The classes that select messages of these jobs, whose communicators absent jobs may have had."""
    for name, one in classes.items():
        selected = one.get("job")
        if selected is None or (selected := [job for job in selected if job in jobs]):
            yield name, {**one, "allow_missing": True} | ({} if selected is None else {"job": selected})


def pin(scenario: Scenario, decided: Resolved, folder: str, place: str) -> Pinned:
    """``scenario`` as it was ``decided``; compute times stay as they are until they are known."""
    data = scenario.model_dump(mode="json", exclude_none=True, exclude={"placement", "jobs"})
    strategy = scenario.qos.strategy is not None
    if strategy:  # what it stands for depends on the jobs: an isolated run keeps the levels and lanes of all
        data["qos"] = without_strategy(scenario).qos.model_dump(mode="json", exclude_none=True)
    data["fabric"].setdefault("routing", {"name": decided.tables["fabric"]["routing"]})
    copies = [(job, copy) for job in scenario.jobs for copy in range(job.count)]
    jobs = [
        _job(job, number if job.stream is None else job.stream + copy, found)
        for number, ((job, copy), found) in enumerate(zip(copies, decided.jobs, strict=True))
    ]
    ranks_per_host = scenario.placement.ranks_per_host
    for (job, _), table in zip(copies, jobs, strict=True):
        table["ranks_per_host"] = job.ranks_per_host or (
            job.placement.ranks_per_host if job.placement else ranks_per_host
        )
    for found, table in zip(decided.jobs, jobs, strict=True):
        if strategy and found.service_level is not None:
            table["service_level"] = found.service_level
    for one in decided.tables["qos"].get("classes", ()):
        chosen = {"job": one["jobs"], "service_level": one["service_level"]}
        data["classes"][one["name"]] |= {key: value for key, value in chosen.items() if value is not None}
    return Pinned({**data, "jobs": jobs}, decided.tables["qos"]["sl2vl"], folder, place)


def _job(job: Job, stream: int, found: ResolvedJob) -> dict[str, Any]:
    """One copy of a job, with a name, hosts and random streams of its own."""
    table = job.model_dump(mode="json", exclude_none=True, exclude={"count", "placement"})
    hosts = list(dict.fromkeys(found.hosts[: found.placed_ranks]))
    placement = {"name": "list", "hosts": hosts} | ({"shared": True} if found.placement.shared else {})
    if job.trace:
        files = {"path": job.trace.path, "groups": job.trace.groups}
        table["trace"] |= {key: str(Path(file).resolve()) for key, file in files.items() if file}
    return {**table, "name": found.name, "stream": stream, "placement": placement}


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
        work(measured, labels_of(resolved))
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
