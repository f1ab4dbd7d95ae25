"""A first scenario of a real cluster: init."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option

from fairlane.cli.command import Answer, out_option, write_text
from fairlane.cli.options import refused, report
from fairlane.errors import ScenarioError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from fairlane.fabric import Wiring


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
    from fairlane.agent.starter import agent_starter
    from fairlane.fabric import read_wiring
    from fairlane.inputs.slurm_jobs import read_job_list
    from fairlane.scenario.starter import Choice, starter
    from fairlane.slurm import expand

    beside = out.with_name(f"{out.stem}.fabric.json")
    kept = beside.resolve() == fabric.resolve()
    _check_new({"--out": [out] if kept else [out, beside], "--agent": [agent] if agent else []})
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
    found = starter(wiring.hosts, _table(wiring, beside), listed.jobs if listed else None, choice, source)
    notes = [*(listed.notes if listed else ()), *found.notes]
    for note in notes:
        report(note)
    written = {out: found.text}
    if agent is not None:
        written[agent] = agent_starter(wiring.hosts, _table(wiring, beside), choice, fabric.name)
    if not kept:
        wiring.save(beside)
    _write(written, [] if kept else [beside], agent)
    lines = [str(beside), str(out), f"next: fairlane check {out}"]
    if agent is not None:
        lines += [str(agent), f"next: fairlane agent --config {agent} --once"]
    return Answer({"scenario": out, "fabric": beside, "agent": agent, "jobs": found.jobs, "notes": notes}, lines, out)


def _write(texts: "Mapping[Path, str]", more: "Sequence[Path]", agent: Path | None) -> None:
    """Writes the files and reads them as the commands will; none of them, nor of ``more``, is left if that fails."""
    from fairlane import Scenario
    from fairlane.agent.config import AgentConfig

    try:
        for file, text in texts.items():
            write_text(file, text)
            if file == agent:
                AgentConfig.from_file(file)
            else:
                Scenario.load(file).decide()
    except ScenarioError:
        for file in (*texts, *more):
            file.unlink(missing_ok=True)
        raise


def _check_new(files: "Mapping[str, Sequence[Path]]") -> None:
    """Refuses files that exist, by option."""
    for option, every in files.items():
        for file in every:
            if file.exists():
                raise refused(option, "file exists", str(file), "a new file")


def _table(wiring: "Wiring", file: Path) -> dict[str, str]:
    """The table ``fabric`` of the scenario; the routing is named where it is not the usual one."""
    routing = str(wiring.table()["routing"])
    return {"topology": "imported", "file": file.name, **({"routing": routing} if routing != "up_down" else {})}


def _pairs(given: "Sequence[str]") -> dict[str, str]:
    """Workload by pattern."""
    found = {}
    for text in given:
        pattern, equals, name = text.rpartition("=")
        if not equals or not pattern or not name:
            raise refused("--workload", "names no workload", text, "PATTERN=NAME, e.g. 'cfd*=halo3d'")
        found[pattern] = name
    return found
