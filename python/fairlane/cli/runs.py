"""Simulating and looking at what came out: run, check, plot, query."""

from pathlib import Path
from typing import Annotated

import typer

from fairlane.cli.command import AsJson, Quiet, Seed, add, out_option, print_json
from fairlane.cli.exit import ExitCode
from fairlane.cli.options import AllowCode, Assignments, ScenarioFile
from fairlane.wording import plural

__all__ = ["add_to"]

ResultsFolder = Annotated[
    Path, typer.Argument(metavar="RUN", help="The folder of a run, a study or a sweep of loads.", show_default=False)
]
"""A folder of results."""


def run(
    scenario: ScenarioFile,
    assignments: Assignments = None,
    seed: Seed = None,
    duration: Annotated[str | None, typer.Option(help='Replace the simulated time, e.g. "60 ms".')] = None,
    out: Annotated[Path | None, out_option("Folder of the run; by default a new one in runs/.", "DIR")] = None,
    allow_code: AllowCode = False,
    isolated: Annotated[
        bool, typer.Option(help="Also simulate each job alone, to compute its throughput change W.")
    ] = True,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> int:
    """Simulate a scenario and show which jobs slow each other down."""
    from fairlane import Scenario, runner
    from fairlane.cli.run_text import print_summary

    loaded = Scenario.load(scenario, set=assignments or (), seed=seed, duration=duration, allow_code=allow_code)
    found = runner.run(loaded, out=out, isolated=isolated, progress=not quiet)
    if as_json:
        tables = {"jobs": found.jobs, "interference": found.interference}
        print_json({"folder": found.folder, **found.meta.model_dump(), **tables})
    elif quiet:
        typer.echo(found.folder)
    else:
        print_summary(found)
    return ExitCode.INTERRUPTED if found.meta.partial else ExitCode.DONE


def check(
    scenario: ScenarioFile,
    assignments: Assignments = None,
    seed: Seed = None,
    allow_code: AllowCode = False,
    as_json: AsJson = False,
) -> None:
    """Read a scenario and report what is wrong with it.

    All problems are reported at once. Nothing is simulated but what calibration takes. Code that the scenario names is
    listed; it runs, and what it does is checked, only with --allow-code.
    """
    from dataclasses import asdict

    from fairlane import Scenario, required_virtual_lanes
    from fairlane.cli.fabric_text import lanes_text, routes_text
    from fairlane.fabric import Fabric
    from fairlane.inputs.code import listing
    from fairlane.slurm import shortened
    from fairlane.workload.registry import files_of

    with listing() as code:
        loaded = Scenario.load(scenario, set=assignments or (), seed=seed, allow_code=allow_code)
        resolved = loaded.decide() if code else loaded.resolve()
    lanes = required_virtual_lanes(loaded.fabric, qos=loaded)
    fabric = Fabric.build(resolved.tables["fabric"])
    names, coverage = fabric.host_names, fabric.coverage
    if as_json:
        jobs = [
            {
                **{key: getattr(job, key) for key in ("name", "workload", "ranks", "hosts")},
                "host_names": [names[host] for host in job.hosts],
            }
            for job in resolved.jobs
        ]
        needs = resolved.estimate
        estimate = needs and {name: getattr(needs, name) for name in ("memory", "seconds", "packet_hops")}
        head = {"scenario": resolved.name, "seed": resolved.seed, "duration_ps": resolved.duration}
        print_json(
            {
                **head,
                "estimate": estimate,
                "virtual_lanes": lanes,
                "coverage": asdict(coverage),
                "jobs": jobs,
                "code": [str(one) for one in code],
                "notes": resolved.notes,
            }
        )
        return
    typer.echo(str(loaded))
    typer.echo(f"  {lanes_text(lanes)}")
    typer.echo(f"  routes: {routes_text(coverage)}")
    for words in coverage.warnings:
        typer.echo(f"  warning: {words}")
    if resolved.estimate is not None:
        typer.echo(f"  {resolved.estimate}")
    for job in resolved.jobs:
        hosts = shortened(names[host] for host in job.hosts)
        typer.echo(f"  {job.name}: {plural(job.ranks, 'rank')} of {job.workload} on {hosts}")
    for one in code:
        typer.echo(f"  names code: {one}; it has not run and is not checked without --allow-code")
    for name in [] if code else files_of(job.workload for job in loaded.jobs):
        typer.echo(f"  runs code: {name}")
    for note in resolved.notes:
        typer.echo(f"  note: {note}")


def plot(run: ResultsFolder, as_json: AsJson = False) -> None:
    """Draw the figures of a run, a study or a sweep of loads again from its tables.

    Prints where they are.
    """
    from fairlane import load
    from fairlane.plot import draw_all

    paths = list(draw_all(load(run)))
    if as_json:
        print_json({"figures": paths})
        return
    for path in paths:
        typer.echo(path)


def query(
    run: ResultsFolder,
    sql: Annotated[
        str,
        typer.Argument(
            metavar="SQL", help="A SELECT over its tables, in a run jobs, ranks, calls, ports, interference and more."
        ),
    ],
    as_json: AsJson = False,
) -> None:
    """Ask the tables of a run, a study or a sweep of loads a question in SQL."""
    from fairlane.cli.run_text import print_frame
    from fairlane.results import query as ask

    found = ask(run, sql)
    if as_json:
        print_json(found)
    else:
        print_frame(found)


def add_to(app: typer.Typer) -> None:
    """Adds these commands."""
    for command in (run, check, plot, query):
        add(app, command)
