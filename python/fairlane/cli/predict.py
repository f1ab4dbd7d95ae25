"""Run times from counters, and slowdowns of pairs of jobs: predict fit, apply, compare, pairs."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, cast

from rich.console import Console
from rich.progress import Progress
from typer import Argument, Option

from fairlane.cli.command import Answer, Quiet, out_option, write_table
from fairlane.cli.options import RandomSeed, folder_of, one_of, refused, report
from fairlane.core.wording import plural
from fairlane.learn.models import REGRESSORS, RegressorName
from fairlane.learn.predict.clusters import local as compare_local
from fairlane.learn.predict.hyperparameters import HYPERPARAMETERS, INNER_FOLDS, Named
from fairlane.learn.predict.model import Predictor
from fairlane.learn.predict.model import fit as fit_model
from fairlane.learn.predict.parts import PARTS, PartsName
from fairlane.learn.predict.table import CounterTable
from fairlane.learn.predict.validation import Comparison
from fairlane.learn.predict.validation import compare as compare_models
from fairlane.learn.scheduler.slowdown.pairs import (
    pair_errors,
    predict_held_out,
    predict_seen,
    read_pairs,
    simulate_pairs,
)
from fairlane.model.scenario.estimate import machine_cores
from fairlane.study.tasks.executor import simulating
from fairlane.study.tasks.pools import Threads
from fairlane.views import prediction as views
from fairlane.views.kinds import write, write_pictures
from fairlane.views.model import View
from fairlane.views.slowdown import pairs_view

BEST = "best"  # of --model and --parts: what has the least error
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
    regressor = one_of("--model", model, [*REGRESSORS, BEST])
    of = one_of("--parts", parts, [*PARTS, BEST])
    if not 0 < coverage < 1:
        raise refused("--coverage", "out of range", coverage, "between 0 and 1, as 0.9")
    rows = _read(table, features, run, timestep, target)
    choosing = folds * (1 + INNER_FOLDS) if BEST in (regressor, of) else 0
    with _folds(folds + choosing, quiet=quiet) as advance:
        predictor = fit_model(
            rows,
            model=None if regressor == BEST else cast("RegressorName", regressor),
            parts=None if of == BEST else cast("PartsName", of),
            clusters=clusters,
            folds=folds,
            coverage=coverage,
            seed=seed,
            progress=advance,
        )
    predictor.save(out)
    names = ("model", "compared", "runs", "validated", "half_width", "coverage", "importance")
    facts = {"parts": predictor.pipeline.parts.name, **{name: getattr(predictor, name) for name in names}}
    return Answer({"file": out, **facts}, [views.fitted(predictor), f"The model is in {out}."], out)


def apply(
    model: Annotated[Path, Argument(metavar="MODEL", help="The model's file.")],
    table: _Table,
    out: Annotated[Path | None, out_option("Where the rows go, CSV or Parquet; by default printed.")] = None,
    run: _Run = "run",
    timestep: _Timestep = "timestep",
    quiet: Quiet = False,
) -> Answer:
    """Predict the time of every timestep of a table, with an interval, and name runs that are out of distribution."""
    known = Predictor.load(model)
    rows = CounterTable.read(
        table, features=known.features, run=run, timestep=timestep, target=known.target, target_needed=False
    )
    predictions = known.predict(rows)
    if out is not None:
        write_table(predictions, out)
    if not quiet:
        report(*known.warnings(rows))
        if rows.target is not None:
            report(views.errors(predictions, rows.target, known))
    return Answer(predictions, () if out else [predictions.write_csv().removesuffix("\n")])


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
    chosen = tuple(
        cast("Named", one_of("--hyperparameters", name.strip(), HYPERPARAMETERS)) for name in hyperparameters.split(",")
    )
    rows = _read(table, features, run, timestep, target)
    with _folds(folds * (1 + local), quiet=quiet) as advance:
        clusters = compare_local(rows, folds=folds, seed=seed, progress=advance) if local else None
        models = compare_models(rows, hyperparameters=chosen, folds=folds, seed=seed, progress=advance)
    counts = (plural(rows.runs, "run"), plural(len(rows.rows), "timestep"), plural(len(rows.features), "counter"))
    made = views.view(f"{', '.join(counts)}; {folds} folds by run", models, clusters)
    if out is not None:
        _written(folder_of(out), models, clusters, made)
    return Answer(
        {"folder": out, "models": models.table, "local": clusters.table if clusters else None},
        [made],
        folder=out,
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
    if table is None:
        pool = Threads(machine_cores())
        with simulating(pool, None, progress=not quiet, attempts=1, first_failure_ends=True) as executor:
            table_of_pairs = simulate_pairs(count, seed=seed, executor=executor)
        write_table(table_of_pairs, out)
        if not quiet:
            report(f"the pairs are in {out}")
    else:
        table_of_pairs = read_pairs(table)
    predicted = predict_held_out(table_of_pairs)
    errors = {by: pair_errors(predicted, by) for by in (None, "links", "role", "fabric", "held_out")}
    seen = pair_errors(predict_seen(table_of_pairs))
    facts = {"file": None if table else out, "held_out": {by or "all": of for by, of in errors.items()}, "seen": seen}
    return Answer(facts, [pairs_view(table_of_pairs, errors, seen)], table or out)


@contextmanager
def _folds(count: int, *, quiet: bool) -> Iterator[Callable[[], None]]:
    """Shows the progress of so many folds; what it gives is to be called after each."""
    with Progress(console=Console(stderr=True), transient=True, disable=quiet) as shown:
        task = shown.add_task("folds", total=count)
        yield lambda: shown.update(task, advance=1)


def _read(table: Path, features: str | None, run: str, timestep: str, target: str) -> CounterTable:
    names = None if features is None else [name.strip() for name in features.split(",") if name.strip()]
    return CounterTable.read(table, features=names, run=run, timestep=timestep, target=target)


def _written(folder: Path, models: Comparison, clusters: Comparison | None, made: View) -> None:
    write_table(models.table, folder / "models.csv")
    write_table(models.predictions, folder / "predictions.parquet")
    if clusters is not None:
        write_table(clusters.table, folder / "local.csv")
        write_table(clusters.predictions, folder / "local-predictions.parquet")
    write_pictures(made, made.pictures, folder)
    write(made, folder / "predictions.html")
