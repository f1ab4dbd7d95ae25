"""Simulating a scenario: run, and control with a controller of service levels."""

import json
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

import polars as pl
import typer
from typer import Option

from fairlane import Scenario
from fairlane.cli.command import Answer, AsJson, ExitCode, Quiet, Seed, completing, out_option
from fairlane.cli.options import (
    AllowCode,
    Assignments,
    ScenarioFile,
    Threads,
    folder_for,
    fresh,
    quantity_of,
    refused,
    report,
)
from fairlane.core.wording import percent, plural
from fairlane.inputs import code
from fairlane.model.scenario.estimate import free_cores
from fairlane.results.manifest import MANIFEST, seal
from fairlane.results.run import new_folder
from fairlane.sim import runner
from fairlane.sim.controller import Outcome, controller_of, row_of
from fairlane.sim.controller import control as controlled
from fairlane.sim.controller.loop import mode_of
from fairlane.views import lines
from fairlane.views.control import period_row
from fairlane.views.control import view as control_view
from fairlane.views.kinds import write
from fairlane.views.model import View
from fairlane.views.run import view


def run(
    scenario: ScenarioFile,
    assignments: Assignments = None,
    seed: Seed = None,
    duration: Annotated[str | None, Option(help='Replace the simulated time, e.g. "60 ms".')] = None,
    out: Annotated[Path | None, out_option("Folder of the run; by default a new one in runs/.", "DIR")] = None,
    allow_code: AllowCode = False,
    threads: Threads = None,
    isolated: Annotated[bool, Option(help="Also simulate each job alone, to compute its throughput change W.")] = True,
    leave_one_out: Annotated[
        bool, Option("--leave-one-out", help="Also simulate all jobs without each, to attribute lost time.")
    ] = False,
    live: Annotated[bool, Option(help="Let fairlane serve show the run in progress, and stop it.")] = True,
    quiet: Quiet = False,
) -> Answer:
    """Simulate a scenario and show which jobs slow each other down."""
    loaded = Scenario.load(scenario, set=assignments or (), seed=seed, duration=duration, allow_code=allow_code)
    folder = out or new_folder(loaded.name, datetime.now().astimezone(), None)
    most = _threads(threads)
    results = runner.run(
        loaded,
        out=folder,
        isolated=isolated,
        leave_one_out=leave_one_out or None,
        threads=most,
        progress=not quiet,
        figures=True,
        live=live,
    )
    tables = {"jobs": results.jobs, "interference": results.interference}
    tables |= {} if results.lost_time is None else {"lost_time": results.lost_time}
    return Answer(
        {"folder": results.folder, **results.meta.model_dump(), **tables},
        [view({"": results}, charts=False), *lines.times_of_run(results)],
        code=ExitCode.INTERRUPTED if results.meta.partial else ExitCode.DONE,
        folder=results.folder,
    )


def control(
    scenario: ScenarioFile,
    controller: Annotated[
        str,
        Option(
            help="Its name (see fairlane list controllers), or file.py:ClassName.",
            autocompletion=completing("fairlane.sim.controller:CONTROLLERS"),
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
    loaded = Scenario.load(scenario, set=assignments or (), seed=seed, allow_code=allow_code).with_background()
    with code.allow_code(allow_code):
        made = controller_of({**_parameters(parameters or []), "name": controller})
    span = quantity_of("--period", period, positive=True)
    if draws is not None and mode_of(mode) == "online":
        raise refused("--draws", "has an effect in episodes only", draws, "--mode episodes")
    fresh(out)
    outcomes: list[Outcome] = []
    with folder_for(out):
        first_seed = 1 if seed is None else seed
        most = _threads(threads) if mode_of(mode) == "online" else threads
        found = controlled(
            loaded, made, mode=mode_of(mode), period=span, periods=periods, seed=first_seed, draws=draws, threads=most
        )
        for outcome in found:
            outcomes.append(outcome)
            if as_json or quiet:
                continue
            if len(outcomes) == 1:
                typer.echo(f"{'period':>6}  {'state':8} {'adopted':7} {'mean':>7} {'worst':>7} {'best':>7}")
            typer.echo(_line(outcome))
        rows = [row_of(outcome, job) for outcome in outcomes for job in outcome.jobs]
        shown = control_view(outcomes, f"{loaded.name}: {controller}")
        if out is not None:
            _store(out, rows, shown)
    return Answer({"folder": out, "periods": rows}, [shown], folder=out)


def _store(out: Path, rows: list[dict[str, Any]], made: View) -> None:
    """The table, the picture, the page and the manifest; all or none of them."""
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
    parameters: dict[str, Any] = {}
    for assignment in given:
        key, separator, value = assignment.partition("=")
        if not separator:
            raise refused("--with", "not of the form KEY=VALUE", assignment)
        try:
            parameters[key] = json.loads(value)
        except json.JSONDecodeError:
            parameters[key] = value
    return parameters


def _line(outcome: Outcome) -> str:
    row = period_row(outcome)
    shown = " ".join(f"{percent(row[name], signed=True):>7}" for name in ("mean", "worst", "best"))
    return f"{row['period']:6}  {row['state']:8} {row['adopted']:7} {shown}"


def _threads(given: int | None) -> int | None:
    """The number of threads that ``--threads`` gives, with a warning if it is more than there are free cores."""
    if given is not None and given > (free := free_cores()):
        cores = plural(free, "core is", "cores are")
        report(f"--threads {given}: {cores} free; threads that share a core are slow, up to 50 times slower than one")
    return given
