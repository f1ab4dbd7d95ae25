"""What workers compute: compute times, whole simulations, periods under a controller.

Every function takes a scenario, its arguments and a stopwatch, and returns JSON that depends on nothing else.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from fairlane.controller import control as perform
from fairlane.controller import controller_of, row_of
from fairlane.engine.tables import Work
from fairlane.results.derive import labels_of, work
from fairlane.results.milestones import milestones
from fairlane.runner.experiment import later_iterations
from fairlane.scenario import Scenario
from fairlane.tasks.task import Stopwatch


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
