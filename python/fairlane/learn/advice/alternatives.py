"""The alternatives of an application among its neighbours, ranked; the best one is the advice.

Either each is simulated, for a short time, with several seeds; or a model predicts all run times from one isolated
simulation of the application and one of its neighbours. Both can be checked by longer simulations with other seeds.
"""

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import Self

import polars as pl

from fairlane.inputs import code
from fairlane.learn.advice.model import COVERAGE, RunTimeModel
from fairlane.learn.advice.outcomes import Ranking, predict, runs_of
from fairlane.learn.advice.question import Question, ask
from fairlane.learn.models.validation import lognormal_interval
from fairlane.results import notes
from fairlane.results.manifest import MANIFEST
from fairlane.study.tasks.closure import STUDY
from fairlane.study.tasks.executor import simulating
from fairlane.study.tasks.pools import open_pool
from fairlane.study.tasks.store import Store

RUNS = "runs"
"""The table of runs in the folder: models are fitted to such tables."""
_KEYS = ("rails", "service_level", "placement")


@dataclass(frozen=True)
class Check:
    """An advice compared with longer simulations of all alternatives, with other seeds."""

    length: str
    seeds: int
    """Seeds of each alternative; the advice was based on none of them."""
    rank: int
    """Place of the advised alternative, 1 for the best."""
    regret: float
    """Time per iteration beyond that of the best alternative, relative; infinite where it has too few iterations."""
    random_regret: float
    """The same for an alternative chosen uniformly at random; the mean."""
    coverage: float
    """The share of these run times within the interval that was given for their alternative."""
    table: pl.DataFrame
    """The alternatives as they were simulated, the best first."""
    runs: pl.DataFrame
    """The simulations."""

    @classmethod
    def of(cls, advised: pl.DataFrame, simulated: pl.DataFrame, runs: pl.DataFrame, length: str, seeds: int) -> Self:
        """Compares two tables of alternatives, each with the best first; ``runs`` are those of the second."""
        first = advised.row(0, named=True)
        own = simulated.with_row_index("place", 1).filter(pl.all_horizontal(pl.col(key) == first[key] for key in _KEYS))
        times = simulated["iteration_ms"].drop_nulls()
        best, time = float(times[0]), own["iteration_ms"].item()
        both = runs.filter(pl.col("link_share").is_not_null()).join(advised, on=_KEYS)
        both = both.filter(pl.col("low_ms").is_not_null(), pl.col("run_time_ms").is_not_null())
        within = both["run_time_ms"].is_between(both["low_ms"], both["high_ms"])
        return cls(
            length,
            seeds,
            rank=int(own["place"].item()),
            regret=float("inf") if time is None else float(time) / best - 1,
            random_regret=float((times / best - 1).to_numpy().mean()),
            coverage=float(within.to_numpy().mean()) if both.height else float("nan"),
            table=simulated,
            runs=runs,
        )

    @property
    def best(self) -> str:
        """The best alternative, in words."""
        return ", ".join(f"level {one}" if isinstance(one, int) else one for one in self.table.row(0)[: len(_KEYS)])


@dataclass(frozen=True)
class Advice:
    """The ranked alternatives of one application, the ``job``."""

    job: str
    table: pl.DataFrame
    """A row for each alternative, the best first: ``rails``, ``service_level``, ``placement``; ``iteration_ms`` with
    the interval from ``low_ms`` to ``high_ms``; ``isolated_ms`` without neighbours; and ``neighbours``, the change of
    their rates by the application. A model does not predict ``isolated_ms``, and with it ``neighbours`` is there for
    the advised alternative only; a single seed has no interval."""
    coverage: float
    """The share of run times that is within the interval, if its assumptions hold."""
    iterations: int
    """The fewest iterations of the application in a simulation."""
    neighbour_iterations: int | None
    """The fewest of a neighbour: with fewer than three, its change of rate is that of bytes. None without any."""
    by_model: bool
    """Whether run times are a model's, or simulated."""
    runs: pl.DataFrame
    """A row for each simulation of the application, as ``learn`` takes them."""
    folder: Path
    """Folder of the simulations."""
    checked: Check | None = None
    """The check of the advice, if that was asked for."""

    def repeated(self) -> list[str]:
        """Say which simulations of an alternative repeat another one; nothing if none does."""
        return notes.repeated(self.runs, (*_KEYS, "digest"), ["seeds"], "simulation")


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
    resume: bool = False,
    progress: bool = False,
    allow_code: bool = False,
) -> Advice:
    """Ranks all alternatives of a scenario's job, by default its first.

    Args:
        file: The scenario, with the application and its neighbours.
        job: The application's name.
        cap: Its power cap, as ``"65 W"``, in place of the scenario's.
        levels: Service levels that it may have; by default all that the scenario has.
        length: How long each simulation is, as ``"2 ms"``, in place of the scenario's duration.
        seeds: How many seeds, and so random placements, each alternative is tried with.
        model: A model that predicts the run times, in place of simulations of the alternatives.
        check: Length of the simulations, with other seeds, that the advice is compared with.
        workers: Processes; None for one for each core.
        out: Folder of the simulations, new or empty; None for a new one in ``runs``.
        resume: Whether to continue in an existing folder; without ``out`` in the latest unfinished one.
        assignments: Changes of the scenario, as ``network.mtu="2 KiB"``.
        progress: Whether to show progress on standard error.
        allow_code: Whether code that the scenario names may run.

    Raises:
        ScenarioError: Something that was given is wrong; nothing was simulated.
        RunError: A simulation failed, or all were too short for two iterations.
        ResultsError: The folder is in use, or of another version.
    """
    with code.allow_code(allow_code), ExitStack() as stack:
        known = RunTimeModel.load(model) if model else None
        lengths = [f'duration="{length}"'] if length else []
        question = ask(file, job, cap, levels, [*assignments, *lengths])
        if check is not None:
            question.point(question.choices[0], seeds + 1, check)  # a length that is none is refused here
        store = Store.open(
            "advice",
            f"{question.scenario.name}-advice",
            {},
            {},
            code=[*STUDY, "fairlane.learn.advice.features"],
            out=out,
            started=datetime.now().astimezone(),
            resume=resume,
            complete=lambda folder: (folder / MANIFEST).is_file(),
        )
        stack.enter_context(store.undone_without_answers())
        pool = open_pool(workers)
        executor = stack.enter_context(simulating(pool, store, progress=progress, first_failure_ends=True))
        if known:
            ranking = predict(question, known, executor)
        else:
            ranking = ranked(question, runs_of(question, question.choices, range(1, 1 + seeds), executor))
        checked = None
        if check is not None:
            long = runs_of(question, question.choices, range(1 + seeds, 1 + 2 * seeds), executor, check)
            checked = Check.of(ranking.table, ranked(question, long).table, long, check, seeds)
    runs = ranking.runs.filter(pl.col("run_time_ms").is_not_null())
    store.finish("advice", 1, {RUNS: runs}, {})
    return Advice(
        question.name,
        ranking.table,
        COVERAGE,
        iterations=int(runs.select(pl.col("iterations").min()).item()),
        neighbour_iterations=min(runs["neighbour_iterations"].drop_nulls().to_list(), default=None),
        by_model=known is not None,
        runs=runs,
        folder=store.folder.resolve(),
        checked=checked,
    )


def ranked(question: Question, runs: pl.DataFrame) -> Ranking:
    """The alternatives by their mean time over the seeds, with the prediction interval for another seed.

    Those that have not done two iterations with every seed have no time, and stand last.
    """
    rows = []
    for number, choice in enumerate(question.choices):
        same = runs.filter(rails=choice.rails, placement=choice.placement)
        isolated = same.filter(pl.col("link_share").is_null())
        co_run = same.filter(service_level=choice.service_level) if same.height > isolated.height else isolated
        low, middle, high = _interval(co_run)
        rows.append(
            {
                **asdict(choice),
                "iteration_ms": middle,
                "low_ms": low,
                "high_ms": high,
                "isolated_ms": _interval(isolated)[1],
                "neighbours": co_run["neighbours"].cast(pl.Float64).mean(),
                "number": number,
            }
        )
    schema = dict.fromkeys(("iteration_ms", "low_ms", "high_ms", "isolated_ms", "neighbours"), pl.Float64)
    table = pl.DataFrame(rows, schema_overrides=schema, infer_schema_length=None)
    return Ranking(table.sort("iteration_ms", "number", nulls_last=True).drop("number"), runs)


def _interval(runs: pl.DataFrame) -> tuple[float | None, float | None, float | None]:
    """The interval of the runs' times; nothing where one has none. Runs with the same results count once."""
    runs = notes.distinct(runs, ("digest",))
    if not runs.height or runs["run_time_ms"].null_count():
        return None, None, None
    return lognormal_interval(runs["run_time_ms"].to_list(), COVERAGE)
