"""Section V of Yang et al. 2016, allocators on a recorded job log, and the patterns of its applications.

The log is replayed on the torus of a model, which says how patterns, hosts and neighbours slow jobs down; snapshots of
each schedule are simulated by packets to see how far the model is off there.
"""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fairlane.learn.models.validation import ErrorMetrics
from fairlane.learn.scheduler.compare import AWARE, BLIND, CONTIGUOUS, compare_allocators
from fairlane.learn.scheduler.log import read_log
from fairlane.learn.scheduler.slowdown.forecast import Forecast, verify
from fairlane.learn.scheduler.slowdown.model import load_model
from fairlane.model.pattern import observe, program_of
from fairlane.model.placement import PLACEMENTS
from fairlane.model.workload.trace import Trace

if TYPE_CHECKING:
    from fairlane.study.tasks.task import Stopwatch


def schedules(arguments: Mapping[str, Any], watch: "Stopwatch") -> dict[str, dict[str, list[Any]]]:
    """The log under each allocator: a row for each with the fields of ``ScheduleMetrics``, and the model's error.

    ``load`` is how many times as fast jobs come as in the ``log``, ``snapshots`` how many of each schedule are
    simulated.
    """
    with watch.lap("set-up"):
        forecast = Forecast(load_model(arguments["model"]), arguments["seed"])
        read = read_log(Path(arguments["log"]), hosts=forecast.fabric.hosts)
        jobs = [replace(job, submit=round(job.submit / arguments["load"])) for job in read.jobs]
        allocators = {name: PLACEMENTS[name]() for name in (CONTIGUOUS, BLIND, AWARE)}
    with watch.lap("replaying"):
        comparison = compare_allocators(jobs, forecast.fabric, allocators, seed=arguments["seed"], forecast=forecast)
    with watch.lap("simulating"):
        checked = {
            name: verify(schedule, forecast, arguments["snapshots"], arguments["seed"])
            for name, schedule in comparison.schedules.items()
        }
    rows = []
    for name, metrics in comparison.metrics.items():
        error = checked[name].error
        model = {
            "snapshots": checked[name].snapshots,
            **(error.model_dump() if error else dict.fromkeys(ErrorMetrics.model_fields)),
        }
        rows.append({"allocator": name, **asdict(metrics), **{f"model_{key}": value for key, value in model.items()}})
    return {"schedules": {key: [row[key] for row in rows] for key in rows[0]}}


def patterns(arguments: Mapping[str, Any], watch: "Stopwatch") -> dict[str, dict[str, list[Any]]]:
    """A row for each pair of ranks of a recorded application: bytes from one to the other."""
    with watch.lap("reading"):
        rows = [row for name, path in arguments.items() for row in _sent(name, path)]
    columns = zip(("application", "sender", "receiver", "bytes"), zip(*rows, strict=True), strict=True)
    return {"patterns": {name: list(column) for name, column in columns}}


def _sent(name: str, path: str) -> Iterator[tuple[str, int, int, int]]:
    traffic = observe(program_of(Trace.model_validate({"path": path}), 0)).total
    for sender, row in enumerate(traffic.tolist()):
        yield from ((name, sender, receiver, int(sent)) for receiver, sent in enumerate(row))
