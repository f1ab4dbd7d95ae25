"""The alternatives that an application has beside its neighbours, in order; the best one is the advice.

Either each is simulated, for a short time, with several seeds; or a model tells all run times from one simulation of
the application alone and one of its neighbours. Both can be checked by longer simulations with other seeds.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import polars as pl

from fairlane.advice.checked import Checked, checked_by
from fairlane.advice.model import COVERAGE, RunTimeModel
from fairlane.advice.predicted import Predicted, predict
from fairlane.advice.question import PLACEMENTS, Question, ask
from fairlane.advice.simulated import runs_of
from fairlane.inputs import code
from fairlane.models import lognormal_interval
from fairlane.results.errors import writing
from fairlane.results.manifest import seal
from fairlane.results.store import new_folder
from fairlane.tasks.executor import Executor
from fairlane.tasks.pools import open_pool
from fairlane.tasks.progress import TaskProgress
from fairlane.tasks.store import Store

__all__ = ["PLACEMENTS", "Advice", "advise"]

RUNS = "runs.parquet"
"""The table of runs in the folder: what a model can learn from."""


@dataclass(frozen=True)
class Advice:
    """What was found for one application."""

    job: str
    """Its name."""
    table: pl.DataFrame
    """A row for each alternative, the best first: ``rails``, ``service_level``, ``placement``; ``iteration_ms`` with
    the interval from ``low_ms`` to ``high_ms``; ``alone_ms`` without neighbours; and ``neighbours``, the change of
    their rates by the application. A model does not tell ``alone_ms``, and with it ``neighbours`` is there for the
    advised alternative only; a single seed has no interval."""
    coverage: float
    """The part of run times that is within the interval, if what it stands on is right."""
    iterations: int
    """The fewest iterations of the application in a simulation."""
    neighbour_iterations: int | None
    """The fewest of a neighbour: with fewer than three, what neighbours lose is told by bytes. None without any."""
    by_model: bool
    """Whether run times are a model's, or simulated."""
    runs: pl.DataFrame
    """A row for each simulation of the application, as models learn from."""
    folder: Path
    """Where the simulations are."""
    checked: Checked | None = None
    """How good the advice is, if that was asked for."""


def advise(
    file: Path,
    *,
    job: str | None = None,
    cap: str | None = None,
    levels: Sequence[int] | None = None,
    length: str | None = None,
    seeds: int = 3,
    model: Path | None = None,
    check: str | None = None,
    workers: int | None = None,
    out: Path | None = None,
    assignments: Sequence[str] = (),
    progress: bool = True,
    allow_code: bool = False,
) -> Advice:
    """Puts all alternatives of a scenario's job, by default its first, in order.

    Args:
        file: The scenario, with the application and its neighbours.
        job: The application's name.
        cap: Its power cap, as ``"65 W"``, in place of the scenario's.
        levels: Service levels that it may have; by default all that the scenario has.
        length: How long each simulation is, as ``"2 ms"``, in place of the scenario's duration.
        seeds: How many seeds, and so random placements, each alternative is tried with.
        model: A model that tells the run times, in place of simulations of the alternatives.
        check: Length of the simulations, with other seeds, that the advice is held against.
        workers: Processes; None for one for each core.
        out: Folder of the simulations, new or empty; None for a new one in ``runs``.
        assignments: Changes of the scenario, as ``network.mtu="2 KiB"``.
        progress: Whether to show progress on standard error.
        allow_code: Whether code that the scenario names may run.

    Raises:
        ScenarioError: Something that was given is wrong; nothing was simulated.
        RunError: A simulation failed, or all were too short for two iterations.
        ResultsError: The folder is in use.
    """
    with code.allow_code(allow_code):
        return _advise(
            file, job, cap, levels, length, seeds, model, check, workers, out, assignments, progress=progress
        )


def _advise(
    file: Path,
    job: str | None,
    cap: str | None,
    levels: Sequence[int] | None,
    length: str | None,
    seeds: int,
    model: Path | None,
    check: str | None,
    workers: int | None,
    out: Path | None,
    assignments: Sequence[str],
    *,
    progress: bool,
) -> Advice:
    known = RunTimeModel.load(model) if model else None
    lengths = [f'duration="{length}"'] if length else []
    question = ask(file, job, cap, levels, [*assignments, *lengths])
    if check is not None:
        question.point(question.choices[0], seeds + 1, check)  # a length that is none is refused here
    folder = new_folder(f"{question.scenario.name}-advice", datetime.now().astimezone(), out)
    with (
        TaskProgress(wanted=progress) as shown,
        Executor(open_pool(workers), Store(folder), shown, first_failure_ends=True) as executor,
    ):
        shown.stage("simulating")
        if known:
            told = predict(question, known, executor)
        else:
            told = ranked(question, runs_of(question, question.choices, range(1, 1 + seeds), executor))
        found = None
        if check is not None:
            long = runs_of(question, question.choices, range(1 + seeds, 1 + 2 * seeds), executor, check)
            found = checked_by(told.table, ranked(question, long).table, long, check, seeds)
    runs = told.runs.filter(pl.col("run_time_ms").is_not_null())
    with writing(folder / RUNS):
        runs.write_parquet(folder / RUNS)
    seal(folder, "advice", 1, [RUNS])
    least = int(runs.select(pl.col("iterations").min()).item())
    others = runs["neighbour_iterations"].drop_nulls().to_list()
    return Advice(
        question.name,
        told.table,
        COVERAGE,
        least,
        min(others, default=None),
        known is not None,
        runs,
        folder.resolve(),
        checked=found,
    )


def ranked(question: Question, runs: pl.DataFrame) -> Predicted:
    """The alternatives by their mean time over the seeds, with the interval for another seed's.

    Those that have not done two iterations with every seed have no time, and stand last.
    """
    rows = []
    for number, choice in enumerate(question.choices):
        same = runs.filter(rails=choice.rails, placement=choice.placement)
        alone = same.filter(pl.col("link_share").is_null())
        beside = same.filter(service_level=choice.service_level) if same.height > alone.height else alone
        low, middle, high = _told(beside)
        rows.append(
            {
                "rails": choice.rails,
                "service_level": choice.service_level,
                "placement": choice.placement,
                "iteration_ms": middle,
                "low_ms": low,
                "high_ms": high,
                "alone_ms": _told(alone)[1],
                "neighbours": beside["neighbours"].cast(pl.Float64).mean(),
                "number": number,
            }
        )
    schema = dict.fromkeys(("iteration_ms", "low_ms", "high_ms", "alone_ms", "neighbours"), pl.Float64)
    table = pl.DataFrame(rows, schema_overrides=schema, infer_schema_length=None)
    return Predicted(table.sort("iteration_ms", "number", nulls_last=True).drop("number"), runs)


def _told(runs: pl.DataFrame) -> tuple[float | None, float | None, float | None]:
    """The interval of the runs' times; nothing where one has none."""
    if not runs.height or runs["run_time_ms"].null_count():
        return None, None, None
    return lognormal_interval(runs["run_time_ms"].to_list(), COVERAGE)
