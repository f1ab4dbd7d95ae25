"""Looking at where jobs are: place."""

import json
from pathlib import Path
from typing import Annotated

import typer

from fairlane.cli.command import Seed, add, out_option
from fairlane.cli.options import AllowCode, Assignments, ScenarioFile

__all__ = ["add_to"]


def place(
    scenario: ScenarioFile,
    out: Annotated[Path | None, out_option("Draw it too: .png, .svg or .pdf.")] = None,
    assignments: Assignments = None,
    seed: Seed = None,
    slurm: Annotated[
        bool,
        typer.Option(
            "--slurm", help="Print each job's hosts as a Slurm node list, and nothing else; with --json as JSON."
        ),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, with the host of each rank.")] = False,
    allow_code: AllowCode = False,
) -> None:
    """Show which hosts the jobs of a scenario get, how far apart they are and who shares their links.

    Nothing is simulated. Distances are links between the hosts' switches; a link is shared if packets of another job
    can take it too. For example: fairlane place torus.toml --set placement.strategy=box -o torus.png
    """
    from fairlane import Scenario
    from fairlane.cli.placing_text import metrics_table
    from fairlane.fabric import Fabric
    from fairlane.inputs.problems import Problems
    from fairlane.placement import measure
    from fairlane.scenario.resolve import decide
    from fairlane.slurm import compress, host_names

    loaded = Scenario.load(scenario, set=assignments or (), seed=seed, allow_code=allow_code)
    try:
        resolved = decide(loaded)
    except Problems as problems:
        raise loaded.error(problems) from None
    fabric = Fabric.build(resolved.tables["fabric"])
    jobs = {job.name: job.hosts for job in resolved.jobs}
    names = host_names(resolved.tables["fabric"])
    lists = {name: compress(dict.fromkeys(names[host] for host in hosts)) for name, hosts in jobs.items()}
    if slurm and as_json:
        typer.echo(json.dumps(lists, indent=2))
        return
    if slurm:
        for name, hosts in lists.items():
            typer.echo(f"{name} {hosts}")
        return
    found = measure(fabric, jobs)
    if as_json:
        from dataclasses import asdict

        rows = {
            name: {**asdict(metrics), "hosts_of_ranks": list(jobs[name]), "node_list": lists[name]}
            for name, metrics in found.items()
        }
        typer.echo(json.dumps(rows, indent=2))
    else:
        from fairlane.results.summary import console_for_tables

        console_for_tables().print(metrics_table(found))
    if out:
        from fairlane.plot import placement
        from fairlane.plot.files import write

        busy = len({host for hosts in jobs.values() for host in hosts})
        title = f"{loaded.name}: {len(jobs)} jobs on {busy} of {fabric.hosts} hosts"
        typer.echo(write(lambda: placement.figure(fabric, jobs, title), out), err=as_json)


def add_to(app: typer.Typer) -> None:
    """Adds this command."""
    add(app, place)
