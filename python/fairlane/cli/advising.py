"""Advice for one application, and the model of run times: advise, learn."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fairlane.cli.exit import ExitCode

if TYPE_CHECKING:
    from fairlane.advice.model import ModelError

__all__ = ["add_to"]


def advise(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="The scenario: application and neighbours.", show_default=False)
    ],
    job: Annotated[str | None, typer.Option(help="The application; by default the first job.")] = None,
    cap: Annotated[str | None, typer.Option(help="Its power cap, as '65 W'.")] = None,
    level: Annotated[list[int] | None, typer.Option(help="A service level that it may have; by default all.")] = None,
    length: Annotated[str | None, typer.Option(help="Length of each simulation, as '2 ms'.")] = None,
    seeds: Annotated[int, typer.Option(min=1, help="Seeds, and so placements, of each alternative.")] = 3,
    show: Annotated[int, typer.Option(min=1, help="How many alternatives to print.")] = 5,
    workers: Annotated[int | None, typer.Option(min=1, help="Processes; by default one for each core.")] = None,
    out: Annotated[Path | None, typer.Option(help="Folder of the simulations.")] = None,
) -> int:
    """Say with which rails, service level and placement an application had best run beside its neighbours.

    All alternatives are simulated, for the length that is given: times are means over seeds, and their range.
    """
    from fairlane.advice import advise as found_by
    from fairlane.results.text import percent

    found = found_by(file, job=job, cap=cap, levels=level, length=length, seeds=seeds, workers=workers, out=out)
    rows = found.table.to_dicts()
    typer.echo(f"{found.job}: {len(rows)} alternatives, simulated with {seeds} seeds each")
    typer.echo(f"Times are known to 1 part in {found.iterations}, the fewest iterations of a simulation.\n")
    typer.echo("rails   level  placement  iteration    range over seeds         alone     neighbours")
    for row in [*rows[:show], *([rows[-1]] if len(rows) > show else [])]:
        times = f"{row['iteration_ms']:9.4g} ms  {row['least_ms']:.4g} to {row['most_ms']:.4g} ms"
        neighbours = "-" if row["neighbours"] is None else percent(row["neighbours"], signed=True)
        what = f"{row['rails']:<7} {row['service_level']:<6} {row['placement']:<9}"
        typer.echo(f"{what} {times:<38} {row['alone_ms']:.4g} ms   {neighbours:>6}")
    if len(rows) > show:
        typer.echo(f"(the last is the worst; {len(rows) - show - 1} between are left out)")
    return ExitCode.DONE


def learn(
    file: Annotated[Path, typer.Argument(metavar="RUNS", help="A table of runs, CSV or Parquet.", show_default=False)],
    out: Annotated[Path, typer.Option(help="The model's file.")] = Path("model.json"),
) -> int:
    """Fit a model of run times to a table of runs, and say how far it is off on what it has not seen."""
    from fairlane.advice import learn as fitted
    from fairlane.advice.learning import read_runs

    model = fitted(read_runs(file))
    model.save(out)
    typer.echo(f"{model.runs} runs; errors on what the model was not fitted to:")
    _error("other applications", model.by_application)
    _error("other conditions", model.by_condition)
    typer.echo(f"The model is in {out}.")
    return ExitCode.DONE


def _error(what: str, found: "ModelError") -> None:
    typer.echo(
        f"  {what}: {found.mean:.1%} on average (a constant: {found.without:.1%}), a tenth {found.worst_tenth:.1%}"
    )
    typer.echo(f"    {found.inside:.0%} of run times in the interval for 80%")
    typer.echo(f"    the alternative held for the best loses {found.regret:.1%}, any one {found.regret_of_any:.1%}")


def add_to(app: typer.Typer) -> None:
    """Adds these commands."""
    app.command()(advise)
    app.command()(learn)
