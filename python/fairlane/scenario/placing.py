"""The hosts of a scenario's jobs: which hosts each gets, and which rank lives on which."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import accumulate
from math import inf
from typing import TYPE_CHECKING

import numpy
from numpy.typing import NDArray

from fairlane import _core
from fairlane.errors import Problem
from fairlane.fabric import Fabric
from fairlane.inputs.hosts import host_numbers
from fairlane.inputs.problems import Problems
from fairlane.placement import LIST, Communication, Request, fill, hosts_needed
from fairlane.placement.mapping import Slots, mapped
from fairlane.scenario.checks import listed_twice
from fairlane.scenario.stay import Stay
from fairlane.seeds import Purpose, stream
from fairlane.wording import plural

if TYPE_CHECKING:
    from fairlane.scenario.models import Job, Placement
    from fairlane.scenario.scenario import Scenario

__all__ = ["Copy", "place"]


@dataclass(frozen=True)
class Copy:
    """One copy of a job of the scenario, before it has hosts."""

    number: int
    """Its number among all copies of all jobs: what its random streams go by."""
    key: str
    """Where its job stands in the scenario."""
    job: "Job"
    name: str
    ranks: int
    recorded: _core.Program | None
    """The trace, if it is one."""
    level: int | None = None
    """The service level that a strategy of quality of service gives it, if one does."""


def place(scenario: "Scenario", fabric: Fabric, copies: Sequence[Copy]) -> list[tuple[Copy, list[int]]]:
    """Each copy with the host of each rank.

    Nobody else gets a host that a table lists, or that a job has, while that job is there. Jobs that depart at a time
    leave their hosts to those that arrive later; where there are such, jobs are placed in the order of their arrival.
    """
    tables = [_placement(scenario, copy) for copy in copies]
    listed = _listed(scenario, fabric)
    _check_room(scenario, fabric, copies)
    groups: dict[int, list[int]] = defaultdict(list)
    for at, table in enumerate(tables):
        groups[id(table)].append(at)
    for members in groups.values():
        _check(scenario, fabric, [copies[at] for at in members])
    lists = {table: set(hosts) for table, hosts in listed.items()}
    reserved = [
        (copy.job.stay, lists[id(table)]) for copy, table in zip(copies, tables, strict=True) if table.strategy == LIST
    ]
    held: list[tuple[Stay, set[int]]] = []
    found: dict[int, list[int]] = {}
    all_stay = all(copy.job.stay.end == inf for copy in copies)
    order = range(len(copies)) if all_stay else _by_arrival(copies)
    for at in order:
        if at in found:
            continue
        table, members = tables[at], [at]
        if table.allocator and table.allocator.together:
            arrival = copies[at].job.start
            members = [one for one in groups[id(table)] if all_stay or copies[one].job.start == arrival]
        stays = [copies[one].job.stay for one in members]
        is_list = table.strategy == LIST
        pool: Sequence[int] = listed[id(table)] if is_list else range(fabric.hosts)
        busy = _busy(stays, held if is_list else [*held, *reserved])
        free = [host for host in pool if host not in busy]
        found.update(zip(members, _allocate(scenario, fabric, [copies[one] for one in members], free), strict=True))
        held += [(stay, set(found[one])) for stay, one in zip(stays, members, strict=True)]
    return [(copy, _mapped(scenario, fabric, copy, found[at])) for at, copy in enumerate(copies)]


def _by_arrival(copies: Sequence[Copy]) -> Sequence[int]:
    """The order in which jobs arrive, the background last."""
    return sorted(range(len(copies)), key=lambda at: (copies[at].job.background, copies[at].job.start))


def _busy(stays: Sequence[Stay], held: Sequence[tuple[Stay, set[int]]]) -> set[int]:
    """The hosts that are held at some time of these stays."""
    return set().union(*(hosts for other, hosts in held if any(stay.meets(other) for stay in stays)))


def _placement(scenario: "Scenario", copy: Copy) -> "Placement":
    return copy.job.placement or scenario.placement


def _ranks_per_host(scenario: "Scenario", copy: Copy) -> int:
    return copy.job.ranks_per_host or _placement(scenario, copy).ranks_per_host


def hosts_of(scenario: "Scenario", copy: Copy) -> int:
    """How many hosts a job needs."""
    return hosts_needed(copy.ranks, _ranks_per_host(scenario, copy))


def _key(copy: Copy) -> str:
    """Where the copy's placement table stands."""
    if copy.job.background:
        return "background.placement"
    return f"{copy.key}.placement" if copy.job.placement else "placement"


def _listed(scenario: "Scenario", fabric: Fabric) -> dict[int, list[int]]:
    """The hosts that placement tables list, by the identity of the table."""
    tables = {id(table): (key, table) for key, table in _tables(scenario)}
    listed: dict[int, list[int]] = {}
    problems: list[Problem] = []
    for number, (key, table) in tables.items():
        try:
            listed[number] = host_numbers(table.hosts or (), fabric.host_names if table.hosts else ())
        except Problems as found:
            problems += [problem.under(f"{key}.hosts") for problem in found.problems]
    if not problems and any(isinstance(host, str) for _, table in tables.values() for host in table.hosts or ()):
        # A host may be listed by its number and by its name.
        problems = list(listed_twice(scenario, lambda table: [fabric.host_names[at] for at in listed[id(table)]]))
    if problems:
        raise Problems(*problems)
    return listed


def _tables(scenario: "Scenario") -> Iterator[tuple[str, "Placement"]]:
    """Every placement table with its key."""
    yield "placement", scenario.placement
    for at, job in enumerate(scenario.jobs):
        if job.placement:
            yield "background.placement" if job.background else f"jobs[{at}].placement", job.placement


def _check_room(scenario: "Scenario", fabric: Fabric, copies: Sequence[Copy]) -> None:
    """The jobs that are there at one time must have room."""
    changes = []
    for copy in copies:
        needed = hosts_of(scenario, copy)
        start, end = copy.job.stay
        changes += [(start, needed), (end, -needed)]
    # Of one time, those that depart come first.
    changes.sort()
    counts = accumulate(change for _, change in changes)
    needed, moment = max(zip(counts, (time for time, _ in changes), strict=True), default=(0, 0))
    if needed <= fabric.hosts:
        return
    there = [copy for copy in copies if copy.job.stay.start <= moment < copy.job.stay.end]
    largest = max(there, key=lambda copy: (not copy.job.background, hosts_of(scenario, copy)))
    words = f"more ranks than hosts: at one time the jobs need {plural(needed, 'host')}"
    allowed = f"what {plural(fabric.hosts, 'host')}, those of the fabric, have room for"
    if largest.recorded is not None:
        raise Problems(Problem(largest.key, words, allowed=allowed))
    raise Problems(Problem(f"{largest.key}.ranks", words, largest.ranks, allowed))


def _check(scenario: "Scenario", fabric: Fabric, copies: Sequence[Copy]) -> None:
    """What strategy and mapping of a table have against the fabric and the jobs that it is for."""
    key, table = _key(copies[0]), _placement(scenario, copies[0])
    if table.allocator:
        try:
            table.allocator.check(fabric, [hosts_of(scenario, copy) for copy in copies])
        except Problems as problems:
            raise Problems(*(problem.under(key) for problem in problems.problems)) from None
    for copy in copies:
        problem = table.mapping.problem_with(copy.ranks)
        if problem:
            parameter, words, allowed = problem
            value = getattr(table.mapping, parameter)
            raise Problems(Problem(f"{key}.mapping.{parameter}", f"{words} ({copy.name!r})", value, allowed))


def _allocate(scenario: "Scenario", fabric: Fabric, copies: Sequence[Copy], pool: Sequence[int]) -> list[list[int]]:
    """The hosts of copies of one placement table, among those of the pool."""
    table = _placement(scenario, copies[0])
    seed = scenario.seed if table.seed is None else table.seed
    needs = [hosts_of(scenario, copy) for copy in copies]
    if table.allocator is None:
        given = [list(pool[: needs[0]]) if needs[0] <= len(pool) else None]
    else:
        rngs = [stream(seed, Purpose.PLACEMENT, copy.number) for copy in copies]
        requests = [
            Request(need, rng, partial(_communication, scenario, copy))
            for need, rng, copy in zip(needs, rngs, copies, strict=True)
        ]
        given = table.allocator.allocate_together(pool, requests, fabric)
    found = []
    for copy, need, hosts in zip(copies, needs, given, strict=True):
        if hosts is None:
            per_host, free = _ranks_per_host(scenario, copy), f"{len(pool)} are free"
            words = (
                f"job {copy.name!r}: {plural(copy.ranks, 'rank')} need "
                f"{plural(need, 'host')}, {per_host} a host, and {free}"
            )
            if table.allocator is None:
                raise Problems(Problem(f"{_key(copy)}.hosts", words, list(table.hosts or ())))
            if need <= len(pool):
                words += f", but not as {table.allocator.wanted()}"
            raise Problems(Problem(f"{copy.key}.ranks", words, copy.ranks))
        found.append(hosts)
    return found


def _communication(scenario: "Scenario", copy: Copy) -> Communication:
    """The copy's communication pattern; its local unit is counted in hosts."""
    from fairlane.pattern import judge, observe, program_of

    verdict, _ = judge(observe(program_of(copy.job, copy.ranks, scenario.seed, copy.number)))
    return Communication(verdict.kind, verdict.unit and hosts_needed(verdict.unit, _ranks_per_host(scenario, copy)))


def _mapped(scenario: "Scenario", fabric: Fabric, copy: Copy, hosts: Sequence[int]) -> list[int]:
    """The host of each rank."""
    places = fill(hosts, copy.ranks, _ranks_per_host(scenario, copy))

    def distances() -> NDArray[numpy.int64]:
        return fabric.distances(places)

    def traffic() -> NDArray[numpy.float64]:
        from fairlane.pattern import observe, program_of

        found = observe(program_of(copy.job, copy.ranks, scenario.seed, copy.number))
        return found.total.astype(numpy.float64)

    return mapped(_placement(scenario, copy).mapping, Slots(places, distances, traffic))
