"""A first scenario of a real cluster: init."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option

from fairlane.cli.command import Answer, out_option, write_text
from fairlane.cli.options import refused, report
from fairlane.errors import ScenarioError

if TYPE_CHECKING:
    from collections.abc import Sequence

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
    most: Annotated[int, Option("--jobs", min=1, help="At most so many jobs, the largest.")] = 20,
) -> Answer:
    """Write a first scenario of a real cluster, from its fabric and the jobs that run.

    Each job has the hosts that it has now and a starter workload, which is a placeholder: fairlane check, run, and then
    replace it by what the job sends. For example: fairlane init cluster.ibnetdiscover jobs --exclude 'login*'
    """
    from fairlane import Scenario
    from fairlane.fabric import read_wiring
    from fairlane.inputs.slurm_jobs import read_job_list
    from fairlane.scenario.starter import Choice, starter
    from fairlane.slurm import expand

    beside = out.with_name(f"{out.stem}.fabric.json")
    for file in (out, beside):
        if file.exists() and not (file == beside and beside.resolve() == fabric.resolve()):
            raise refused("--out", "file exists", str(file), "a new file")
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
    written = [out]
    if beside.resolve() != fabric.resolve():
        wiring.save(beside)
        written.append(beside)
    write_text(out, found.text)
    try:
        Scenario.load(out).decide()
    except ScenarioError:
        for file in written:
            file.unlink()
        raise
    lines = [str(beside), str(out), f"next: fairlane check {out}"]
    return Answer({"scenario": out, "fabric": beside, "jobs": found.jobs, "notes": notes}, lines, out)


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
