"""Looking at where jobs are: place."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Option

from fairlane.cli.command import Answer, Seed, out_option
from fairlane.cli.options import AllowCode, Assignments, ScenarioFile, drawn, report_renamed

if TYPE_CHECKING:
    from fairlane.fabric import Fabric
    from fairlane.fabric.view import Rails


def place(
    scenario: ScenarioFile,
    out: Annotated[Path | None, out_option("Draw it too: .png, .svg, .pdf or .html.")] = None,
    assignments: Assignments = None,
    seed: Seed = None,
    slurm: Annotated[
        bool,
        Option("--slurm", help="Print each job's hosts as a Slurm node list, and nothing else; with --json as JSON."),
    ] = False,
    allow_code: AllowCode = False,
) -> Answer:
    """Show which hosts the jobs of a scenario get, how far apart they are and who shares their links.

    Nothing is simulated. Distances are links between the hosts' switches; a link is shared if packets of another job
    can take it too. For example: fairlane place torus.toml --set placement.name=box -o torus.png
    """
    from fairlane import Scenario
    from fairlane.cli.terminal import parts_of
    from fairlane.fabric import Fabric
    from fairlane.placement import measure
    from fairlane.slurm import compress, slurm_names
    from fairlane.views.placement import view

    loaded = Scenario.load(scenario, set=assignments or (), seed=seed, allow_code=allow_code)
    resolved = loaded.decide()
    fabric = Fabric.build(resolved.tables["fabric"])
    jobs = {job.name: job.hosts for job in resolved.jobs}
    rails = {job.name: job.rails for job in resolved.jobs}
    names = slurm_names(fabric.host_names)
    report_renamed(fabric.host_names, names)
    lists = {name: compress(dict.fromkeys(names[host] for host in hosts)) for name, hosts in jobs.items()}
    if slurm:
        return Answer(lists, (f"{name} {hosts}" for name, hosts in lists.items()))
    rows = {
        name: {**asdict(metrics), **_hosts(fabric, jobs[name], rails[name]), "node_list": lists[name]}
        for name, metrics in measure(fabric, jobs, rails).items()
    }
    shown = view(loaded.name, fabric, jobs, rows)
    return Answer(rows, parts_of(shown, None), files=drawn(shown, out))


def _hosts(fabric: "Fabric", hosts: Sequence[int], rails: "Rails") -> dict[str, list[Any]]:
    """The hosts of ranks with their names, and the names of the switches that they use, each once."""
    from fairlane.placement.metrics import switches_at

    used = switches_at(fabric, list(dict.fromkeys(hosts)), fabric.job_links(hosts, rails))
    leaves = dict.fromkeys(leaf for some in used for leaf in some)
    return {
        "hosts_of_ranks": list(hosts),
        "host_names_of_ranks": [fabric.host_names[host] for host in hosts],
        "switch_names": [fabric.switch_names[leaf] for leaf in leaves if leaf >= 0],
    }
