"""Simulating and looking at what came out: run, check, plot, query."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from typer import Argument, Option

from fairlane.cli.command import Answer, ExitCode, Quiet, Seed, completing, out_option
from fairlane.cli.options import AllowCode, Assignments, ScenarioFile, Threads, folder_for, threads_of
from fairlane.wording import plural

if TYPE_CHECKING:
    import polars as pl

    from fairlane import Run
    from fairlane.cli.terminal import Part
    from fairlane.scenario import Resolved, Scenario

ResultsFolder = Annotated[Path, Argument(metavar="RUN", help="The folder of a run, a study or a sweep of loads.")]
"""A folder of results."""


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
    from datetime import datetime

    from fairlane import Scenario, runner
    from fairlane.cli.options import stored
    from fairlane.cli.terminal import parts_of
    from fairlane.results.store import new_folder
    from fairlane.views.run import view

    loaded = Scenario.load(scenario, set=assignments or (), seed=seed, duration=duration, allow_code=allow_code)
    folder = new_folder(loaded.name, datetime.now().astimezone(), out)
    most = threads_of(threads)
    found = runner.run(
        loaded,
        out=folder,
        isolated=isolated,
        leave_one_out=leave_one_out or None,
        threads=most,
        progress=not quiet,
        figures=True,
        live=live,
    )
    tables = {"jobs": found.jobs, "interference": found.interference}
    tables |= {} if found.lost_time is None else {"lost_time": found.lost_time}
    return Answer(
        {"folder": found.folder, **found.meta.model_dump(), **tables},
        [*parts_of(view({"": found}, charts=False), None), *_time_spent(found), *stored(found.folder)],
        found.folder,
        code=ExitCode.INTERRUPTED if found.meta.partial else ExitCode.DONE,
    )


def _time_spent(run: "Run") -> Iterator["Part"]:
    """Where the wall time went, and the engine's speed in the co-run."""
    from rich.text import Text

    from fairlane.wording import wall_time

    spent = run.meta.timings
    if spent is None:
        return
    parts = {"set-up": spent.set_up_s, "calibration": spent.calibration_s, "simulation": spent.simulation_s}
    more = {"tables": spent.writing_s, "figures": spent.figures_s}
    known = parts | {name: value for name, value in more.items() if value is not None}
    each = ", ".join(f"{name} {wall_time(value)}" for name, value in known.items())
    yield Text(f"Wall time {wall_time(sum(known.values()))}: {each}", style="dim")
    if spent.engine_s:
        speed = f"{run.meta.packet_hops / spent.engine_s / 1e6:.1f} M packet-hops/s"
        yield Text(f"Engine, co-run {wall_time(spent.engine_s)}: {speed}", style="dim")


def check(
    scenario: ScenarioFile, assignments: Assignments = None, seed: Seed = None, allow_code: AllowCode = False
) -> Answer:
    """Read a scenario or a study and report what is wrong with it.

    All problems are reported at once. Of a study also what it takes (simulations, processor time, memory) and which of
    its points are the same simulation. Nothing is simulated but what calibration takes. Code that the scenario names is
    listed; it runs, and what it does is checked, only with --allow-code.
    """
    from dataclasses import asdict

    from fairlane import Scenario, required_virtual_lanes
    from fairlane.cli.studies import check_study, is_study
    from fairlane.fabric import Fabric
    from fairlane.inputs.code import listing
    from fairlane.inputs.registry import used

    if is_study(scenario):
        return check_study(scenario, assignments, seed, allow_code=allow_code)
    with listing() as code, used() as plugins:
        loaded = Scenario.load(scenario, set=assignments or (), seed=seed, allow_code=allow_code)
        resolved = loaded.decide() if code else loaded.resolve()
    fabric = Fabric.build(resolved.tables["fabric"])
    needs = resolved.estimate
    facts = {
        "scenario": resolved.name,
        "seed": resolved.seed,
        "duration_ps": resolved.duration,
        "estimate": needs and {name: getattr(needs, name) for name in ("memory", "seconds", "packet_hops")},
        "model": loaded.model and asdict(loaded.applied),
        "virtual_lanes": required_virtual_lanes(loaded.fabric, qos=loaded),
        "coverage": fabric.coverage,
        "jobs": [
            {
                **{key: getattr(job, key) for key in ("name", "workload", "ranks", "hosts")},
                "host_names": [fabric.host_names[host] for host in job.hosts],
            }
            for job in resolved.jobs
        ],
        "code": [str(one) for one in code],
        "plugins": plugins,
        "notes": resolved.notes,
    }
    return Answer(facts, _checked(loaded, resolved, facts))


def _checked(loaded: "Scenario", resolved: "Resolved", facts: dict[str, Any]) -> Iterator[str]:
    """What ``check`` prints: the scenario, and whatever somebody should know before a run."""
    from fairlane.slurm import shortened
    from fairlane.views.fabric import lanes_text, routes_text

    yield str(loaded)
    yield f"  {lanes_text(facts['virtual_lanes'])}"
    yield f"  routes: {routes_text(facts['coverage'])}"
    yield from (f"  warning: {words}" for words in facts["coverage"].warnings)
    if loaded.model:
        keys = (f"{key} = {value}" for key, value in loaded.applied.keys.items())
        yield f"  model {loaded.model} sets: {', '.join(keys)}"
        yield from (f"  unlike {loaded.model}: {words}" for words in loaded.applied.differs)
    if resolved.estimate is not None:
        yield f"  {resolved.estimate}"
    for job in facts["jobs"]:
        yield f"  {job['name']}: {plural(job['ranks'], 'rank')} of {job['workload']} on {shortened(job['host_names'])}"
    waiting = "it has not run and is not checked without --allow-code"
    yield from (f"  names code: {one}; {waiting}" for one in facts["code"])
    yield from (f"  runs code: {one}" for one in facts["plugins"])
    yield from (f"  note: {note}" for note in resolved.notes)


def plot(
    results: Annotated[
        list[Path],
        Argument(metavar="RESULTS...", help="The folder of results; several of a kind are drawn in one figure."),
    ],
    figure: Annotated[
        list[str] | None,
        Option(
            metavar="NAME",
            help="Only this figure (see fairlane list figures), or file.py:function; can be given many times.",
            autocompletion=completing("fairlane.cli.listing:entries_of", "figures"),
        ),
    ] = None,
    theme: Annotated[
        Literal["light", "dark"], Option(help="Dark ink on white, or light ink on a dark ground.")
    ] = "light",
    transparent: Annotated[bool, Option("--transparent", help="Leave out the background.")] = False,
    format: Annotated[Literal["png", "svg", "pdf"], Option(help="Format of the files.")] = "png",
    out: Annotated[
        Path | None, out_option("Folder of the files; by default that of the results, of several this one.", "DIR")
    ] = None,
    allow_code: AllowCode = False,
) -> Answer:
    """Draw the figures of results again from their tables.

    Prints where they are. Several results of a kind, as load sweeps, are drawn in one figure. For example: fairlane
    plot runs/minimal runs/valiant runs/ugal --format svg --theme dark
    """
    from fairlane import load
    from fairlane.inputs import code
    from fairlane.views import kinds as views
    from fairlane.views.look import Look

    look = Look(theme, transparent, format)
    every = [load(folder) for folder in results]
    several, first = len(every) > 1, every[0]
    viewed = [name for name in figure or () if several or views.has_picture(first, name)]
    others = [name for name in figure or () if name not in viewed]
    with folder_for(out), code.allow_code(allow_code):
        paths = []
        if viewed or not others:
            paths += views.draw(every, viewed, look, out)
        if others:
            from fairlane.plot import draw_figures

            paths += draw_figures(first, others, look, out)
    return Answer({"figures": paths}, map(str, paths))


def query(
    run: ResultsFolder,
    sql: Annotated[
        str,
        Argument(
            metavar="SQL", help="A SELECT over its tables, in a run jobs, ranks, calls, ports, interference and more."
        ),
    ],
) -> Answer:
    """Ask the tables of a run, a study or a sweep of loads a question in SQL."""
    from fairlane import query as ask

    found = ask(run, sql)
    return Answer(found, frame_parts(found, on_terminal=sys.stdout.isatty()))


def frame_parts(frame: "pl.DataFrame", *, on_terminal: bool) -> Iterator["Part"]:
    """The answer to a query: a table on a terminal, CSV where the output goes elsewhere."""
    import polars as pl

    from fairlane.views.tables import Column, Table

    if on_terminal:
        numeric = {name: kind.is_numeric() for name, kind in frame.schema.items()}
        yield Table([Column(name, name, _value, left=not right) for name, right in numeric.items()], frame.to_dicts())
        return
    nested = [name for name, kind in frame.schema.items() if kind.is_nested()]  # CSV has neither lists nor records
    texts = [[None if value is None else str(value) for value in frame[name].to_list()] for name in nested]
    flat = [pl.Series(name, text, pl.String) for name, text in zip(nested, texts, strict=True)]
    yield frame.with_columns(flat).write_csv().removesuffix("\n")


def _value(value: object) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)
