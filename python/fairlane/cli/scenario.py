"""Scenarios before they are simulated: init, check, place."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

from typer import Argument, Option

from fairlane import Scenario, required_virtual_lanes
from fairlane.cli.command import Answer, Seed, out_option
from fairlane.cli.options import AllowCode, Assignments, ScenarioFile, refused, report, report_renamed
from fairlane.inputs.code import listing
from fairlane.inputs.document import Document
from fairlane.inputs.hosts import compress, expand, slurm_names
from fairlane.inputs.registry import used
from fairlane.inputs.slurm_jobs import read_job_list
from fairlane.model.fabric.graph import Rails
from fairlane.model.fabric.reader import read_wiring
from fairlane.model.fabric.view import Fabric
from fairlane.model.placement import measure
from fairlane.model.placement.metrics import switches_at
from fairlane.model.scenario.starter import Choice, starter
from fairlane.views import lines as views


def init(
    fabric: Annotated[
        Path, Argument(metavar="FABRIC", help="The fabric, as fabric import reads it, e.g. output of ibnetdiscover.")
    ],
    jobs: Annotated[
        Path | None,
        Argument(
            metavar="JOBS",
            help="The jobs that run: output of squeue, squeue --json or sacct. By default two jobs on some hosts.",
        ),
    ] = None,
    out: Annotated[Path, out_option("The scenario; the fabric is written beside it.")] = Path("cluster.toml"),
    exclude: Annotated[
        list[str] | None,
        Option(
            metavar="PATTERN",
            help="No jobs on these hosts: a pattern of the shell, as 'login*', or a list; can be given many times.",
        ),
    ] = None,
    hosts: Annotated[
        str | None,
        Option(metavar="LIST", help="Jobs on these hosts only: a partition's, from sinfo -h -p NAME -o %N."),
    ] = None,
    partition: Annotated[
        list[str] | None, Option(metavar="NAME", help="Only jobs of this partition; can be given many times.")
    ] = None,
    workload: Annotated[
        list[str] | None,
        Option(metavar="PATTERN=NAME", help="A workload for jobs by name, e.g. 'cfd*=halo3d'; the first that fits."),
    ] = None,
    ranks_per_host: Annotated[int, Option("--ranks-per-host", min=1, help="Ranks of each job on a host.")] = 1,
    agent: Annotated[
        Path | None,
        Option(
            metavar="FILE",
            help="Also write a first configuration of fairlane agent, with a profile for each --workload and one for "
            "all other jobs.",
        ),
    ] = None,
    most: Annotated[int, Option("--jobs", min=1, help="At most so many jobs, the largest.")] = 20,
) -> Answer:
    """Write a first scenario of a real cluster, from its fabric and the jobs that run.

    Each job has the hosts that it has now and a starter workload, which is a placeholder: fairlane check, run, and then
    replace it by what the job sends. For example: fairlane init cluster.ibnetdiscover jobs --exclude 'login*'
    """
    from fairlane.cluster.agent.config import agent_starter, write_starters

    beside = out.with_name(f"{out.stem}.fabric.json")
    kept = beside.resolve() == fabric.resolve()
    for option, file in (("--out", out), ("--out", None if kept else beside), ("--agent", agent)):
        if file is not None and file.exists():
            raise refused(option, "file exists", str(file), "a new file")
    if agent is not None and agent.resolve().parent != out.resolve().parent:
        raise refused("--agent", "is in another folder than the fabric's file", str(agent), str(out.parent))
    if partition and jobs is None:
        raise refused(
            "--partition", "chooses among jobs, and no list of jobs is given", partition[0], "JOBS, or --hosts"
        )
    wiring = read_wiring(fabric)
    listed = None if jobs is None else read_job_list(jobs)
    choice = Choice(
        exclude=exclude or (),
        hosts=None if hosts is None else expand(hosts),
        partitions=partition or (),
        workloads=_pairs(workload or ()),
        ranks_per_host=ranks_per_host,
        most=most,
    )
    source = " and ".join(file.name for file in (fabric, jobs) if file is not None)
    started = starter(wiring, beside, listed.jobs if listed else None, choice, source)
    notes = [*(listed.notes if listed else ()), *started.notes]
    report(*notes)
    written = {out: started.text}
    if agent is not None:
        written[agent] = agent_starter(wiring, beside, choice, fabric.name)
    if not kept:
        wiring.save(beside)
    write_starters(written, [] if kept else [beside], agent)
    lines = [str(beside), str(out), f"next: fairlane check {out}"]
    if agent is not None:
        lines += [str(agent), f"next: fairlane agent --config {agent} --once"]
    return Answer({"scenario": out, "fabric": beside, "agent": agent, "jobs": started.jobs, "notes": notes}, lines, out)


def _pairs(given: Sequence[str]) -> dict[str, str]:
    """Workload by pattern."""
    names = {}
    for text in given:
        pattern, equals, name = text.rpartition("=")
        if not equals or not pattern or not name:
            raise refused("--workload", "names no workload", text, "PATTERN=NAME, e.g. 'cfd*=halo3d'")
        names[pattern] = name
    return names


def check(
    scenario: ScenarioFile, assignments: Assignments = None, seed: Seed = None, allow_code: AllowCode = False
) -> Answer:
    """Read a scenario or a study and report what is wrong with it.

    All problems are reported at once. Of a study also what it takes (simulations, processor time, memory) and which of
    its points are the same simulation. Nothing is simulated but what calibration takes. Code that the scenario names is
    listed; it runs, and what it does is checked, only with --allow-code.
    """
    data = Document.read(scenario).data
    if "scenario" in data and "fabric" not in data:
        return _check_study(scenario, assignments, seed, allow_code=allow_code)
    with listing() as code, used() as plugins:
        loaded = Scenario.load(scenario, set=assignments or (), seed=seed, allow_code=allow_code)
        resolved = loaded.decide() if code else loaded.resolve()
    fabric = resolved.fabric
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
        "code": [str(source) for source in code],
        "plugins": plugins,
        "notes": resolved.notes,
    }
    return Answer(facts, views.checked_scenario(loaded, resolved, facts))


def _check_study(file: Path, assignments: list[str] | None, seed: int | None, *, allow_code: bool) -> Answer:
    """Read a study, try every scenario and treatment, and report what it takes. Nothing is simulated."""
    from fairlane.study.measured import plan_of
    from fairlane.study.running import cost_of
    from fairlane.study.study import Study

    changes = [] if seed is None else [f"seeds=[{seed}]"]
    with listing() as code, used() as plugins:
        loaded = Study.load(file, set=[*(assignments or ()), *changes], allow_code=allow_code)
        cost = cost_of(plan_of(loaded))
    facts = {"study": loaded.name, **asdict(cost), "code": [str(source) for source in code], "plugins": plugins}
    return Answer(facts, views.checked_study(loaded, cost, facts))


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
    from fairlane.views.kinds import write
    from fairlane.views.placement import view

    loaded = Scenario.load(scenario, set=assignments or (), seed=seed, allow_code=allow_code)
    resolved = loaded.decide()
    fabric = resolved.fabric
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
    return Answer(rows, [shown], files=[write(shown, out)] if out else ())


def _hosts(fabric: Fabric, hosts: Sequence[int], rails: Rails) -> dict[str, list[Any]]:
    """The hosts of ranks with their names, and the names of the switches that they use, each once."""
    used = switches_at(fabric, list(dict.fromkeys(hosts)), fabric.job_links(hosts, rails))
    leaves = dict.fromkeys(leaf for some in used for leaf in some)
    return {
        "hosts_of_ranks": list(hosts),
        "host_names_of_ranks": [fabric.host_names[host] for host in hosts],
        "switch_names": [fabric.switch_names[leaf] for leaf in leaves if leaf >= 0],
    }
