"""Replaying a job log on a fabric: schedule."""

import json
from pathlib import Path
from typing import Annotated

import typer

__all__ = ["add_to"]


def schedule(
    log: Annotated[
        Path, typer.Argument(metavar="LOG", help="A job log in the Standard Workload Format, gzipped or not.")
    ],
    fabric: Annotated[str, typer.Option(help="Name of a topology; its parameters come by --set.")] = "torus",
    assignments: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="A parameter of the topology.")
    ] = None,
    allocator: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME[:KEY=VALUE]...", help="A placement strategy, as box or units:size=4; several."),
    ] = None,
    mix: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Communication patterns of the jobs by share, a TOML file.")
    ] = None,
    jobs: Annotated[int | None, typer.Option(min=1, help="Only the first so many jobs.")] = None,
    load: Annotated[float, typer.Option(min=0.001, help="Jobs come this many times as fast.")] = 1.0,
    seed: Annotated[int, typer.Option(min=0, help="Seed of random choices.")] = 1,
    strict: Annotated[bool, typer.Option("--strict", help="Stop at lines that cannot be used.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Replay a job log with EASY backfilling, and compare allocators.

    Run times are those of the log: what allocations do to them is not in it. For example: fairlane schedule log.swf.gz
    --fabric torus --set sides=[8,4,4] --allocator box --allocator pattern --mix patterns.toml
    """
    from dataclasses import asdict, replace

    from fairlane.cli.scheduling_text import schedule_table
    from fairlane.fabric import Fabric
    from fairlane.inputs.problems import Problems
    from fairlane.results.summary import console_for_tables
    from fairlane.scenario.models import FabricTable, Placement
    from fairlane.scenario.resolve import fabric_spec
    from fairlane.scenario.scenario import read_table
    from fairlane.scheduler import metrics_of, read_log, read_mix, replay

    built = Fabric.build(fabric_spec(read_table(FabricTable, {"topology": fabric}, assignments or ())))
    patterns = read_mix(mix) if mix else None
    strategies = {}
    for text in allocator or ["box", "linear"]:
        name, *own = text.split(":")
        found = read_table(Placement, {"strategy": name}, own).allocator
        if found is None:
            from fairlane.errors import Problem, ScenarioError

            raise ScenarioError(Problem("allocator", "a list of hosts allocates nothing", text))
        try:
            found.check(built, [1])
        except Problems as problems:
            from fairlane.errors import ScenarioError

            raise ScenarioError(problem.under(f"allocator.{name}") for problem in problems.problems) from None
        strategies[text] = found
    read = read_log(log, hosts=built.hosts, strict=strict, most=jobs)
    for problem in read.problems:
        typer.echo(f"fairlane: left out: {problem}", err=True)
    arriving = [replace(job, submit=round(job.submit / load)) for job in read.jobs]
    rows = {}
    for name, strategy in strategies.items():
        communication = (lambda number: patterns.of(number, seed)) if patterns else None
        rows[name] = metrics_of(replay(arriving, built, strategy, seed=seed, communication=communication), built.hosts)
    if as_json:
        typer.echo(json.dumps({name: asdict(row) for name, row in rows.items()}, indent=2))
    else:
        console_for_tables().print(schedule_table(rows))


def add_to(app: typer.Typer) -> None:
    """Adds this command."""
    app.command()(schedule)
