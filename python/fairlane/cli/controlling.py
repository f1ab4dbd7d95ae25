"""Running a controller on a scenario: control."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Option

from fairlane.cli.command import Answer, AsJson, Quiet, Seed, completing, out_option
from fairlane.cli.options import (
    AllowCode,
    Assignments,
    ScenarioFile,
    Threads,
    duration_of,
    folder_for,
    fresh,
    refused,
    threads_of,
)

if TYPE_CHECKING:
    from fairlane.controller import Outcome
    from fairlane.views.model import View


def control(
    scenario: ScenarioFile,
    controller: Annotated[
        str,
        Option(
            help="Its name (see fairlane list controllers), or file.py:ClassName.",
            autocompletion=completing("fairlane.controller:CONTROLLERS"),
        ),
    ],
    parameters: Annotated[
        list[str] | None,
        Option("--with", metavar="KEY=VALUE", help="A parameter, e.g. threshold=0.9; can be given many times."),
    ] = None,
    assignments: Assignments = None,
    mode: Annotated[str, Option(help="episodes (fresh short simulations) or online.")] = "episodes",
    period: Annotated[str, Option(help="How long a period is.")] = "60 ms",
    periods: Annotated[int, Option(min=1, help="How many there are.")] = 50,
    seed: Seed = None,
    draws: Annotated[int | None, Option(min=1, help="Different combinations of variants; for episodes.")] = None,
    threads: Threads = None,
    out: Annotated[Path | None, out_option("Folder for the table, the picture and the page.", "DIR")] = None,
    allow_code: AllowCode = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> Answer:
    """Let a controller set service levels, period by period, and show what it gains.

    The seed is also that of the jobs' variants in episodes, where it is 1 by default. With --threads N, N episodes are
    simulated at the same time; online, each simulation runs on N threads.
    """
    from fairlane import Scenario
    from fairlane.cli.terminal import parts_of
    from fairlane.controller import control as perform
    from fairlane.controller import controller_of, row_of
    from fairlane.controller.loop import mode_of
    from fairlane.inputs import code
    from fairlane.views.control import view

    loaded = Scenario.load(scenario, set=assignments or (), seed=seed, allow_code=allow_code).with_background()
    with code.allow_code(allow_code):
        made = controller_of({**_parameters(parameters or []), "name": controller})
    span = duration_of("--period", period)
    if span == 0:
        raise refused("--period", "out of range", period, "above 0")
    if draws is not None and mode_of(mode) == "online":
        raise refused("--draws", "has an effect in episodes only", draws, "--mode episodes")
    fresh(out)
    outcomes: list[Outcome] = []
    with folder_for(out):
        own = 1 if seed is None else seed
        most = threads_of(threads) if mode_of(mode) == "online" else threads
        found = perform(
            loaded, made, mode=mode_of(mode), period=span, periods=periods, seed=own, draws=draws, threads=most
        )
        for outcome in found:
            outcomes.append(outcome)
            if as_json or quiet:
                continue
            if len(outcomes) == 1:
                typer.echo(f"{'period':>6}  {'state':8} {'adopted':7} {'mean':>7} {'worst':>7} {'best':>7}")
            typer.echo(_line(outcome))
        rows = [row_of(outcome, job) for outcome in outcomes for job in outcome.jobs]
        shown = view(outcomes, f"{loaded.name}: {controller}")
        if out is not None:
            _store(out, rows, shown)
    return Answer({"folder": out, "periods": rows}, parts_of(shown, out), out)


def _store(out: Path, rows: list[dict[str, Any]], made: "View") -> None:
    """The table, the picture, the page and the manifest; all or none of them."""
    import polars as pl

    from fairlane.results.manifest import MANIFEST, seal
    from fairlane.views.files import write

    table, picture, page = out / "periods.parquet", out / "improvement.png", out / "control.html"
    try:
        pl.DataFrame(rows, infer_schema_length=None).write_parquet(table)
        write(made, picture)
        write(made, page)
        seal(out, "control", 1, [table.name])
    except BaseException:
        for path in (table, picture, page, out / MANIFEST):
            path.unlink(missing_ok=True)
        raise


def _parameters(given: list[str]) -> dict[str, Any]:
    """Values are JSON, or text if they are not."""
    found: dict[str, Any] = {}
    for assignment in given:
        key, separator, value = assignment.partition("=")
        if not separator:
            raise refused("--with", "not of the form KEY=VALUE", assignment)
        try:
            found[key] = json.loads(value)
        except json.JSONDecodeError:
            found[key] = value
    return found


def _line(outcome: "Outcome") -> str:
    from fairlane.views.control import period_row
    from fairlane.wording import percent

    row = period_row(outcome)
    shown = " ".join(f"{percent(row[name], signed=True):>7}" for name in ("mean", "worst", "best"))
    return f"{row['period']:6}  {row['state']:8} {row['adopted']:7} {shown}"
