"""The links that are hot by their counters, and the jobs whose routes share them."""

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fairlane.cluster.counters.base import WORD
from fairlane.cluster.counters.reader import Located
from fairlane.core.errors import ScenarioError
from fairlane.inputs.slurm_jobs import read_job_list
from fairlane.model.fabric.congestion import Port, Root, trees, usual_bandwidth
from fairlane.model.fabric.graph import ANY_RAILS, Rails
from fairlane.model.fabric.view import Fabric
from fairlane.model.fabric.wiring import Wiring
from fairlane.model.scenario import Scenario


@dataclass(frozen=True)
class HotLink:
    """A link with the counters of the port that sends over it."""

    link: str
    """Its name, as ``leaf4 port 7 to spine2``."""
    role: str
    """Its role: host, up, down, local, global."""
    sent_bytes: int
    """Bytes sent, of ``PortXmitData``."""
    wait_ticks: int | None
    """``PortXmitWait``; None where the source has none."""
    wait_per_word: float | None
    """Ticks of wait for each word sent: comparable among ports with the same tick."""
    utilisation: float | None
    """Bytes sent, as a share of what the link can carry in the time between two readings; None without the time or the
    link's speed."""
    jobs: tuple[str, ...]
    """Jobs whose messages, or the answers to them, may take the link."""


@dataclass(frozen=True)
class Allocation:
    """Hosts of a job, and the adapters that it uses."""

    hosts: Sequence[int]
    """The host of each rank, or each host once."""
    rails: Rails = field(default_factory=lambda: ANY_RAILS)
    """Its rail policy; not known by default."""


def read_allocation(file: Path, fabric: Fabric) -> tuple[dict[str, Allocation], list[str]]:
    """The hosts of each job that Slurm lists (``fairlane.inputs.slurm_jobs``), and notes; or the jobs of a scenario.

    Those of a scenario (``.toml``) have their rail policies. Raises ``ScenarioError`` with the line of a list or a node
    that is wrong.
    """
    if file.suffix == ".toml":
        return _of_scenario(file, fabric), []
    read = read_job_list(file)
    allocations: dict[str, Allocation] = {}
    problems = []
    for job, line in zip(read.jobs, read.lines, strict=True):
        try:
            allocations[job.id] = Allocation(fabric.host_numbers(job.nodes))
        except ScenarioError as error:
            problems += [problem.at(str(file), line) for problem in error.problems]
    if problems:
        raise ScenarioError(problems)
    return allocations, read.notes


def _of_scenario(file: Path, fabric: Fabric) -> dict[str, Allocation]:
    resolved = Scenario.load(file).decide()
    names = resolved.fabric.host_names
    return {
        job.name: Allocation(fabric.host_numbers([names[host] for host in job.hosts]), job.rails)
        for job in resolved.jobs
    }


def hot_links(
    ports: Iterable[Located],
    fabric: Fabric,
    jobs: Mapping[str, Allocation],
    seconds: float | None = None,
    unknown: Container[tuple[str, int]] = (),
) -> list[HotLink]:
    """The links in order of their wait, then of the bytes sent over them.

    ``seconds`` is the time in which the counters were accumulated. The links of ``unknown`` ports have no utilisation.
    """
    links = fabric.links
    keys = zip(links["from_name"].tolist(), links["from_port"].tolist(), strict=True)
    number = {key: link for link, key in enumerate(keys)}
    users = {name: fabric.job_links(job.hosts, job.rails) for name, job in jobs.items()}
    hot = []
    for port in ports:
        link = number.get((port.name, port.port))
        sent = port.counters.values.get("PortXmitData")
        if link is None or sent is None:
            continue
        wait, capacity = port.counters.values.get("PortXmitWait"), int(links["bandwidth"][link]) / 8
        ratio = wait / sent if wait is not None and sent else None
        busy = sent * WORD / (capacity * seconds) if seconds and (port.name, port.port) not in unknown else None
        jobs_of_link = tuple(name for name, used in users.items() if used[link])
        role = str(links["role"][link])
        hot.append(HotLink(fabric.link_name(link), role, sent * WORD, wait, ratio, busy, jobs_of_link))
    return sorted(hot, key=lambda hot_link: (-(hot_link.wait_ticks or 0), -hot_link.sent_bytes, hot_link.link))


def without_speed(wiring: Wiring) -> set[tuple[str, int]]:
    """The ports, by name and number, of cables whose speed the wiring's source does not state."""
    return {
        end
        for cable in wiring.cables
        if cable.bandwidth is None and cable.ports
        for end in zip(cable.ends, cable.ports, strict=True)
    }


def roots(ports: Iterable[Located], fabric: Fabric, jobs: Mapping[str, Allocation], seconds: float) -> list[Root]:
    """The roots of congestion by counters of ``seconds``: those with most stalled ports upstream first.

    The time stalled is not in the counters: ``PortXmitWait`` has ticks of unknown length, taken as the time of a word.
    """
    links = fabric.links
    usual, hot, ports_of_links = usual_bandwidth(links), {}, []
    ends = [[_vertex(host, switch) for host, switch in zip(*sides, strict=True)] for sides in _sides(links)]
    number = {fabric.link_name(link): link for link in range(len(usual))}
    for hot_link in hot_links(ports, fabric, jobs, seconds):
        link = number[hot_link.link]
        stalled = (hot_link.utilisation or 0.0) * (hot_link.wait_per_word or 0.0)
        hot[link] = hot_link
        ports_of_links.append(
            Port(
                link,
                ends[0][link],
                ends[1][link],
                hot_link.utilisation or 0.0,
                stalled,
                (hot_link.utilisation or 0.0) + stalled,
            )
        )
    made = trees(ports_of_links)
    return [
        Root(
            link=hot[link].link,
            active_share=hot[link].utilisation or 0.0,
            bandwidth_bps=int(links["bandwidth"][link]),
            usual_bps=int(usual[link]),
            upstream=len(made[link]),
            jobs=hot[link].jobs,
        )
        for link in sorted(made, key=lambda link: (-len(made[link]), -(hot[link].utilisation or 0.0), link))
    ]


def _sides(links: Mapping[str, Any]) -> list[tuple[list[int], list[int]]]:
    return [(links[f"{side}_host"].tolist(), links[f"{side}_switch"].tolist()) for side in ("from", "to")]


def _vertex(host: int, switch: int) -> str:
    return f"host {host}" if host >= 0 else f"switch {switch}"
