"""Predict how much one job slows down another, before they run: simulated pairs, their features, and models.

The features come from the jobs' patterns, their speed at their best and the routing, not from the simulation that is to
be predicted. Left out: the slowdown by a job's own hosts, which one isolated simulation gives, and more than one
neighbour.

Every application is held out once: models are fitted to pairs without it, neither as the job nor as its neighbour, and
predict all pairs with it. Logarithms of slowdowns are fitted. The models are

- ``none``: no slowdown at all, and ``constant``: the same for all, the median;
- ``contention``: one coefficient for the contention with the other job;
- ``neighbours``: the scheduler's form, three coefficients that are not negative, one set for all applications;
- ``ridge`` and ``gbm``: a weighted sum, and boosted trees, of all features.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy
import polars as pl

from fairlane.core.errors import Problem, RunError, ScenarioError, require
from fairlane.core.seeds import Purpose, stream
from fairlane.inputs.files import parse_toml
from fairlane.learn.models import Floats, one_thread, read_table
from fairlane.learn.models.validation import ErrorMetrics, cross_validate
from fairlane.learn.scheduler.log import PatternMix
from fairlane.learn.scheduler.slowdown.model import (
    NEIGHBOURS,
    OWN,
    LinkUse,
    neighbour_features,
    own_features,
    utilisation_of,
)
from fairlane.learn.scheduler.slowdown.snapshots import allocated, allocators
from fairlane.model.fabric.table import FabricTable
from fairlane.model.fabric.view import Fabric
from fairlane.study.shipped.slowdowns import Bench, Best, Machine, Resident, Slowdown, Snapshots
from fairlane.study.tasks.executor import Executor

_DATA = parse_toml((files("fairlane.learn.scheduler.slowdown") / "pairs.toml").read_text("utf-8"))
FABRICS: Mapping[str, Mapping[str, Any]] = _DATA["fabrics"]
"""128 hosts each."""
APPLICATIONS: Mapping[str, Mapping[str, Any]] = _DATA["applications"]
"""The applications by workload, of all kinds of patterns."""
SIZES = (32, 48, 64)
"""Ranks of a job."""
PAIR_FEATURES = (
    *NEIGHBOURS,
    "shared_traffic",
    "peak_shared_utilisation",
    "overload",
    "iteration_time_ratio",
    "burst",
    "burst_contention",
    "peak_utilisation",
    "other_peak_utilisation",
    "hops",
    "communication_share",
    "other_communication_share",
    *OWN,
)
"""Contention with the other job, three features as in the scheduler's model; the share of the job's bytes on links that
the other uses; on these the largest utilisation by both, and the contention with utilisation beyond 1; the other's
iteration time over the job's; the time of the other's bytes of an iteration on the most utilised shared link, over the
job's iteration time; contention times the ratio of iteration times, as a slow neighbour sends much at once; the
utilisation of the busiest link of the job and of the other; the links that a byte crosses; the share of its time at its
best that each job communicates; how the job's hosts differ from its best ones, the scheduler's three own features."""
_Model = Callable[[Floats, Floats, Floats], Floats]
_RENAMED = {"others_met": "contention", "shared_part": "shared_traffic", "busiest": "peak_utilisation"}
"""Former names of columns, some of them, for tables of earlier versions."""
_USED = 1e-3
"""A link counts as used from this utilisation."""


def simulate_pairs(
    count: int,
    *,
    fabrics: Mapping[str, Mapping[str, Any]] = FABRICS,
    applications: Mapping[str, Mapping[str, Any]] = APPLICATIONS,
    sizes: Sequence[int] = SIZES,
    seed: int = 1,
    executor: Executor | None = None,
) -> pl.DataFrame:
    """Simulates so many pairs on each fabric; a row for each of their jobs.

    Columns are ``fabric``, ``pair``, ``application``, ``ranks``, ``other``, ``other_ranks``, all ``PAIR_FEATURES``,
    and ``slowdown``: the job's iteration time co-running, over that isolated on the same hosts. ``executor``
    performs the simulations.
    """
    mix, names, machines = _mix(applications), list(applications), dict[str, Machine]()
    for number, (name, table) in enumerate(fabrics.items()):
        bench = Bench(FabricTable.read(dict(table)), mix.workloads, seed)
        streams = {pair: stream(seed, Purpose.SNAPSHOT, pair, 3, number) for pair in range(count)}
        machines[name] = bench, {pair: _drawn(bench.fabric, mix, sizes, rng) for pair, rng in streams.items()}
    measured = Snapshots(machines).slowdowns(executor)
    rows: list[dict[str, Any]] = []
    for name, (bench, drawn) in machines.items():
        for pair, jobs in drawn.items():
            for row in _rows(bench, jobs, measured[name][pair]):
                at, other = row.pop("application"), row.pop("other")
                rows.append({"fabric": name, "pair": pair, "application": names[at], "other": names[other]} | row)
    return pl.DataFrame(rows)


def pair_features(use: LinkUse, features: Floats, best: Best, other: LinkUse, others_best: Best) -> Floats:
    """Of one job co-running with another, in the order of ``PAIR_FEATURES``; ``own`` are its own features."""
    both = (use.utilisation > _USED) & (other.utilisation > _USED)
    total, ratio = float(use.utilisation.sum()), others_best.iteration_time / best.iteration_time
    met = numpy.array([[0.0, float(use.contention(other.utilisation[None])[0])], [0.0, 0.0]])
    beyond = numpy.where(both, numpy.maximum(use.utilisation + other.utilisation - 1, 0), 0.0)
    return numpy.array(
        [
            *neighbour_features(met, [use, other])[0],
            float(use.utilisation[both].sum()) / total if total else 0.0,
            float((use.utilisation + other.utilisation)[both].max(initial=0.0)),
            float(use.contention(beyond[None])[0]),
            ratio,
            float(other.utilisation[both].max(initial=0.0)) * ratio,
            met[0, 1] * ratio,
            use.peak,
            other.peak,
            use.hops,
            _communication_share(best),
            _communication_share(others_best),
            *features,
        ]
    )


def _communication_share(best: Best) -> float:
    return max(0.0, 1 - best.compute * 1e-12 / best.iteration_time)


def _mix(applications: Mapping[str, Mapping[str, Any]]) -> PatternMix:
    patterns = []
    for name, what in applications.items():
        # Some have a compute time by default, in place of a share.
        workload = {"name": name, "compute": None} | {key: value for key, value in what.items() if key != "kind"}
        patterns.append({"kind": what["kind"], "share": 1, "workload": workload})
    return PatternMix.model_validate({"pattern": patterns})


def _drawn(fabric: Fabric, mix: PatternMix, sizes: Sequence[int], rng: numpy.random.Generator) -> list[Resident]:
    """Two jobs that both found hosts under some allocator."""
    choices = allocators(fabric)
    for _ in range(100):
        policy, jobs = choices[int(rng.integers(len(choices)))], list[Resident]()
        for _ in range(2):
            job = Resident(int(rng.integers(len(mix.pattern))), tuple(range(int(rng.choice(sizes)))))
            hosts = allocated(policy, fabric, mix, jobs, job, rng)
            if hosts is not None:
                jobs.append(Resident(job.pattern, hosts))
        if len(jobs) == 2:
            return jobs
    raise RunError("no allocator finds hosts for two such jobs", slug="value")


def _rows(bench: Bench, jobs: Sequence[Resident], measured: Sequence[Slowdown]) -> Iterator[dict[str, Any]]:
    best = [bench.best(job.pattern, job.ranks) for job in jobs]
    uses = [utilisation_of(bench.fabric, job.hosts, best_of_job) for job, best_of_job in zip(jobs, best, strict=True)]
    isolated = [
        own_features(use, utilisation_of(bench.fabric, best_of_job.hosts, best_of_job))
        for use, best_of_job in zip(uses, best, strict=True)
    ]
    for at, other in ((0, 1), (1, 0)):
        features = pair_features(uses[at], isolated[at], best[at], uses[other], best[other])
        yield {
            "application": jobs[at].pattern,
            "other": jobs[other].pattern,
            "ranks": jobs[at].ranks,
            "other_ranks": jobs[other].ranks,
            **dict(zip(PAIR_FEATURES, map(float, features), strict=True)),
            "slowdown": measured[at].neighbours,
        }


def read_pairs(path: Path) -> pl.DataFrame:
    """A table of simulated pairs, CSV or Parquet; raises ``ScenarioError``."""
    numbers = ("pair", *PAIR_FEATURES, "slowdown")
    table = read_table(path, ("fabric", "application", "other", *numbers), renamed=_RENAMED)
    wrong = [name for name in numbers if not table[name].dtype.is_numeric() or not table[name].is_finite().all()]
    if wrong or table.height == 0 or table["slowdown"].min() <= 0:  # type: ignore[operator]
        message = "not finite numbers, with slowdowns above 0"
        raise ScenarioError(Problem((wrong or ["slowdown"])[0], message, file=str(path)))
    return table


def predict_held_out(pairs: pl.DataFrame) -> pl.DataFrame:
    """The pairs with a column for each model: its prediction from pairs without the application that is ``held_out``.

    A pair of two applications has two rows, one for each; ``role`` says whether the held-out one is the ``job`` that is
    slowed down, its ``neighbour``, or ``both``, and ``links`` whether the two have ``shared`` or ``disjoint`` ones.

    Raises ``ScenarioError`` if there are too few applications.
    """
    names = sorted(set(pairs["application"]) | set(pairs["other"]))
    if len(names) < 3:
        raise ScenarioError(Problem("application", "too few to leave one out", len(names), "3 or more"))
    tables = []
    with one_thread():
        for name in names:
            job, neighbour = pl.col("application") == name, pl.col("other") == name
            known, held_out = pairs.filter(~job & ~neighbour), pairs.filter(job | neighbour)
            if not known.height or not held_out.height:
                raise ScenarioError(Problem("pairs", "too few: one application is in all of them, or in none", name))
            role = pl.when(job & neighbour).then(pl.lit("both")).when(job).then(pl.lit("job"))
            links = pl.when(pl.col("contention") > 0).then(pl.lit("shared")).otherwise(pl.lit("disjoint"))
            what = held_out.with_columns(
                role.otherwise(pl.lit("neighbour")).alias("role"), links.alias("links"), held_out=pl.lit(name)
            )
            tables.append(_with_predictions(what, _predictions(known, held_out)))
    return pl.concat(tables)


def predict_seen(pairs: pl.DataFrame, folds: int = 5) -> pl.DataFrame:
    """The same by models that have seen the applications, in other pairs: every fifth pair of a fabric is held out."""
    fold = pairs["pair"].to_numpy() % folds
    with one_thread():
        predicted = cross_validate(fold, lambda out: _predictions(pairs.filter(~out), pairs.filter(out)))
    return _with_predictions(pairs, predicted).sort(pl.col("pair") % folds, maintain_order=True)


def _predictions(known: pl.DataFrame, later: pl.DataFrame) -> Floats:
    """A column for each model."""
    target = numpy.log(known["slowdown"].to_numpy())
    rows, others = (table.select(PAIR_FEATURES).to_numpy().astype(float) for table in (known, later))
    return numpy.exp(numpy.column_stack([model(rows, target, others) for model in PAIR_MODELS.values()]))


def _with_predictions(pairs: pl.DataFrame, predicted: Floats) -> pl.DataFrame:
    return pairs.with_columns(pl.Series(name, predicted[:, at]) for at, name in enumerate(PAIR_MODELS))


def pair_errors(predicted: pl.DataFrame, by: str | None = None) -> pl.DataFrame:
    """For each model, and each value of a column if there is one, its ``ErrorMetrics`` and Spearman's ``rank``.

    The baseline is no slowdown.
    """
    rows = []
    for group in [None] if by is None else predicted[by].unique().sort().to_list():
        part = predicted if by is None else predicted.filter(pl.col(by) == group)
        truth = part["slowdown"].to_numpy()
        for model in PAIR_MODELS:
            errors = ErrorMetrics.of(part[model].to_numpy() / truth, 1 / truth).model_dump()
            what = {"model": model} if by is None else {by: group, "model": model}
            rows.append({**what, **errors, "rank": _rank(part[model], part["slowdown"])})
    return pl.DataFrame(rows)


def _rank(first: pl.Series, second: pl.Series) -> float | None:
    if first.n_unique() < 2 or second.n_unique() < 2:
        return None
    return float(numpy.corrcoef(first.rank().to_numpy(), second.rank().to_numpy())[0, 1])


def _nonnegative(rows: Floats, target: Floats, later: Floats, *, first: int) -> Floats:
    """Of the ``first`` features, as in the scheduler's model: neighbours never help, and no more than was simulated."""
    from scipy.optimize import nnls

    weights, _ = nnls(rows[:, :first], target)
    predicted: Floats = numpy.minimum(later[:, :first] @ weights, target.max(initial=0.0))
    return predicted


def _ridge(rows: Floats, target: Floats, later: Floats) -> Floats:
    require("predict")
    from sklearn.linear_model import RidgeCV
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    made = make_pipeline(StandardScaler(), RidgeCV(alphas=numpy.logspace(-1, 4, 11))).fit(rows, target)
    predicted: Floats = numpy.clip(made.predict(later), target.min(), target.max())
    return predicted


def _gbm(rows: Floats, target: Floats, later: Floats) -> Floats:
    require("predict")
    from sklearn.ensemble import GradientBoostingRegressor

    trees = {"n_estimators": 100, "max_depth": 3, "min_samples_leaf": 5}
    made = GradientBoostingRegressor(loss="huber", learning_rate=0.05, subsample=0.5, random_state=0, **trees)
    predicted: Floats = made.fit(rows, target).predict(later)
    return predicted


PAIR_MODELS: Mapping[str, _Model] = {
    "none": lambda _rows, _target, later: numpy.zeros(len(later)),
    "constant": lambda _rows, target, later: numpy.full(len(later), numpy.median(target)),
    "contention": partial(_nonnegative, first=1),
    "neighbours": partial(_nonnegative, first=len(NEIGHBOURS)),
    "ridge": _ridge,
    "gbm": _gbm,
}
"""By name: from known rows, the logarithms of their slowdowns, and later rows to predicted logarithms."""
