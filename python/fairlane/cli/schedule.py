"""Schedules of a job log on a fabric, and models of slowdowns for them: schedule, slowdown fit, slowdown show."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from functools import cache, partial
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import Progress
from typer import Argument, Option

from fairlane.cli.command import Answer, Quiet, out_option, write_table
from fairlane.cli.options import AllowCode, Assignments, Parameters, RandomSeed, refused, report, report_renamed
from fairlane.cli.terminal import Part
from fairlane.core.errors import Problem, ScenarioError
from fairlane.inputs import code
from fairlane.inputs.hosts import slurm_names
from fairlane.learn.scheduler.compare import (
    AWARE,
    BLIND,
    CONTIGUOUS,
    Comparison,
    Machine,
    compare_allocators,
    results_of,
)
from fairlane.learn.scheduler.log import LoggedJob, PatternMix, read_log
from fairlane.learn.scheduler.slowdown.forecast import verify as verified
from fairlane.learn.scheduler.slowdown.model import fit_model, load_model
from fairlane.model.fabric.table import FabricTable
from fairlane.model.placement import PlacementPolicy
from fairlane.model.scenario.estimate import machine_cores
from fairlane.results.schedule import ScheduleResults
from fairlane.study.tasks.executor import simulating
from fairlane.study.tasks.pools import Threads
from fairlane.study.tasks.store import Store
from fairlane.views.kinds import FORMATS, view_of, write
from fairlane.views.model import View
from fairlane.views.slowdown import claim_of, model_view

MOST_REPORTED = 20  # lines of a log that are reported one by one


def schedule(
    log: Annotated[Path, Argument(metavar="LOG", help="A job log in the Standard Workload Format, gzipped or not.")],
    slowdown: Annotated[
        str | None,
        Option(
            metavar="MODEL", help="Stretch run times: a model by file or name; fabric and patterns are the model's."
        ),
    ] = None,
    fabric: Annotated[
        str | None,
        Option(
            metavar="NAME|FILE",
            help="A topology, by default torus, or a file as fabric import reads it; other keys of the table: --set.",
        ),
    ] = None,
    assignments: Parameters = None,
    allocator: Annotated[
        list[str] | None,
        Option(
            metavar="NAME[:KEY=VALUE]...",
            help="An allocator, e.g. units:size=4 or file.py:ClassName; can be given many times. By default box (or "
            "domain), linear, and pattern.",
        ),
    ] = None,
    mix: Annotated[Path | None, Option(metavar="FILE", help="Communication patterns by share, a TOML file.")] = None,
    jobs: Annotated[int | None, Option(metavar="N", min=1, help="Only the first N jobs.")] = None,
    load: Annotated[float, Option(min=0.001, help="Arrival-rate factor.")] = 1.0,
    seed: RandomSeed = 1,
    verify: Annotated[
        int | None, Option(metavar="N", min=1, help="Simulate N snapshots of each schedule by packets.")
    ] = None,
    claim: Annotated[
        bool, Option("--claim", help="Judge whether pattern is as fast as box and as full as linear allocation.")
    ] = False,
    out: Annotated[Path | None, out_option("Draw hosts over time: .png, .svg or .pdf; .html for a page.")] = None,
    hours: Annotated[str | None, Option(metavar="FROM:TO", help="Hours to draw; by default the busiest 48.")] = None,
    placed: Annotated[
        Path | None, Option(metavar="FILE", help="Write every job with its Slurm node list as CSV.")
    ] = None,
    results: Annotated[
        Path | None,
        Option(metavar="DIR", help="Store the schedules as a new folder of results, for fairlane report and query."),
    ] = None,
    allow_code: AllowCode = False,
    strict: Annotated[bool, Option("--strict", help="Stop at lines that cannot be used.")] = False,
    quiet: Quiet = False,
) -> Answer:
    """Replay a job log with EASY backfilling, and compare allocators.

    Run times are those of the log, or with --slowdown stretch as hosts and neighbours make them. For example: fairlane
    schedule log.swf.gz --slowdown torus-128 --allocator box --allocator pattern -o gantt.png
    """
    with code.allow_code(allow_code):
        machine = _machine(slowdown, fabric, assignments or (), mix, seed)
        allocators = machine.allocators(allocator or machine.usual(claim=claim))
    _check(machine, allocators, verify=verify, claim=claim)
    window = _window(hours)
    _check_files(out, placed, results)
    arriving = _arriving(log, machine, allocators, most=jobs, load=load, seed=seed, strict=strict)
    compared = _compared(arriving, machine, allocators, seed, quiet=quiet)
    checked = {}
    if verify and machine.forecast:
        checked = {name: verified(check, machine.forecast, verify, seed) for name, check in compared.schedules.items()}
    on: dict[str, Any] = {"hosts": machine.fabric.hosts, "fabric": machine.spec}
    made = results_of(compared, log, machine.kind_of, checked, load=load, seed=seed, model=slowdown, **on)
    files = []
    if placed:
        names = slurm_names(machine.fabric.host_names)
        report_renamed(machine.fabric.host_names, names)
        write_table(compared.placements(names), placed)
        files.append(placed)
    _check_window(made, window)
    view = cache(partial(view_of, [made], window=window))
    if out:
        files.append(_draw(view(), out))
    if results:
        made.save(results)
        files.append(results)
    for file in files:
        typer.echo(file, err=True)
    rows = {name: asdict(row) for name, row in compared.metrics.items()}
    for name, check in checked.items():
        rows[name]["verified"] = {"snapshots": check.snapshots, "error": check.error, "jobs": check.jobs}
    return Answer(rows, _text(view, claim_of(rows) if claim else ()))


def fit_slowdown(
    mix: Annotated[Path, Argument(metavar="MIX", help="Patterns with their workloads, a TOML file.")],
    fabric: Annotated[str, Option(help="Name of a topology; its parameters are given by --set.")] = "torus",
    assignments: Assignments = None,
    snapshots: Annotated[int, Option(min=5, help="How many snapshots to simulate.")] = 200,
    seed: RandomSeed = 1,
    out: Annotated[Path, out_option("The model's file, TOML.")] = Path("slowdown.toml"),
    keep: Annotated[Path | None, Option(metavar="DIR", help="Store simulations in DIR, and use those stored.")] = None,
    workers: Annotated[int | None, Option(min=1, help="Threads; by default one for each core.")] = None,
    allow_code: AllowCode = False,
    quiet: Quiet = False,
) -> Answer:
    """Simulate random snapshots of a machine packet by packet, and fit a model of slowdowns to them.

    For example: fairlane slowdown fit mix.toml --fabric torus --set sides=[8,4,4] -o torus.toml
    """
    table = FabricTable.read({"topology": fabric}, assignments or ())
    with code.allow_code(allow_code):
        patterns = PatternMix.from_file(mix)
    store = (
        None
        if keep is None
        else Store.kept("fit", keep, {"fabric": fabric, "seed": seed}, ["fairlane.study.shipped.slowdowns.study"])
    )
    pool = Threads(workers or machine_cores())
    with simulating(pool, store, progress=not quiet, attempts=1, first_failure_ends=True) as executor:
        model = fit_model(table, patterns, snapshots=snapshots, seed=seed, executor=executor)
    model.save(out)
    return Answer(model.model_dump(mode="json"), [model_view(model)], files=[f"written {out}"])


def show_slowdown(
    model: Annotated[str, Argument(metavar="MODEL", help="A model's file, or the name of one in the package.")],
) -> Answer:
    """What a model predicts, and its error on held-out snapshots."""
    with code.listing():
        loaded = load_model(model)
    return Answer(loaded.model_dump(mode="json"), [model_view(loaded)])


def _machine(
    slowdown: str | None, fabric: str | None, assignments: Sequence[str], mix: Path | None, seed: int
) -> Machine:
    if slowdown is None:
        return Machine.of_fabric(fabric, assignments, mix, seed)
    for option, given in (("--fabric", fabric), ("--set", ", ".join(assignments)), ("--mix", mix)):
        if given:
            message = "comes from the model: fit another with fairlane slowdown fit"
            raise refused(option, message, str(given), "not together with --slowdown")
    return Machine.of_model(slowdown, seed)


def _check(machine: Machine, allocators: Mapping[str, PlacementPolicy], *, verify: int | None, claim: bool) -> None:
    """Options that need each other."""
    if verify and not machine.forecast:
        raise refused("--verify", "there is no model to verify", verify, "together with --slowdown")
    if not claim:
        return
    if not machine.forecast:
        raise refused("--claim", "is about slowdowns", allowed="together with --slowdown")
    missing = [name for name in (CONTIGUOUS, BLIND, AWARE) if name not in allocators]
    if missing:
        raise refused("--allocator", f"--claim needs {', '.join(missing)} too", ", ".join(allocators))


def _window(hours: str | None) -> tuple[float, float] | None:
    """The instants between which the picture shows the schedules, s."""
    if hours is None:
        return None
    first, _, last = hours.partition(":")
    try:
        window = float(first) * 3600, float(last) * 3600
    except ValueError:
        window = 0.0, 0.0
    if not 0 <= window[0] < window[1]:
        raise refused("--hours", "no span of time", hours, "FROM:TO in hours, as 24:72")
    return window


def _check_files(out: Path | None, placed: Path | None, results: Path | None) -> None:
    """Replays take a while: what cannot be written afterwards is reported before."""
    if out and out.suffix.lower() not in FORMATS:
        raise refused("--out", "unknown picture format", str(out), ", ".join(FORMATS))
    if results and results.exists():
        raise refused("--results", "directory exists", str(results), "a new folder")
    for file in (out, placed):
        if file and not file.parent.is_dir():
            raise ScenarioError(Problem("", "cannot be written: there is no such folder", file=str(file)))


def _arriving(
    log: Path,
    machine: Machine,
    allocators: Mapping[str, PlacementPolicy],
    *,
    most: int | None,
    load: float,
    seed: int,
    strict: bool,
) -> list[LoggedJob]:
    """The jobs as they come; lines that cannot be used, and jobs that an allocator refuses, are named."""
    read = read_log(log, hosts=machine.fabric.hosts, strict=strict, max_jobs=most)
    report(*read.notes)
    _report_problems("left out", read.problems)
    for name, allocator in allocators.items():
        refused = machine.refused(read.jobs, allocator, seed, log)
        if strict and refused:
            raise ScenarioError(refused)
        _report_problems(f"refused by {name}", refused)
    return [replace(job, submit=round(job.submit / load)) for job in read.jobs]


def _report_problems(what: str, problems: Sequence[Problem]) -> None:
    for problem in problems[:MOST_REPORTED]:
        report(f"{what}: {problem}")
    if len(problems) > MOST_REPORTED:
        report(f"{what}: {len(problems) - MOST_REPORTED} more; --strict reports all")


def _compared(
    jobs: Sequence[LoggedJob],
    machine: Machine,
    allocators: Mapping[str, PlacementPolicy],
    seed: int,
    *,
    quiet: bool,
) -> Comparison:
    """All replays, with a bar for each on a terminal."""
    with Progress(console=Console(stderr=True), transient=True, disable=quiet) as shown:
        bars = {name: shown.add_task(name, total=len(jobs)) for name in allocators}
        return compare_allocators(
            jobs,
            machine.fabric,
            allocators,
            seed=seed,
            communication=machine.patterns,
            forecast=machine.forecast,
            progress=lambda name, done: shown.update(bars[name], completed=done),
        )


def _check_window(made: ScheduleResults, window: tuple[float, float] | None) -> None:
    end = max(made.placed["end"].to_list(), default=0.0)
    if window and window[0] >= end:
        message = f"nothing to draw: the last job ends after {end / 3600:.1f} hours"
        raise refused("--hours", message, f"{window[0] / 3600:g}:{window[1] / 3600:g}")


def _draw(shown: View, out: Path) -> Path:
    """Draws hosts over time; an HTML file has the whole page."""
    charts = shown.pictures.get("gantt")
    if charts is None:
        raise refused("--out", "nothing to draw: no job ran", str(out))
    return write(shown if out.suffix.lower() == ".html" else replace(shown, parts=charts), out)


def _text(view: Callable[[], View], claim: Iterable[str]) -> Iterator[Part]:
    """Yield the parts of the text; the view is not made where it is not shown."""
    yield view()
    yield from claim
