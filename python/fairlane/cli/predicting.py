"""Run times from counters, and slowdowns of pairs of jobs: predict fit, apply, compare, pairs."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

from typer import Argument, Option

from fairlane.cli.command import Answer, Quiet, out_option, write_table
from fairlane.cli.options import RandomSeed, folder_of, one_of, refused, report
from fairlane.wording import plural, significant

if TYPE_CHECKING:
    import numpy as np
    import polars as pl
    from numpy.typing import NDArray

    from fairlane.models.regressors import RegressorName
    from fairlane.predict import Comparison, CounterTable, Predictor
    from fairlane.predict.hyperparameters import Named
    from fairlane.predict.parts import PartsName
    from fairlane.views.model import View
    from fairlane.views.tables import Row, Table

BEST = "best"  # of --model and --parts: what has the least error
_SEEN = {"base": "counters", "low-rank": "low-rank part", "sparse": "sparse part"}
_SHOWN = 10  # how many features are printed with their importance
_Table = Annotated[Path, Argument(metavar="TABLE", help="A row for each run and timestep, CSV or Parquet.")]
_Features = Annotated[
    str | None, Option(help="Counters, e.g. 'flits_*,stalls_*'; by default all other numeric columns.")
]
_Run = Annotated[str, Option(help="Column that identifies runs.")]
_Timestep = Annotated[str, Option(help="Column with the number of the timestep.")]
_Target = Annotated[str, Option(help="Column with the time of the timestep.")]
_Folds = Annotated[int, Option(min=2, help="Cross-validation folds that the runs are assigned to.")]


def fit(
    table: _Table,
    out: Annotated[Path, out_option("The model's file.")] = Path("model.json"),
    model: Annotated[
        str, Option(help="gbm, forest, histogram or ridge; best: the one with the least error on held-out runs.")
    ] = BEST,
    parts: Annotated[
        str,
        Option(help="Input: the counters (base), their low-rank or sparse part; best: the one with the least error."),
    ] = BEST,
    clusters: Annotated[int, Option(min=1, help="Groups of runs with a model of their own.")] = 1,
    coverage: Annotated[float, Option(help="Share of the timesteps within the interval.")] = 0.9,
    folds: _Folds = 10,
    seed: RandomSeed = 1,
    features: _Features = None,
    run: _Run = "run",
    timestep: _Timestep = "timestep",
    target: _Target = "seconds",
    quiet: Quiet = False,
) -> Answer:
    """Fit a model of run times to a table of counters, and report its error on held-out runs.

    By default it is the best of those that predict compare compares, with one model for all runs: the one with the
    least mean square error on held-out runs.
    """
    from fairlane.predict import PARTS, REGRESSORS
    from fairlane.predict import fit as fitted
    from fairlane.predict.hyperparameters import INNER_FOLDS

    regressor, of = one_of("--model", model, [*REGRESSORS, BEST]), one_of("--parts", parts, [*PARTS, BEST])
    rows, share = _read(table, features, run, timestep, target), _share("--coverage", coverage)
    choosing = folds * (1 + INNER_FOLDS) if BEST in (regressor, of) else 0
    with _folds(folds + choosing, quiet=quiet) as advance:
        found = fitted(
            rows,
            model=None if regressor == BEST else cast("RegressorName", regressor),
            parts=None if of == BEST else cast("PartsName", of),
            clusters=clusters,
            folds=folds,
            coverage=share,
            seed=seed,
            progress=advance,
        )
    found.save(out)
    names = ("model", "compared", "runs", "validated", "half_width", "coverage", "importance")
    facts = {"parts": found.pipeline.parts.name, **{name: getattr(found, name) for name in names}}
    return Answer({"file": out, **facts}, _report(found, out), out)


@contextmanager
def _folds(count: int, *, quiet: bool) -> Iterator[Callable[[], None]]:
    """Shows the progress of so many folds; what it gives is to be called after each."""
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True, disable=quiet) as shown:
        task = shown.add_task("folds", total=count)
        yield lambda: shown.update(task, advance=1)


def apply(
    model: Annotated[Path, Argument(metavar="MODEL", help="The model's file.")],
    table: _Table,
    out: Annotated[Path | None, out_option("Where the rows go, CSV or Parquet; by default printed.")] = None,
    run: _Run = "run",
    timestep: _Timestep = "timestep",
    quiet: Quiet = False,
) -> Answer:
    """Predict the time of every timestep of a table, with an interval, and name runs that are out of distribution."""
    from fairlane.predict import CounterTable, Predictor

    known = Predictor.load(model)
    rows = CounterTable.read(
        table, features=known.features, run=run, timestep=timestep, target=known.target, target_needed=False
    )
    found = known.predict(rows)
    if out is not None:
        write_table(found, out)
    if not quiet:
        for words in known.warnings(rows):
            report(words)
        if rows.target is not None:
            report(_errors(found, rows.target, known))
    return Answer(found, () if out else [found.write_csv().removesuffix("\n")])


def _errors(found: "pl.DataFrame", target: "NDArray[np.float64]", known: "Predictor") -> str:
    """How far predictions are off where the time is known."""
    off = found["predicted"].to_numpy() - target
    mse, largest = significant((off**2).mean(), 4), significant(abs(off).max(), 4)
    inside = (abs(off) <= known.half_width).mean()
    words = f"mean square error {mse}, maximum absolute error {largest}"
    return f"{words}, {inside:.0%} of {known.target} inside the interval"


def compare(
    table: _Table,
    out: Annotated[Path | None, out_option("Folder for the tables and pictures of some runs.", "DIR")] = None,
    local: Annotated[bool, Option(help="Also compare one, two and three local models.")] = True,
    hyperparameters: Annotated[str, Option(help="own, 2018 or tuned; several with commas.")] = "own",
    folds: _Folds = 10,
    seed: RandomSeed = 1,
    features: _Features = None,
    run: _Run = "run",
    timestep: _Timestep = "timestep",
    target: _Target = "seconds",
    quiet: Quiet = False,
) -> Answer:
    """Cross-validate all models by run: on the counters, their low-rank and sparse part, and with local models."""
    from fairlane.cli.terminal import parts_of
    from fairlane.predict import HYPERPARAMETERS
    from fairlane.predict import compare as compared
    from fairlane.predict import local as localised
    from fairlane.views.prediction import view

    chosen = tuple(
        cast("Named", one_of("--hyperparameters", name.strip(), HYPERPARAMETERS)) for name in hyperparameters.split(",")
    )
    rows = _read(table, features, run, timestep, target)
    with _folds(folds * (1 + local), quiet=quiet) as advance:
        clusters = localised(rows, folds=folds, seed=seed, progress=advance) if local else None
        models = compared(rows, hyperparameters=chosen, folds=folds, seed=seed, progress=advance)
    counts = (plural(rows.runs, "run"), plural(len(rows.rows), "timestep"), plural(len(rows.features), "counter"))
    made = view(f"{', '.join(counts)}; {folds} folds by run", models, clusters)
    if out is not None:
        _written(folder_of(out), models, clusters, made)
    return Answer(
        {"folder": out, "models": models.table, "local": clusters.table if clusters else None},
        parts_of(made, out),
        out or "",
    )


def pairs(
    table: Annotated[
        Path | None, Argument(metavar="[TABLE]", help="Simulated pairs; by default they are simulated now.")
    ] = None,
    count: Annotated[int, Option(min=5, help="Pairs to simulate on each of three fabrics.")] = 150,
    out: Annotated[Path, out_option("Where simulated pairs go, CSV or Parquet.")] = Path("pairs.parquet"),
    seed: RandomSeed = 1,
    quiet: Quiet = False,
) -> Answer:
    """Report how well slowdowns of pairs of jobs are predicted before they run, for held-out applications."""
    import polars as pl

    from fairlane.scenario.estimate import machine_cores
    from fairlane.scheduler.slowdown.pairs import (
        pair_errors,
        predict_held_out,
        predict_seen,
        read_pairs,
        simulate_pairs,
    )
    from fairlane.tasks.executor import Executor
    from fairlane.tasks.pools import Threads
    from fairlane.tasks.progress import TaskProgress

    if table is None:
        with (
            TaskProgress(wanted=not quiet) as shown,
            Executor(Threads(machine_cores()), None, shown, attempts=1, first_failure_ends=True) as executor,
        ):
            shown.stage("simulating")
            found = simulate_pairs(count, seed=seed, executor=executor)
        write_table(found, out)
        if not quiet:
            report(f"the pairs are in {out}")
    else:
        found = read_pairs(table)
    predicted = predict_held_out(found)
    errors = {by: pair_errors(predicted, by) for by in (None, "links", "role", "fabric", "held_out")}
    seen = pair_errors(predict_seen(found))
    facts = {"file": None if table else out, "held_out": {by or "all": of for by, of in errors.items()}, "seen": seen}
    mean = significant(found.select(pl.col("slowdown").mean()).item())
    head = f"{plural(found.height, 'job')} in pairs, mean slowdown {mean}"
    return Answer(facts, chain([head], _pairs_text(errors, seen)), table or out)


def _pairs_text(errors: "Mapping[str | None, pl.DataFrame]", seen: "pl.DataFrame") -> Iterator["Table"]:
    """The mean errors of each model by groups, for held-out applications; then for those of the training data."""
    title = "Held-out applications (the job's, its neighbour's, or both)"
    for by, of in errors.items():
        yield _pair_table(of, by, title)
        title = ""
    yield _pair_table(seen, None, "Held-out pairs of applications that the models were fitted to")


def _pair_table(errors: "pl.DataFrame", by: str | None, title: str) -> "Table":
    from fairlane.views.tables import Column, Table
    from fairlane.wording import percent

    names = errors["model"].unique(maintain_order=True).to_list()
    rows: list[Row] = []
    for group in errors.partition_by(by) if by else [errors]:
        means = dict(zip(group["model"], map(percent, group["mean_error"]), strict=True))
        rows.append({"what": str(group[by][0]) if by else "mean error", "jobs": group["count"][0], **means})
    if by is None:
        kinds = {
            "90th percentile": map(percent, errors["p90_error"]),
            "bias": (percent(bias, signed=True) for bias in errors["bias"]),
            "rank correlation": (None if rank is None else f"{rank:.2f}" for rank in errors["rank"]),
        }
        rows += [{"what": kind, "jobs": "", **dict(zip(names, values, strict=True))} for kind, values in kinds.items()]
    return Table(
        [Column(by or "all", "what"), Column("jobs", "jobs"), *(Column(name, name) for name in names)], rows, title
    )


def _read(table: Path, features: str | None, run: str, timestep: str, target: str) -> "CounterTable":
    from fairlane.predict import CounterTable

    names = None if features is None else [name.strip() for name in features.split(",") if name.strip()]
    return CounterTable.read(table, features=names, run=run, timestep=timestep, target=target)


def _share(option: str, given: float) -> float:
    if not 0 < given < 1:
        raise refused(option, "out of range", given, "between 0 and 1, as 0.9")
    return given


def _report(found: "Predictor", out: Path) -> Iterator[str]:
    off = found.validated
    yield f"Model: {found.model} on the {_SEEN[found.pipeline.parts.name]}{_reason(found)}"
    chosen = ", the model chosen anew from the training runs of each" if found.compared else ""
    over = f"mean (standard deviation) over {off.folds} folds{chosen}"
    yield f"{plural(found.runs, 'run')}; errors on held-out runs, {over}:"
    mse = f"{significant(off.mse, 4)} ({significant(off.mse_sd, 2)})"
    yield f"  mean square error {mse}, {off.mse_over_variance:.0%} of the variance"
    yield f"  max abs. error    {significant(off.max_abs_error, 4)} ({significant(off.max_abs_error_sd, 2)})"
    half_width = significant(found.half_width, 4)
    yield f"  interval          the prediction less and plus {half_width}, for {found.coverage:.0%}"
    ranked = sorted(found.importance.items(), key=lambda item: -item[1])
    yield "Permutation importance, in percent of the variance:"
    yield from (f"  {100 * importance:6.2f}  {name}" for name, importance in ranked[:_SHOWN])
    if len(ranked) > _SHOWN:
        yield f"  ({len(ranked) - _SHOWN} others, at most {100 * ranked[_SHOWN][1]:.2f})"
    yield f"The model is in {out}."


def _reason(found: "Predictor") -> str:
    """Why a model was chosen, if it was."""
    if not found.compared:
        return ""
    best, *others = found.compared
    error = f"mean square error on held-out runs {significant(best.mse, 4)}"
    if not others:
        return f": {error}"
    second = f"{others[0].model} on the {_SEEN[others[0].parts]} {significant(others[0].mse, 4)}"
    return f": {error}, the least of {len(found.compared)}; next {second}"


def _written(folder: Path, models: "Comparison", clusters: "Comparison | None", made: "View") -> None:
    from fairlane.views.files import write
    from fairlane.views.kinds import write_pictures

    write_table(models.table, folder / "models.csv")
    write_table(models.predictions, folder / "predictions.parquet")
    if clusters is not None:
        write_table(clusters.table, folder / "local.csv")
        write_table(clusters.predictions, folder / "local-predictions.parquet")
    write_pictures(made, made.pictures, folder)
    write(made, folder / "predictions.html")
