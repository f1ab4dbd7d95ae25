"""Advice for one application, and the model of run times: advise, learn."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fairlane.cli.command import AsJson, Quiet, add, out_option, print_json
from fairlane.cli.exit import ExitCode
from fairlane.cli.options import AllowCode, Assignments
from fairlane.wording import plural, significant

if TYPE_CHECKING:
    from fairlane.advice import Advice
    from fairlane.advice.alternatives import Check
    from fairlane.advice.model import RunTimeErrors

__all__ = ["add_to"]


def advise(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="The scenario: application and neighbours.", show_default=False)
    ],
    assignments: Assignments = None,
    job: Annotated[str | None, typer.Option(help="The application; by default the first job.")] = None,
    cap: Annotated[str | None, typer.Option(help="Its power cap, e.g. '65 W'.")] = None,
    level: Annotated[list[int] | None, typer.Option(help="A service level that it may have; by default all.")] = None,
    length: Annotated[str | None, typer.Option(help="Length of each simulation, e.g. '2 ms'.")] = None,
    seeds: Annotated[int, typer.Option(min=1, help="Seeds, and so placements, of each alternative.")] = 3,
    model: Annotated[
        Path | None, typer.Option(metavar="FILE", help="A model that predicts the run times, from 'fairlane learn'.")
    ] = None,
    check: Annotated[
        str | None, typer.Option(metavar="LENGTH", help="Simulate all alternatives for '8 ms' with other seeds, too.")
    ] = None,
    show: Annotated[int, typer.Option(min=1, help="How many alternatives to print.")] = 5,
    workers: Annotated[int | None, typer.Option(min=1, help="Processes; by default one for each core.")] = None,
    out: Annotated[Path | None, out_option("Folder of the simulations.", "DIR")] = None,
    allow_code: AllowCode = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> int:
    """Recommend rails, service level and placement for an application that runs with given neighbours.

    All alternatives are simulated for a short time; or, with a model, only the application isolated and its neighbours
    isolated, and the model predicts the rest. --check compares the advice with longer simulations.
    """
    from fairlane.advice import advise as found_by

    found = found_by(
        file,
        job=job,
        cap=cap,
        levels=level,
        length=length,
        seeds=seeds,
        model=model,
        check=check,
        workers=workers,
        out=out,
        assignments=assignments or (),
        allow_code=allow_code,
    )
    if as_json:
        print_json({**_facts(found), "folder": out or found.folder})
        return ExitCode.DONE
    if quiet:
        typer.echo(out or found.folder)
        return ExitCode.DONE
    _head(found, seeds)
    _table(found, show)
    if found.checked:
        _checked(found.checked)
    typer.echo(f"Everything is in {out or found.folder}.")
    return ExitCode.DONE


def _facts(found: "Advice") -> dict[str, object]:
    """For JSON: every alternative, and the check of the advice if there is one."""
    facts = {
        name: getattr(found, name) for name in ("job", "coverage", "by_model", "iterations", "neighbour_iterations")
    }
    return {**facts, "alternatives": found.table, "checked": found.checked}


def _head(found: "Advice", seeds: int) -> None:
    from fairlane.advice.fingerprint import MIN_MARKS

    many = f"{found.job}: {found.table.height} alternatives"
    within = f"the interval is for {found.coverage:.0%} of run times"
    if found.by_model:
        typer.echo(f"{many}, by the model, from one isolated simulation of {found.job} and one of its neighbours;")
        typer.echo(f"{within}. Neighbours are simulated, with the advised alternative only.\n")
        return
    each = f"simulated with {seeds} seeds each" if seeds > 1 else "simulated with one seed each, so without an interval"
    typer.echo(f"{many}, {each}, at least {plural(found.iterations, 'iteration')};")
    typer.echo(f"{within} with other seeds. Neighbours: change of their rates by {found.job}.")
    few = found.neighbour_iterations
    if few is not None and few < MIN_MARKS:
        typer.echo(
            f"One of them has done {plural(few, 'iteration')} only: its change is roughly that of bytes; "
            "longer simulations are more exact."
        )
    typer.echo()


def _table(found: "Advice", show: int) -> None:
    from fairlane.results.text import percent

    rows = found.table.to_dicts()
    typer.echo("rails   level  placement  iteration    interval                 isolated    neighbours")
    for row in [*rows[:show], *([rows[-1]] if len(rows) > show else [])]:
        ends = (
            "-" if row["low_ms"] is None else f"{significant(row['low_ms'], 4)} to {significant(row['high_ms'], 4)} ms"
        )
        alone = "-" if row["isolated_ms"] is None else f"{significant(row['isolated_ms'], 4)} ms"
        neighbours = "-" if row["neighbours"] is None else percent(row["neighbours"], signed=True)
        what = f"{row['rails']:<7} {row['service_level']:<6} {row['placement']:<9}"
        time = "too few iterations" if row["iteration_ms"] is None else f"{significant(row['iteration_ms'], 4)} ms"
        typer.echo(f"{what} {time:>12}  {ends:<24} {alone:>11} {neighbours:>13}")
    if len(rows) > show:
        typer.echo(f"(the last is the worst; {len(rows) - show - 1} between are not shown)")


def _checked(found: "Check") -> None:
    typer.echo(f"\nChecked by simulations of {found.length} with {found.seeds} other seeds:")
    typer.echo(
        f"  the advice has rank {found.rank} of {found.table.height}; its regret is {found.regret:.1%} against the best"
    )
    typer.echo(f"  ({found.best}), that of a random alternative {found.random_regret:.1%}")
    if found.coverage == found.coverage:  # not so without intervals
        typer.echo(f"  {found.coverage:.0%} of these run times are in their intervals")


def learn(
    files: Annotated[
        list[Path], typer.Argument(metavar="RUNS...", help="Tables of runs, CSV or Parquet.", show_default=False)
    ],
    out: Annotated[Path, out_option("The model's file.")] = Path("model.json"),
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> int:
    """Fit a model of run times to tables of runs, and report its error on held-out runs."""
    from fairlane.advice import learn as fitted
    from fairlane.advice.model import read_runs

    model = fitted(read_runs(files))
    model.save(out)
    if as_json:
        errors = {"by_application": model.by_application, "by_condition": model.by_condition}
        print_json({"file": out, "runs": model.runs, **errors})
        return ExitCode.DONE
    if quiet:
        typer.echo(out)
        return ExitCode.DONE
    typer.echo(f"{plural(model.runs, 'run')}; errors on held-out runs:")
    _error("held-out applications", model.by_application)
    _error("held-out conditions", model.by_condition)
    typer.echo(f"The model is in {out}.")
    return ExitCode.DONE


def _error(what: str, found: "RunTimeErrors") -> None:
    typer.echo(f"  {what}: mean error {found.mean_error:.1%}, 90th percentile {found.p90_error:.1%}")
    typer.echo(f"    first guess alone {found.guess_error:.1%}, a constant {found.baseline_error:.1%}")
    typer.echo(
        f"    80% interval: {found.coverage:.0%} coverage ({found.coverage_without_margin:.0%} without its margin), "
        f"upper / lower end {found.interval_ratio:.2f}"
    )
    typer.echo(f"    regret of the advised alternative {found.regret:.1%}, of a random one {found.random_regret:.1%}")


def add_to(app: typer.Typer) -> None:
    """Adds these commands."""
    add(app, advise)
    add(app, learn)
