"""Arrivals and departures of Savoie et al. 2020, section 6.7: jobs give way to others on the same hosts."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from fairlane.model.scenario import Scenario
from fairlane.model.scenario.resolve import decide
from fairlane.sim.controller import CONTROLLERS, Controller, control, controller_of
from fairlane.sim.controller.loop import Outcome, Phases

if TYPE_CHECKING:
    from fairlane.study.tasks.task import Stopwatch


def arrivals(scenario: Scenario, arguments: Mapping[str, Any], watch: "Stopwatch") -> dict[str, Any]:
    """The tables ``periods`` and ``work`` of a study with treatments, for each of the ``controllers``.

    Besides these, ``arguments`` has ``period``, ``periods`` and ``draws`` as a treatment has them, ``progress``, a
    parameter of the controllers that have it, and ``compute_share``, that of the jobs that arrive. Variants and
    controllers have the scenario's seed.
    """
    options = {"seed": scenario.seed, **{key: arguments[key] for key in ("period", "periods", "draws")}}
    with watch.lap("set-up"):
        there = phases(scenario, arguments["periods"], arguments["compute_share"])
    kinds = {name: job.kind for phase in there.values() for job in phase.jobs for name in job.names()}
    with watch.lap("simulating"):
        before = list(control(there, controller_of("none"), default=False, isolated=True, threads=1, **options))
        rows = []
        for name in arguments["controllers"]:
            treated = control(
                there,
                _controller(name, seed=scenario.seed, progress=arguments["progress"]),
                default=False,
                threads=1,
                **options,
            )
            rows += [row for pair in zip(treated, before, strict=True) for row in _rows(name, *pair)]
    work = [{"treatment": None, "name": name, "workload": kind} for name, kind in kinds.items()]
    return {"tables": {"periods": _columns(rows), "work": _columns(work)}}


def _controller(name: str, **parameters: Any) -> Controller:
    """The controller with those of these parameters that it has."""
    fields = CONTROLLERS[name].model_fields
    return controller_of({"name": name, **{key: value for key, value in parameters.items() if key in fields}})


def phases(scenario: Scenario, periods: int, share: float) -> Phases:
    """Five phases of equal length, a period at least; as each but the first begins, a job is replaced on its hosts."""
    hosts = [list(found.hosts) for found in decide(scenario).jobs]
    copies = [(job, name) for job in scenario.jobs for name in job.names()]
    data = scenario.model_dump(mode="json", exclude_none=True, exclude={"placement", "jobs"})
    jobs = [
        {
            **job.model_dump(mode="json", exclude_none=True, exclude={"count"}),
            "name": name,
            "placement": {"name": "list", "hosts": on},
        }
        for (job, name), on in zip(copies, hosts, strict=True)
    ]
    found = {0: Scenario(**data, jobs=jobs)}
    for number, job in enumerate(scenario.jobs, 1):
        at = next(index for index, one in enumerate(jobs) if one["workload"]["name"] == job.kind)
        later = {**jobs[at]["workload"], "compute_share": share}
        jobs = list(jobs)
        jobs[at] = {**jobs[at], "name": f"{job.name}-{job.count}", "workload": later}
        begin = max(number, number * periods // 5)
        if begin < periods:
            found[begin] = Scenario(**data, jobs=jobs)
    return found


def _rows(treatment: str, treated: Outcome, default: Outcome) -> Iterator[dict[str, Any]]:
    for job, done in treated.treated.jobs.items():
        yield {
            "treatment": treatment,
            "name": job,
            "period": treated.period,
            "state": treated.state,
            "accepted": treated.accepted,
            "iterations": done.work,
            "advance": done.fractional,
            "default_iterations": default.treated.jobs[job].work,
            "default_advance": default.treated.jobs[job].fractional,
            "isolated_iterations": default.isolated[job].work,
            "isolated_advance": default.isolated[job].fractional,
        }


def _columns(rows: Sequence[Mapping[str, Any]]) -> dict[str, list[Any]]:
    return {key: [row[key] for row in rows] for key in rows[0]}
