"""The links that are hot by their counters, and the jobs whose routes share them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy

from fairlane.counters.base import WORD
from fairlane.counters.located import Located
from fairlane.errors import ScenarioError
from fairlane.fabric import Fabric
from fairlane.inputs.slurm_jobs import read_job_list


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
    """Bytes sent, as a share of what the link can carry in the time between two readings; None without the time."""
    jobs: tuple[str, ...]
    """Jobs with a route over the link between two of their hosts."""


def read_allocation(file: Path, fabric: Fabric) -> tuple[dict[str, list[int]], list[str]]:
    """The hosts of each job that Slurm lists (``fairlane.inputs.slurm_jobs``), and notes.

    Raises ``ScenarioError`` with the line of a list or a node that is wrong.
    """
    read = read_job_list(file)
    found: dict[str, list[int]] = {}
    problems = []
    for job, line in zip(read.jobs, read.lines, strict=True):
        try:
            found[job.id] = fabric.host_numbers(job.nodes)
        except ScenarioError as error:
            problems += [one.at(str(file), line) for one in error.problems]
    if problems:
        raise ScenarioError(problems)
    return found, read.notes


def hot_links(
    ports: Iterable[Located],
    fabric: Fabric,
    jobs: Mapping[str, Sequence[int]],
    seconds: float | None = None,
) -> list[HotLink]:
    """The links in order of their wait, then of the bytes sent over them.

    ``seconds`` is the time in which the counters were accumulated.
    """
    links = fabric.links
    keys = zip(links["from_name"].tolist(), links["from_port"].tolist(), strict=True)
    number = {key: link for link, key in enumerate(keys)}
    users = {job: _used(fabric, hosts) for job, hosts in jobs.items()}
    found = []
    for one in ports:
        link = number.get((one.name, one.port))
        words = one.counters.values.get("PortXmitData")
        if link is None or words is None:
            continue
        wait, capacity = one.counters.values.get("PortXmitWait"), int(links["bandwidth"][link]) / 8
        ratio = wait / words if wait is not None and words else None
        busy = words * WORD / (capacity * seconds) if seconds else None
        own = tuple(job for job, used in users.items() if used[link])
        role = str(links["role"][link])
        found.append(HotLink(fabric.link_name(link), role, words * WORD, wait, ratio, busy, own))
    return sorted(found, key=lambda it: (-(it.wait_ticks or 0), -it.sent_bytes, it.link))


def _used(fabric: Fabric, hosts: Sequence[int]) -> "numpy.typing.NDArray[numpy.bool_]":
    """By link: whether a route between two of the hosts goes over it."""
    distinct = list(dict.fromkeys(hosts))
    traffic = numpy.ones((len(distinct), len(distinct)))
    numpy.fill_diagonal(traffic, 0.0)
    return fabric.loads(distinct, traffic) > 0
