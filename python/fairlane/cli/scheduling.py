"""Replaying a job log on a fabric: schedule."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Argument, Option

from fairlane.cli.command import Answer, Quiet, out_option, write_table
from fairlane.cli.options import AllowCode, Parameters, RandomSeed, refused, report
from fairlane.errors import Problem, ScenarioError

if TYPE_CHECKING:
    from fairlane.cli.terminal import Part
    from fairlane.fabric import Fabric
    from fairlane.placement import Communication, PlacementPolicy
    from fairlane.results.schedule import ScheduleResults
    from fairlane.scheduler import Comparison, Forecast, LoggedJob, Verification
    from fairlane.views.model import View

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
    from fairlane.inputs import code

    with code.allow_code(allow_code):
        machine = _machine(slowdown, fabric, assignments, mix, seed)
        strategies = _strategies(allocator or _usual(machine, claim=claim), machine)
    _check(machine, strategies, verify=verify, claim=claim)
    window = _window(hours)
    _check_files(out, placed, results)
    arriving = _arriving(log, machine, strategies, most=jobs, load=load, seed=seed, strict=strict)
    found = _compared(arriving, machine, strategies, seed, quiet=quiet)
    checked = _verified(found, machine.forecast, verify, seed) if verify and machine.forecast else {}
    made = _results(found, machine, log, checked, load=load, seed=seed, model=slowdown)
    files = []
    if placed:
        from fairlane.cli.options import report_renamed
        from fairlane.slurm import slurm_names

        names = slurm_names(machine.fabric.host_names)
        report_renamed(machine.fabric.host_names, names)
        write_table(found.placements(names), placed)
        files.append(placed)
    _check_window(made, window)
    view = cache(lambda: _view(made, window))
    if out:
        files.append(_draw(view(), out))
    if results:
        made.save(results)
        files.append(results)
    for file in files:
        typer.echo(file, err=True)
    return Answer(partial(_rows, found, checked), _text(view, found, claim=claim))


@dataclass(frozen=True)
class _Machine:
    """What jobs run on, and what is known about them."""

    fabric: "Fabric"
    spec: "dict[str, Any]"
    """The fabric as the simulator takes it."""
    patterns: "Callable[[int], Communication] | None"
    forecast: "Forecast | None"

    @property
    def kind_of(self) -> "Callable[[int], str] | None":
        """The pattern of a job by its number."""
        patterns = self.patterns
        return (lambda number: patterns(number).kind) if patterns else None


def _machine(
    slowdown: str | None, fabric: str | None, assignments: list[str] | None, mix: Path | None, seed: int
) -> _Machine:
    from fairlane.fabric import Fabric, read_wiring
    from fairlane.fabric.table import FabricTable
    from fairlane.scheduler import Forecast, PatternMix, load_model

    if slowdown is None:
        if fabric is None and not assignments:
            allowed = 'as --set "sides=[8,4,4]", or --slowdown'
            raise refused("--fabric", "missing: what the jobs run on", allowed=allowed)
        if fabric is not None and Path(fabric).is_file():
            table = read_wiring(fabric).table()
        elif fabric is not None and Path(fabric).suffix:
            raise refused("--fabric", "there is no such file", fabric, "a file of a fabric, or the name of a topology")
        else:
            table = {"topology": fabric or "torus"}
        spec = FabricTable.read(table, assignments or ()).spec
        patterns = PatternMix.from_file(mix) if mix else None
        known = (lambda number: patterns.of(number, seed)) if patterns else None
        return _Machine(Fabric.build(spec), spec, known, None)
    for option, given in (("--fabric", fabric), ("--set", assignments), ("--mix", mix)):
        if given:
            words = "comes from the model: fit another with fairlane slowdown fit"
            value = ", ".join(given) if isinstance(given, list) else str(given)
            raise refused(option, words, value, "not together with --slowdown")
    forecast = Forecast(load_model(slowdown), seed)
    return _Machine(forecast.fabric, forecast.model.table.spec, forecast.communication, forecast)


def _usual(machine: _Machine, *, claim: bool) -> list[str]:
    """The allocators if none is named: contiguous, any free hosts, and by pattern if these are known."""
    from fairlane.placement.grid import sides_of

    contiguous = "domain" if sides_of(machine.fabric) is None else "box"
    return [contiguous, "linear", *(["pattern"] if claim or machine.patterns else [])]


def _strategies(texts: Sequence[str], machine: _Machine) -> "dict[str, PlacementPolicy]":
    """The allocators by what the user calls them."""
    from fairlane.inputs.problems import refusing
    from fairlane.placement import ALLOCATORS

    strategies = {}
    for text in texts:
        first, *rest = text.split(":")
        own = 1 if first.endswith(".py") else 0  # file.py:ClassName
        name = ":".join([first, *rest[:own]])
        with refusing("allocator"):
            kind = ALLOCATORS.find(name)
        with refusing(f"allocator.{name}"):
            strategies[text] = kind.read({}, rest[own:])
            strategies[text].check(machine.fabric, [1])
    return strategies


def _check(machine: _Machine, strategies: "Mapping[str, PlacementPolicy]", *, verify: int | None, claim: bool) -> None:
    """Options that need each other."""
    from fairlane.scheduler.compare import AWARE, BLIND, CONTIGUOUS

    if verify and not machine.forecast:
        raise refused("--verify", "there is no model to verify", verify, "together with --slowdown")
    if not claim:
        return
    if not machine.forecast:
        raise refused("--claim", "is about slowdowns", allowed="together with --slowdown")
    missing = [name for name in (CONTIGUOUS, BLIND, AWARE) if name not in strategies]
    if missing:
        raise refused("--allocator", f"--claim needs {', '.join(missing)} too", ", ".join(strategies))


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
    from fairlane.views.files import FORMATS

    if out and out.suffix.lower() not in FORMATS:
        raise refused("--out", "unknown picture format", str(out), ", ".join(FORMATS))
    if results and results.exists():
        raise refused("--results", "directory exists", str(results), "a new folder")
    for file in (out, placed):
        if file and not file.parent.is_dir():
            raise ScenarioError(Problem("", "cannot be written: there is no such folder", file=str(file)))


def _arriving(
    log: Path,
    machine: _Machine,
    strategies: "Mapping[str, PlacementPolicy]",
    *,
    most: int | None,
    load: float,
    seed: int,
    strict: bool,
) -> "list[LoggedJob]":
    """The jobs as they come; lines that cannot be used, and jobs that an allocator refuses, are named."""
    from fairlane.scheduler import read_log, refusals

    read = read_log(log, hosts=machine.fabric.hosts, strict=strict, max_jobs=most)
    for note in read.notes:
        report(note)
    _report_problems("left out", read.problems)
    for name, one in strategies.items():
        words = f"gets no hosts even on the empty machine: it wants {one.wanted()}"
        refused = [
            Problem("processors", f"job {job.number} {words}", job.hosts).at(str(log), job.line)
            for job in refusals(read.jobs, machine.fabric, one, seed=seed, communication=machine.patterns)
        ]
        if strict and refused:
            raise ScenarioError(refused)
        _report_problems(f"refused by {name}", refused)
    return [replace(job, submit=round(job.submit / load)) for job in read.jobs]


def _report_problems(what: str, problems: "Sequence[Problem]") -> None:
    for problem in problems[:MOST_REPORTED]:
        report(f"{what}: {problem}")
    if len(problems) > MOST_REPORTED:
        report(f"{what}: {len(problems) - MOST_REPORTED} more; --strict reports all")


def _compared(
    jobs: "Sequence[LoggedJob]",
    machine: _Machine,
    strategies: "Mapping[str, PlacementPolicy]",
    seed: int,
    *,
    quiet: bool,
) -> "Comparison":
    """All replays, with a bar for each on a terminal."""
    from rich.console import Console
    from rich.progress import Progress

    from fairlane.scheduler import compare_allocators

    with Progress(console=Console(stderr=True), transient=True, disable=quiet) as shown:
        bars = {name: shown.add_task(name, total=len(jobs)) for name in strategies}
        return compare_allocators(
            jobs,
            machine.fabric,
            strategies,
            seed=seed,
            communication=machine.patterns,
            forecast=machine.forecast,
            progress=lambda name, done: shown.update(bars[name], completed=done),
        )


def _verified(found: "Comparison", forecast: "Forecast", snapshots: int, seed: int) -> "dict[str, Verification]":
    from fairlane.scheduler import verify

    return {name: verify(one, forecast, snapshots, seed) for name, one in found.schedules.items()}


def _rows(found: "Comparison", checked: "Mapping[str, Verification]") -> dict[str, dict[str, Any]]:
    rows = {name: asdict(row) for name, row in found.metrics.items()}
    for name, one in checked.items():
        rows[name]["verified"] = {"snapshots": one.snapshots, "error": one.error, "jobs": one.jobs}
    return rows


def _text(view: "Callable[[], View]", found: "Comparison", *, claim: bool) -> "Iterator[Part]":
    from fairlane.cli.terminal import parts_of

    yield from parts_of(view(), None)
    if claim:
        yield from _claim(found)


def _claim(found: "Comparison") -> Iterator[str]:
    """Whether pattern-aware allocation is as fast as contiguous, and as full as non-contiguous allocation."""
    from fairlane.scheduler.compare import pattern_aware_findings

    findings = list(pattern_aware_findings({name: asdict(row) for name, row in found.metrics.items()}))
    holds = "holds" if all(held for _, held in findings) else "does not hold"
    yield f"\npattern-aware allocation as fast as contiguous and as full as non-contiguous: {holds}"
    for words, held in findings:
        yield f"  {words}: {'yes' if held else 'no'}"


def _results(
    found: "Comparison", machine: _Machine, log: Path, checked: "Mapping[str, Verification]", **facts: Any
) -> "ScheduleResults":
    from fairlane.scheduler.storing import results_of

    facts |= {"hosts": machine.fabric.hosts, "fabric": machine.spec}
    return results_of(found, log, machine.kind_of, checked, **facts)


def _check_window(made: "ScheduleResults", window: tuple[float, float] | None) -> None:
    end = max(made.placed["end"].to_list(), default=0.0)
    if window and window[0] >= end:
        words = f"nothing to draw: the last job ends after {end / 3600:.1f} hours"
        raise refused("--hours", words, f"{window[0] / 3600:g}:{window[1] / 3600:g}")


def _view(made: "ScheduleResults", window: tuple[float, float] | None) -> "View":
    from fairlane.views.kinds import view_of

    return view_of([made], window=window)


def _draw(shown: "View", out: Path) -> Path:
    """Draws hosts over time; an HTML file has the whole page."""
    from fairlane.views.files import write

    charts = shown.pictures.get("gantt")
    if charts is None:
        raise refused("--out", "nothing to draw: no job ran", str(out))
    return write(shown if out.suffix.lower() == ".html" else replace(shown, parts=charts), out)
