"""A first scenario of a real cluster: its fabric, the jobs that run there now, and a starter workload for each.

What jobs send is not known from a list of jobs. The starter workload is an exchange with up to four neighbours, whose
messages grow in number with the ranks only; whoever knows better replaces it.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import tomlkit

from fairlane.core.errors import Problem, ScenarioError, nearest
from fairlane.core.wording import plural
from fairlane.inputs.hosts import SlurmJob, compress, expand, is_list, shortened, slurm_names
from fairlane.model.fabric.wiring import Wiring

STARTER = {"name": "nearest_neighbor", "message_size": "8 KiB", "compute": "200 us"}
"""The workload of jobs of which nothing is known."""
_DURATION = "10 ms"
_SHOWN = 5  # jobs that are left out and named one by one


@dataclass(frozen=True)
class Choice:
    """Choices for the scenario."""

    exclude: Sequence[str] = ()
    """Hosts on which no job is placed, such as those of storage and management: shell patterns, or Slurm's lists."""
    hosts: Sequence[str] | None = None
    """The hosts on which jobs are placed, such as those of a partition; None for all."""
    partitions: Sequence[str] = ()
    """Partitions whose jobs are taken; without any, all."""
    workloads: Mapping[str, str] = field(default_factory=dict)
    """Workload by shell pattern of the job's name; the first that fits counts."""
    ranks_per_host: int = 1
    most: int = 20
    """Number of jobs, the largest first."""


@dataclass(frozen=True)
class Starter:
    """The scenario's text, how many jobs it has, and notes on what was left out."""

    text: str
    jobs: int
    notes: tuple[str, ...]


def fabric_table(wiring: Wiring, file: Path) -> dict[str, str]:
    """The table ``fabric`` for a wiring in a file beside it; it names the routing where that is not the usual one."""
    routing = str(wiring.table()["routing"])
    return {"topology": "imported", "file": file.name, **({"routing": routing} if routing != "up_down" else {})}


def starter(wiring: Wiring, file: Path, jobs: Sequence[SlurmJob] | None, choice: Choice, source: str) -> Starter:
    """The scenario for a fabric that is in ``file`` beside it.

    Without a list of jobs it has two, on a quarter of the hosts each. Raises ``ScenarioError`` if no host is left, or
    no job of a list.
    """
    hosts = wiring.hosts
    usable = _usable(hosts, choice)
    document = tomlkit.document()
    for line in (
        f"A first scenario of {source}, written by fairlane init.",
        "The workloads are placeholders: replace them by what the jobs send (fairlane list workloads), or by traces.",
    ):
        document.add(tomlkit.comment(line))
    document["duration"] = _DURATION
    document["fabric"] = fabric_table(wiring, file)
    placement = {"name": "random", "ranks_per_host": choice.ranks_per_host}
    notes = []
    if len(usable) < len(hosts):
        placement["among"] = compress(usable.values())
        notes.append(f"{plural(len(hosts) - len(usable), 'host')} without jobs: {shortened(set(hosts) - set(usable))}")
    document["placement"] = placement
    if jobs is None:
        ranks = max(1, len(usable) // 4) * choice.ranks_per_host
        tables = [_job(name, name, choice, {"ranks": ranks}) for name in ("first", "second")]
    else:
        kept, more = _kept(jobs, usable, choice)
        notes += more
        tables = _tables(kept, usable, choice)
    array = tomlkit.aot()
    for table in tables:
        array.append(table)
    document.add(tomlkit.nl())
    document["jobs"] = array
    return Starter(tomlkit.dumps(document), len(tables), tuple(notes))


def _usable(hosts: Sequence[str], choice: Choice) -> dict[str, str]:
    """The hosts on which jobs may be placed, with their names for Slurm; ``ScenarioError`` for what fits no host."""
    names = dict(zip(hosts, slurm_names(hosts), strict=True))
    excluded: set[str] = set()
    for pattern in choice.exclude:
        listed = set(expand(pattern)) if is_list(pattern) else set()
        fitting = {host for host in hosts if fnmatchcase(host, pattern) or {host, names[host]} & listed}
        if not fitting:
            message = f"matches no host of the fabric: {shortened(hosts, 60)}"
            raise ScenarioError(Problem("--exclude", message, pattern, None, nearest(pattern, hosts)))
        excluded |= fitting
    known = {*names, *names.values()}
    chosen = known if choice.hosts is None else set(choice.hosts)
    for host in sorted(chosen - known):
        there, near = shortened(hosts, 60), nearest(host, known)
        raise ScenarioError(Problem("--hosts", "the fabric has no such host", host, there, near))
    usable_hosts = {host: name for host, name in names.items() if host not in excluded and {host, name} & chosen}
    if not usable_hosts:
        raise ScenarioError(Problem("--exclude", "no host is left", ", ".join(choice.exclude)))
    return usable_hosts


def _kept(jobs: Sequence[SlurmJob], usable: Mapping[str, str], choice: Choice) -> tuple[list[SlurmJob], list[str]]:
    """The jobs that can be in the scenario, and why others are not."""
    there = sorted({job.partition for job in jobs if job.partition})
    for name in choice.partitions:
        if name not in there:
            message = "no job that runs is in this partition"
            raise ScenarioError(Problem("--partition", message, name, ", ".join(there) or None, nearest(name, there)))
    names = {*usable, *usable.values()}
    reasons: dict[str, list[str]] = {}
    chosen = []
    for job in jobs:
        strange = next((node for node in job.nodes if node not in names), None)
        if choice.partitions and job.partition not in choice.partitions:
            reasons.setdefault("in other partitions", []).append(job.id)
        elif strange is not None:
            reasons.setdefault("on nodes that the fabric does not have, or that are excluded", []).append(
                f"{job.id} ({strange})"
            )
        elif len(set(job.nodes)) < 2:
            reasons.setdefault("on one host, which send nothing over the fabric", []).append(job.id)
        else:
            chosen.append(job)
    chosen.sort(key=lambda job: (-len(set(job.nodes)), len(job.id), job.id))
    if len(chosen) > choice.most:
        reasons[f"beyond the {choice.most} largest (--jobs)"] = [job.id for job in chosen[choice.most :]]
    notes = [f"left out: {plural(len(ids), 'job')} {why}: {_some(ids)}" for why, ids in reasons.items()]
    if not chosen:
        message = "none of the jobs can be in the scenario" if jobs else "lists no running job"
        raise ScenarioError(
            Problem("JOBS", "; ".join([message, *notes]), allowed="jobs on two hosts of the fabric or more")
        )
    return chosen[: choice.most], notes


def _some(ids: Sequence[str]) -> str:
    more = len(ids) - _SHOWN
    return ", ".join(ids[:_SHOWN]) + (f" and {more} more" if more > 0 else "")


def _tables(jobs: Sequence[SlurmJob], usable: Mapping[str, str], choice: Choice) -> list[Any]:
    """A table for each job; where several have a host, all of these say that it is shared."""
    hosts = [list(dict.fromkeys(usable.get(node, node) for node in job.nodes)) for job in jobs]
    owners: dict[str, int] = {}
    for hosts_of_job in hosts:
        for host in hosts_of_job:
            owners[host] = owners.get(host, 0) + 1
    tables, taken = [], set[str]()
    for job, hosts_of_job in zip(jobs, hosts, strict=True):
        plain = re.sub(r"[^\w.+-]+", "_", job.name, flags=re.ASCII).strip("._") or f"job-{job.id}"
        name = plain if plain not in taken else f"{plain}-{job.id}"
        taken.add(name)
        placement: dict[str, Any] = {"hosts": compress(hosts_of_job)}
        if choice.ranks_per_host > 1:
            placement["ranks_per_host"] = choice.ranks_per_host
        if any(owners[host] > 1 for host in hosts_of_job):
            placement["shared"] = True
        table = _job(name, job.name, choice, {"placement": placement})
        about = {"account": job.account, "partition": job.partition, "user": job.user}
        facts = [f"{key} {value}" for key, value in about.items() if value]
        table.comment(", ".join([f"job {job.id} of Slurm", *facts]))
        tables.append(table)
    return tables


def _job(name: str, called: str, choice: Choice, where: Mapping[str, Any]) -> Any:
    workload: Any = next(
        (workload_of for pattern, workload_of in choice.workloads.items() if fnmatchcase(called, pattern)), None
    )
    table = tomlkit.table()
    table["name"] = name
    for key, value in {"workload": workload or STARTER, **where}.items():
        if isinstance(value, Mapping):
            table[key] = tomlkit.inline_table()
            table[key].update(value)
        else:
            table[key] = value
    return table
