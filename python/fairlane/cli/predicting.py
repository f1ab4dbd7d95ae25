"""Run times from counters, and slowdowns of pairs of jobs: predict fit, apply, compare, pairs."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from fairlane.cli.command import AsJson, Quiet, add, out_option, print_json
from fairlane.cli.exit import ExitCode
from fairlane.cli.options import folder_of
from fairlane.wording import plural, significant

if TYPE_CHECKING:
    import polars as pl

    from fairlane.models import RegressorName
    from fairlane.predict import Comparison, CounterTable, Predictor
    from fairlane.predict.parts import PartsName

__all__ = ["add_to"]

predict_app = typer.Typer(
    help="Run times from counters; slowdowns of pairs of jobs before they run.", no_args_is_help=True
)

_SHOWN = 10
"""How many features are printed with their importance."""
_Table = Annotated[
    Path, typer.Argument(metavar="TABLE", help="A row for each run and timestep, CSV or Parquet.", show_default=False)
]
_Features = Annotated[
    str | None, typer.Option(help="Names of counters, e.g. 'flits_*,stalls_*'; by default all other numeric columns.")
]
_Run = Annotated[str, typer.Option(help="Column that identifies runs.")]
_Timestep = Annotated[str, typer.Option(help="Column with the number of the timestep.")]
_Target = Annotated[str, typer.Option(help="Column with the time of the timestep.")]
_Folds = Annotated[int, typer.Option(min=2, help="Cross-validation folds that the runs are assigned to.")]
_Seed = Annotated[int, typer.Option(min=0, help="Seed of random choices.")]


def fit(
    table: _Table,
    out: Annotated[Path, out_option("The model's file.")] = Path("model.json"),
    model: Annotated[str, typer.Option(help="gbm, forest, histogram or ridge.")] = "gbm",
    parts: Annotated[str, typer.Option(help="What of the counters: base, low-rank or sparse.")] = "sparse",
    clusters: Annotated[int, typer.Option(min=1, help="Groups of runs with a model of their own.")] = 1,
    coverage: Annotated[float, typer.Option(help="Share of the timesteps that the interval is to hold.")] = 0.9,
    folds: _Folds = 10,
    seed: _Seed = 1,
    features: _Features = None,
    run: _Run = "run",
    timestep: _Timestep = "timestep",
    target: _Target = "seconds",
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> int:
    """Fit a model of run times to a table of counters, and report its error on held-out runs."""
    from fairlane.predict import PARTS, REGRESSORS
    from fairlane.predict import fit as fitted

    found = fitted(
        _read(table, features, run, timestep, target),
        model=cast("RegressorName", _one_of("--model", model, list(REGRESSORS))),
        parts=cast("PartsName", _one_of("--parts", parts, list(PARTS))),
        clusters=clusters,
        folds=folds,
        coverage=_share("--coverage", coverage),
        seed=seed,
    )
    found.save(out)
    if as_json:
        facts = {name: getattr(found, name) for name in ("runs", "validated", "half_width", "coverage", "importance")}
        print_json({"file": out, **facts})
    elif quiet:
        typer.echo(out)
    else:
        _report(found)
        typer.echo(f"The model is in {out}.")
    return ExitCode.DONE


def apply(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="The model's file.", show_default=False)],
    table: _Table,
    out: Annotated[Path | None, out_option("Where the rows go, CSV or Parquet; by default printed.")] = None,
    run: _Run = "run",
    timestep: _Timestep = "timestep",
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> int:
    """Predict the time of every timestep of a table, with an interval, and name runs that are out of distribution."""
    from fairlane.predict import CounterTable, Predictor

    known = Predictor.load(model)
    rows = CounterTable.read(
        table, features=known.features, run=run, timestep=timestep, target=known.target, target_needed=False
    )
    found = known.predict(rows)
    if out is not None:
        _write(found, out)
    if as_json:
        print_json(found)
    elif out is None:
        typer.echo(found.write_csv(), nl=False)
    if quiet:
        return ExitCode.DONE
    for words in known.warnings(rows):
        typer.echo(f"fairlane: {words}", err=True)
    if rows.target is not None:
        off = found["predicted"].to_numpy() - rows.target
        inside = (abs(off) <= known.half_width).mean()
        mse, largest = significant((off**2).mean(), 4), significant(abs(off).max(), 4)
        words = f"mean square error {mse}, maximum absolute error {largest}"
        typer.echo(f"fairlane: {words}, {inside:.0%} of {known.target} inside the interval", err=True)
    return ExitCode.DONE


def compare(
    table: _Table,
    out: Annotated[Path | None, out_option("Folder for the tables and pictures of some runs.", "DIR")] = None,
    local: Annotated[bool, typer.Option(help="Also compare one, two and three local models.")] = True,
    folds: _Folds = 10,
    seed: _Seed = 1,
    features: _Features = None,
    run: _Run = "run",
    timestep: _Timestep = "timestep",
    target: _Target = "seconds",
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> int:
    """Cross-validate all models by run: on the counters, their low-rank and sparse part, and with local models."""
    from rich.console import Console
    from rich.progress import Progress

    from fairlane.predict import compare as compared
    from fairlane.predict import local as localised

    rows = _read(table, features, run, timestep, target)
    with Progress(console=Console(stderr=True), transient=True, disable=quiet) as shown:
        task = shown.add_task("folds", total=folds * (1 + local))
        advance = lambda: shown.update(task, advance=1)  # noqa: E731 - it is as short as that
        clusters = localised(rows, folds=folds, seed=seed, progress=advance) if local else None
        models = compared(rows, folds=folds, seed=seed, progress=advance)
    if out is not None:
        _written(out, models, clusters)
    if as_json:
        print_json({"folder": out, "models": models.table, "local": clusters.table if clusters else None})
        return ExitCode.DONE
    if quiet:
        typer.echo(out or "")
        return ExitCode.DONE
    typer.echo(
        f"{plural(rows.runs, 'run')}, {plural(len(rows.rows), 'timestep')}, "
        f"{plural(len(rows.features), 'counter')}; {folds} folds by run"
    )
    typer.echo("Mean (standard deviation) over folds; the maximum absolute error is that of a fold.\n")
    _print(models.table, ("model", "parts", "setting"))
    if clusters:
        typer.echo("\nLocal models, gbm on the sparse part:\n")
        _print(clusters.table, ("clusters",))
    if out is not None:
        typer.echo(f"\nTables and pictures are in {out}.")
    return ExitCode.DONE


def pairs(
    table: Annotated[
        Path | None, typer.Argument(metavar="[TABLE]", help="Pairs simulated before; by default they are simulated.")
    ] = None,
    count: Annotated[int, typer.Option(min=5, help="Pairs to simulate on each of three fabrics.")] = 150,
    out: Annotated[Path, out_option("Where simulated pairs go, CSV or Parquet.")] = Path("pairs.parquet"),
    seed: _Seed = 1,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> int:
    """Report how well slowdowns of pairs of jobs are predicted before they run, for held-out applications."""
    import polars as pl

    from fairlane.scheduler.slowdown.pair_models import pair_errors, predict_held_out, predict_seen, read_pairs
    from fairlane.scheduler.slowdown.pairs import simulate_pairs
    from fairlane.tasks.executor import Executor
    from fairlane.tasks.pools import Threads, cores
    from fairlane.tasks.progress import TaskProgress

    if table is None:
        with (
            TaskProgress(wanted=not quiet) as shown,
            Executor(Threads(cores()), None, shown, attempts=1, first_failure_ends=True) as executor,
        ):
            shown.stage("simulating")
            found = simulate_pairs(count, seed=seed, executor=executor)
        _write(found, out)
        if not (as_json or quiet):
            typer.echo(f"The pairs are in {out}.")
    else:
        found = read_pairs(table)
    predicted = predict_held_out(found)
    if as_json or quiet:
        errors = {by or "all": pair_errors(predicted, by) for by in (None, "links", "role", "fabric", "held_out")}
        facts = {"file": None if table else out, "held_out": errors, "seen": pair_errors(predict_seen(found))}
        print_json(facts) if as_json else typer.echo(table or out)
        return ExitCode.DONE
    mean = found.select(pl.col("slowdown").mean()).item()
    typer.echo(f"{plural(found.height, 'job')} in pairs, mean slowdown {significant(mean)};")
    typer.echo("held-out applications (the job's, its neighbour's, or both):\n")
    for by in (None, "links", "role", "fabric", "held_out"):
        _print_pairs(pair_errors(predicted, by), by)
    typer.echo("held-out pairs of applications that the models were fitted to:\n")
    _print_pairs(pair_errors(predict_seen(found)), None)
    return ExitCode.DONE


def _print_pairs(errors: "pl.DataFrame", by: str | None) -> None:
    models = errors["model"].unique(maintain_order=True)
    typer.echo(f"{by or 'all':<18}{'jobs':<7}" + "".join(f"{name:<12}" for name in models))
    for group in errors.partition_by(by) if by else [errors]:
        what = str(group[by][0]) if by else "mean error"
        typer.echo(f"{what:<18}{group['count'][0]:<7}" + "".join(f"{mean:<12.1%}" for mean in group["mean_error"]))
    if by is None:
        for name, column in (("90th percentile", "p90_error"), ("bias", "bias")):
            typer.echo(f"{name:<25}" + "".join(f"{value:<12.1%}" for value in errors[column]))
        ranks = ("-" if value is None else f"{value:.2f}" for value in errors["rank"])
        typer.echo(f"{'rank correlation':<25}" + "".join(f"{value:<12}" for value in ranks))
    typer.echo("")


def _read(table: Path, features: str | None, run: str, timestep: str, target: str) -> "CounterTable":
    from fairlane.predict import CounterTable

    names = None if features is None else [name.strip() for name in features.split(",") if name.strip()]
    return CounterTable.read(table, features=names, run=run, timestep=timestep, target=target)


def _one_of(option: str, given: str, allowed: list[str]) -> str:
    from fairlane.errors import Problem, ScenarioError

    if given not in allowed:
        raise ScenarioError(Problem.unknown(option, "name", given, allowed, given))
    return given


def _share(option: str, given: float) -> float:
    from fairlane.errors import Problem, ScenarioError

    if not 0 < given < 1:
        raise ScenarioError(Problem(option, "out of range", given, "between 0 and 1, as 0.9"))
    return given


def _report(found: "Predictor") -> None:
    off = found.validated
    typer.echo(
        f"{plural(found.runs, 'run')}; errors on held-out runs, mean (standard deviation) over {off.folds} folds:"
    )
    typer.echo(
        f"  mean square error {significant(off.mse, 4)} "
        f"({significant(off.mse_sd, 2)}), {off.mse_over_variance:.0%} of the variance"
    )
    typer.echo(f"  max abs. error    {significant(off.max_abs_error, 4)} ({significant(off.max_abs_error_sd, 2)})")
    typer.echo(
        f"  interval          the prediction less and plus {significant(found.half_width, 4)}, for {found.coverage:.0%}"
    )
    ranked = sorted(found.importance.items(), key=lambda item: -item[1])
    typer.echo("Permutation importance, in percent of the variance:")
    for name, importance in ranked[:_SHOWN]:
        typer.echo(f"  {100 * importance:6.2f}  {name}")
    if len(ranked) > _SHOWN:
        typer.echo(f"  ({len(ranked) - _SHOWN} others, at most {100 * ranked[_SHOWN][1]:.2f})")


def _print(table: "pl.DataFrame", kinds: tuple[str, ...]) -> None:
    typer.echo(
        "".join(f"{kind:<14}" for kind in kinds)
        + f"{'mean square error':<22}{'max. absolute error':<22}of the variance"
    )
    for row in table.iter_rows(named=True):
        what = "".join(f"{row[kind]!s:<14}" for kind in kinds)
        mse, largest = (
            f"{significant(row[key], 4)} ({significant(row[f'{key}_sd'], 2)})" for key in ("mse", "max_abs_error")
        )
        typer.echo(f"{what}{mse:<22}{largest:<22}{row['mse_over_variance']:.0%}")


def _write(table: "pl.DataFrame", path: Path) -> None:
    from fairlane.inputs.writing import replacing
    from fairlane.results.errors import writing

    with writing(path), replacing(path) as scratch:
        if path.suffix == ".parquet":
            table.write_parquet(scratch)
        else:
            table.write_csv(scratch)


def _written(folder: Path, models: "Comparison", clusters: "Comparison | None") -> None:
    from fairlane.plot.files import write
    from fairlane.plot.prediction import draw_predictions

    folder_of(folder)
    _write(models.table, folder / "models.csv")
    _write(models.predictions, folder / "predictions.parquet")
    shown = {"gbm on the sparse part": {"model": "gbm", "parts": "sparse", "setting": "inductive"}}
    write(lambda: draw_predictions(models.predictions, shown), folder / "predictions.png")
    if clusters is not None:
        _write(clusters.table, folder / "local.csv")
        _write(clusters.predictions, folder / "local-predictions.parquet")
        lines = {"one model": {"clusters": 1}, "two local models": {"clusters": 2}}
        write(lambda: draw_predictions(clusters.predictions, lines), folder / "local.png")


def add_to(app: typer.Typer) -> None:
    """Adds these commands."""
    for function in (fit, apply, compare, pairs):
        add(predict_app, function)
    app.add_typer(predict_app, name="predict")
