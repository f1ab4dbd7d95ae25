"""Running a controller on a scenario: control."""

import json
from itertools import chain
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
    stored,
    threads_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from fairlane.controller import JobWork, Outcome, Work
    from fairlane.statistics import Estimate
    from fairlane.views.tables import Table


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
    out: Annotated[Path | None, out_option("Folder for the table and the picture.", "DIR")] = None,
    allow_code: AllowCode = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> Answer:
    """Let a controller set service levels, period by period, and show what it gains.

    The seed is also that of the jobs' variants in episodes, where it is 1 by default. With --threads N, N episodes are
    simulated at the same time; online, each simulation runs on N threads.
    """
    from fairlane import Scenario
    from fairlane.controller import control as perform
    from fairlane.controller import controller_of, row_of
    from fairlane.controller.loop import mode_of
    from fairlane.inputs import code

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
        if out is not None:
            _store(out, rows, outcomes, f"{loaded.name}: {controller}")
    return Answer({"folder": out, "periods": rows}, chain([_totals(outcomes)], stored(out)), out)


def _store(out: Path, rows: list[dict[str, Any]], outcomes: "Sequence[Outcome]", title: str) -> None:
    """The table, the picture and the manifest; all or none of them."""
    import polars as pl

    from fairlane.plot.control import draw
    from fairlane.plot.files import write
    from fairlane.results.manifest import MANIFEST, seal

    table, picture = out / "periods.parquet", out / "improvement.png"
    try:
        pl.DataFrame(rows, infer_schema_length=None).write_parquet(table)
        write(lambda: draw(outcomes, title), picture)
        seal(out, "control", 1, [table.name])
    except BaseException:
        for path in (table, picture, out / MANIFEST):
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
    from fairlane.wording import percent

    gains = [gain for job in outcome.treated.jobs if (gain := outcome.improvement(job)) is not None]
    numbers = [outcome.mean_improvement, min(gains, default=0.0), max(gains, default=0.0)]
    shown = " ".join(f"{percent(number, signed=True):>7}" for number in numbers)
    return f"{outcome.period:6}  {outcome.state:8} {'yes' if outcome.accepted else '':7} {shown}"


def _totals(outcomes: "list[Outcome]") -> "Table":
    from fairlane.results.derive import interval
    from fairlane.statistics import Estimate
    from fairlane.views.tables import Column, Table, columns, with_change

    rows = []
    for job in dict.fromkeys(job for outcome in outcomes for job in outcome.jobs):
        default = _total([outcome.default for outcome in outcomes if outcome.default], job)
        treated = _total([outcome.treated for outcome in outcomes], job)
        gain = _by_time(outcomes[-1], job) if outcomes[-1].mode == "online" else _by_period(outcomes, job)
        without = treated.over(default)
        shown = interval("gain", gain or (None if without is None else Estimate(without)))
        rows.append({"job": job, "default": default.done, "treated": treated.done, **shown})
    gains = Column("gain", with_change("gain"))
    about = "±: 95% interval of other periods."
    return Table([*columns(job="job", default="default", treated="treated"), gains], rows, note=about)


def _by_time(last: "Outcome", job: str) -> "Estimate | None":
    """The change of throughput over the iterations that a job completed treated and by default, online."""
    from fairlane.results.milestones import common

    runs = [last.reached[run].get(job) for run in ("treated", "default")]
    found = common(runs[0], runs[1], warm_up=False) if runs[0] and runs[1] else None
    return found.estimate if found else None


def _by_period(outcomes: "Sequence[Outcome]", job: str) -> "Estimate | None":
    """The change of iterations, where the job was there in the same periods, each a simulation of its own."""
    from fairlane.statistics import ratio_change

    pairs = [(outcome.treated.jobs.get(job), outcome.default and outcome.default.jobs.get(job)) for outcome in outcomes]
    there = [(own, other) for own, other in pairs if own or other]
    if not all(own and other and own.seconds == other.seconds for own, other in there):
        return None
    done = [(own.done, other.done) for own, other in there if own and other]
    return ratio_change([own for own, _ in done], [other for _, other in done], skip=0)


def _total(works: "Iterable[Work]", job: str) -> "JobWork":
    """What a job did in all of these periods, and for how long it was there."""
    from fairlane.controller import JobWork

    parts = [work.jobs[job] for work in works if job in work.jobs]
    done, seconds = sum(part.done for part in parts), sum(part.seconds or 0.0 for part in parts)
    return JobWork((done,), compute=(), waiting=(), seconds=seconds)
