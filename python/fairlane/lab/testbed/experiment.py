"""The whole experiment: measure, fit the host model on isolated runs, predict, compare, and let the agent control."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import polars as pl

from fairlane.lab.testbed.controlled import Controlled, control_levels, steer
from fairlane.lab.testbed.file import TestbedFile
from fairlane.lab.testbed.measure import AGENT, ISOLATED, STEERED, TREATED, bench, measure, times_per_iteration
from fairlane.lab.testbed.plan import ETHERNET, TCP_IP
from fairlane.lab.testbed.results import (
    MEASURED,
    Results,
    comparison,
    effects,
    fresh,
    judge,
    measured_effect,
    measured_w,
    predicted_effect,
    prepare,
)
from fairlane.lab.testbed.simulate import Fit, HostModel, ack_share, fit, isolated_s, predicted_w


def experiment(
    file: TestbedFile,
    folder: Path,
    *,
    repetitions: int | None = None,
    resume: bool = False,
    report: Callable[[str], object] = str,
) -> Results:
    """Measures, predicts and compares a testbed.

    Args:
        file: The testbed.
        folder: Where measurements and results are stored: new, empty, or with ``resume`` of the same testbed.
        repetitions: In place of the file's.
        resume: Whether measurements that the folder has are used.
        report: Takes lines on the progress.

    Raises:
        ScenarioError: The folder has something else.
        TestbedError: The machine cannot have the testbed.
        MeasurementError: A job ended, or was too slow.
    """
    prepare(folder, file, resume=resume)
    count = repetitions or file.measure.repetitions
    iterations = measure(file, folder / MEASURED, count, report)
    times = times_per_iteration(iterations)
    report("fitting the host model, and predicting")
    model = fitted(file, times)
    results = compared(file, times, model)
    results.save(folder)
    if file.agent is not None:
        report("the agent decides, and is measured")
        with bench(file) as ready:
            controlled = control_levels(ready, model.model, fresh(folder / AGENT), count, report)
        results = with_agent(results, controlled)
        results.save(folder)
    if file.steer is not None:
        steered = steer(file, model.model, folder / STEERED, report)
        costs = tuple(steered.lines())
        results = replace(results, steered=steered.improvement, periods=steered.periods, costs=costs)
        results.save(folder)
    return results


def with_agent(results: Results, controlled: Controlled) -> Results:
    """The results with what the agent's levels changed, measured and predicted."""
    file, model = results.file, results.fit.model
    measured = measured_effect(times_per_iteration(controlled.iterations), AGENT)
    untreated = predicted_w(file, model)
    predicted = predicted_effect(untreated, predicted_w(file, model, controlled.levels or None))
    table = effects(AGENT, measured, predicted)
    levels = pl.Series("level", [controlled.levels.get(job, 0) for job in table["job"]], pl.Int64)
    return replace(results, control=table.insert_column(2, levels), decisions=controlled.decisions)


def fitted(file: TestbedFile, times: pl.DataFrame) -> Fit:
    """The host model of rows of ``times_per_iteration``: of isolated phases only."""
    alone = times.filter(pl.col("kind") == ISOLATED).group_by("job").agg(pl.col("seconds_per_iteration").mean())
    measured = dict(alone.iter_rows())
    ordered = {job.name: measured[job.name] for job in file.jobs}

    def simulate(model: HostModel) -> dict[str, float]:
        return isolated_s(file, model, ordered)

    return fit(ordered, simulate, 1 - ack_share(file.fabric.mtu + ETHERNET, ETHERNET + TCP_IP))


def compared(file: TestbedFile, times: pl.DataFrame, model: Fit) -> Results:
    """Predicts with a host model, and compares with what was measured."""
    untreated = predicted_w(file, model.model)
    of_w = comparison(measured_w(times), untreated)
    of_effects = []
    for treatment in file.qos.treatments if file.qos else ():
        treated = predicted_w(file, model.model, treatment.levels)
        measured = measured_effect(times, f"{TREATED}{treatment.name}")
        of_effects.append(effects(treatment.name, measured, predicted_effect(untreated, treated)))
    table = pl.concat(of_effects) if of_effects else None
    return Results(file, model, of_w, table, judge(of_w, table))
