"""The hosts of a scenario's jobs: which hosts each gets, and the host of each rank."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import accumulate
from math import inf
from typing import TYPE_CHECKING, Any

import numpy
from numpy.typing import NDArray

from fairlane.core.errors import Problem
from fairlane.core.seeds import Purpose, stream
from fairlane.core.wording import plural
from fairlane.inputs.hosts import host_numbers
from fairlane.inputs.problems import Problems, under
from fairlane.inputs.registry import blamed
from fairlane.model.fabric.view import Fabric
from fairlane.model.pattern import judge, observe, program_of
from fairlane.model.placement import LIST, Communication, PlacementPolicy, Request, fill, hosts_needed
from fairlane.model.placement.mapping import Linear, Slots
from fairlane.model.scenario.checks import listed_twice
from fairlane.model.scenario.models import Stay
from fairlane.model.scenario.rails import RailPolicy
from fairlane.model.scenario.resolved import ResolvedJob

if TYPE_CHECKING:
    from fairlane.model.pattern import Traffic
    from fairlane.model.scenario.models import Placement
    from fairlane.model.scenario.tables import ScenarioTables


def place(scenario: "ScenarioTables", fabric: Fabric, jobs: Sequence[ResolvedJob]) -> list[ResolvedJob]:
    """The jobs with the host of each rank.

    No other job gets a host that a table lists, or that a job has, while that job is there, unless the placements of
    both are shared, and no placement one that a workload names. Jobs that depart at a time leave their hosts to those
    that arrive later; where there are such, jobs are placed in the order of their arrival.
    """
    tables = [job.placement for job in jobs]
    listed = _named(scenario, fabric)
    fixed = [fixed_hosts(job, fabric) for job in jobs]
    servers = set().union(*fixed)
    _check_room(fabric.hosts - len(servers), jobs)
    groups: dict[int, list[int]] = defaultdict(list)
    for at, table in enumerate(tables):
        groups[id(table)].append(at)
    for members in groups.values():
        _check(fabric, [jobs[at] for at in members])
    lists = {table: set(hosts) for table, hosts in listed.items()}
    reserved = [
        (job.table.stay, lists[id(table)], table.shared)
        for job, table in zip(jobs, tables, strict=True)
        if table.name == LIST
    ]
    held: list[tuple[Stay, set[int], bool]] = []
    hosts_of: dict[int, list[int]] = {}
    all_stay = all(job.table.stay.end == inf for job in jobs)
    by_arrival = sorted(range(len(jobs)), key=lambda at: (jobs[at].background, jobs[at].start))
    for at in range(len(jobs)) if all_stay else by_arrival:
        if at in hosts_of:
            continue
        table, members = tables[at], [at]
        if table.allocator and table.allocator.together:
            arrival = jobs[at].start
            members = [member for member in groups[id(table)] if all_stay or jobs[member].start == arrival]
        stays = [jobs[member].table.stay for member in members]
        is_list = table.name == LIST
        pool: Sequence[int] = listed[id(table)] or range(fabric.hosts)
        others = [
            (other, hosts)
            for other, hosts, shared in (held if is_list else [*held, *reserved])
            if not (shared and table.shared)
        ]
        busy = set().union(*(hosts for other, hosts in others if any(stay.meets(other) for stay in stays)))
        free = [host for host in pool if host not in busy | servers]
        hosts_of.update(
            zip(members, _allocate(scenario, fabric, [jobs[member] for member in members], free), strict=True)
        )
        held += [(stay, set(hosts_of[member]), table.shared) for stay, member in zip(stays, members, strict=True)]
    return [replace(job, hosts=_mapped(scenario, fabric, job, hosts_of[at], fixed[at])) for at, job in enumerate(jobs)]


def fixed_hosts(job: ResolvedJob, fabric: Fabric) -> list[int]:
    """The hosts that the workload names for its last ranks."""
    with under(f"{job.key}.workload.servers"):
        return host_numbers(job.fixed_hosts, fabric.host_names) if job.fixed_hosts else []


def _key(job: ResolvedJob) -> str:
    """The position of the job's placement table."""
    if job.background:
        return "background.placement"
    return f"{job.key}.placement" if job.table.placement else "placement"


def _named(scenario: "ScenarioTables", fabric: Fabric) -> dict[int, list[int]]:
    """The hosts that placement tables list or choose from, by the identity of the table; those of ``among`` ascend."""
    tables = {id(table): (key, table) for key, table in _tables(scenario)}
    listed: dict[int, list[int]] = {}
    problems: list[Problem] = []
    for number, (key, table) in tables.items():
        for kind in ("hosts", "among"):
            hosts = getattr(table, kind)
            try:
                numbers = host_numbers(hosts, fabric.host_names) if hosts else []
            except Problems as error:
                problems += [problem.under(f"{key}.{kind}") for problem in error.problems]
                continue
            if hosts or number not in listed:
                listed[number] = numbers if kind == "hosts" else sorted(set(numbers))
    if not problems and any(isinstance(host, str) for _, table in tables.values() for host in table.hosts or ()):
        # A host may be listed by its number and by its name.
        lists = {number: listed[number] for number, (_, table) in tables.items() if table.hosts}
        names = fabric.host_names
        problems = list(listed_twice(scenario, lambda table: [names[at] for at in lists.get(id(table), ())]))
    if problems:
        raise Problems(*problems)
    return listed


def _tables(scenario: "ScenarioTables") -> Iterator[tuple[str, "Placement"]]:
    """Every placement table with its key."""
    yield "placement", scenario.placement
    for at, job in enumerate(scenario.jobs):
        if job.placement:
            yield "background.placement" if job.background else f"jobs[{at}].placement", job.placement


def _check_room(hosts: int, jobs: Sequence[ResolvedJob]) -> None:
    """Jobs that run at the same time must fit on the hosts; those that share hosts may need the same ones."""
    changes = []
    for job in jobs:
        if job.placement.shared:
            continue
        needed = job.hosts_needed
        start, end = job.table.stay
        changes += [(start, needed), (end, -needed)]
    # At equal times, departures come before arrivals.
    changes.sort()
    counts = accumulate(change for _, change in changes)
    needed, instant = max(zip(counts, (time for time, _ in changes), strict=True), default=(0, 0))
    if needed <= hosts:
        return
    there = [job for job in jobs if job.table.stay.start <= instant < job.table.stay.end]
    largest = max(there, key=lambda job: (not job.background, job.hosts_needed))
    message = f"more ranks than hosts: at one time the jobs need {plural(needed, 'host')}"
    allowed = f"what {plural(hosts, 'host')}, those of the fabric, have room for"
    if largest.recorded is not None:
        raise Problems(Problem(largest.key, message, allowed=allowed))
    raise Problems(Problem(f"{largest.key}.ranks", message, largest.ranks, allowed))


def _check(fabric: Fabric, jobs: Sequence[ResolvedJob]) -> None:
    """Checks the placement policy and mapping of a table against the fabric and the jobs that it is for."""
    key, table = _key(jobs[0]), jobs[0].placement
    if table.allocator:
        with under(key):
            table.allocator.check(fabric, [job.hosts_needed for job in jobs])
    for job in jobs:
        if job.fixed_hosts and not isinstance(table.mapping, Linear):
            message = f"the workload of {job.name!r} names the hosts of its last ranks"
            raise Problems(Problem(f"{key}.mapping", message, table.mapping.name, "linear"))
        problem = table.mapping.problem_with(job.placed_ranks)
        if problem:
            parameter, message, allowed = problem
            value = getattr(table.mapping, parameter)
            raise Problems(Problem(f"{key}.mapping.{parameter}", f"{message} ({job.name!r})", value, allowed))


def _allocate(
    scenario: "ScenarioTables", fabric: Fabric, jobs: Sequence[ResolvedJob], pool: Sequence[int]
) -> list[list[int]]:
    """The hosts of jobs of one placement table, among those of the pool."""
    table = jobs[0].placement
    seeds = (table.seed, scenario.placement.seed, scenario.seed)
    seed = next(seed for seed in seeds if seed is not None)
    needs = [job.hosts_needed for job in jobs]
    if table.allocator is None:
        given = [list(pool[: needs[0]]) if needs[0] <= len(pool) else None]
    else:
        rngs = [stream(seed, Purpose.PLACEMENT, job.number) for job in jobs]
        requests = [
            Request(need, rng, partial(_communication, scenario, job))
            for need, rng, job in zip(needs, rngs, jobs, strict=True)
        ]
        given = _asked(table.allocator, _key(jobs[0]), requests, pool, fabric)
    allocated = []
    for job, need, hosts in zip(jobs, needs, given, strict=True):
        if hosts is None:
            needs_hosts = f"{plural(job.ranks, 'rank')} need {plural(need, 'host')}, {job.ranks_per_host} a host"
            message = f"job {job.name!r}: {needs_hosts}, and {len(pool)} are free"
            message += f" of those in {_key(job)}.among" if table.among else ""
            if table.allocator is None:
                raise Problems(Problem(f"{_key(job)}.hosts", message, list(table.hosts or ())))
            if need <= len(pool):
                message += f", but not as {table.allocator.wanted()}"
            raise Problems(Problem(f"{job.key}.ranks", message, job.ranks))
        allocated.append(hosts)
    return allocated


def _asked(
    strategy: PlacementPolicy, key: str, requests: Sequence[Request], pool: Sequence[int], fabric: Fabric
) -> list[list[int] | None]:
    """The hosts that a strategy returns: free ones, as many as requested, without duplicates."""
    try:
        given = strategy.allocate_together(pool, requests, fabric)
    except Exception as error:
        problem = blamed(strategy, key, error)
        if problem is None:
            raise
        raise Problems(problem) from error
    free = set(pool)
    for request, hosts in zip(requests, given, strict=True):
        if hosts is None:
            continue
        if len(hosts) != request.hosts or len(set(hosts)) != len(hosts) or not free.issuperset(hosts):
            message = f"it allocates {hosts} to a job of {plural(request.hosts, 'host')}"
            raise Problems(Problem(f"{key}.name", message, strategy.name, "free hosts, as many, each once"))
        free.difference_update(hosts)
    return given


def _communication(scenario: "ScenarioTables", job: ResolvedJob) -> Communication:
    """The job's communication pattern; its local unit is counted in hosts."""
    verdict, _ = judge(_traffic(scenario, job))
    return Communication(verdict.kind, verdict.unit and hosts_needed(verdict.unit, job.ranks_per_host))


def _traffic(scenario: "ScenarioTables", job: ResolvedJob) -> "Traffic":
    return observe(program_of(job.table.source, job.ranks, scenario.seed, job.number))


def _mapped(
    scenario: "ScenarioTables", fabric: Fabric, job: ResolvedJob, hosts: Sequence[int], fixed: Sequence[int]
) -> tuple[int, ...]:
    places = [*fill(hosts, job.placed_ranks, job.ranks_per_host), *fixed]

    def distances() -> NDArray[numpy.float64]:
        return fabric.distances(places, rails_of(scenario, replace(job, hosts=tuple(places)), fabric))

    def traffic() -> NDArray[numpy.float64]:
        return _traffic(scenario, job).total.astype(numpy.float64)

    return tuple(places[place] for place in job.placement.mapping.places(Slots(places, distances, traffic)))


def rails_of(scenario: "ScenarioTables", job: "ResolvedJob", fabric: "Fabric") -> dict[str, Any] | None:
    """The rail policy of a job that has hosts, as the simulator takes it; None for the usual one."""
    if job.table.rails is None:
        several = job.nccl is not None and max(int(fabric.adapters_of_hosts[host]) for host in job.hosts) > 1
        if not several:
            return None
    rng = stream(scenario.seed, Purpose.RAILS, job.number)
    adapters = {host: int(fabric.adapters_of_hosts[host]) for host in job.hosts}
    policy = (job.table.rails or RailPolicy(policy="by_rank")).spec(job.hosts, adapters, rng)
    with under(job.key):
        fabric.check_rails(job.hosts, policy)
    return policy


def rail_notes(name: str, policy: RailPolicy | None, adapters: NDArray[numpy.int64]) -> Iterator[str]:
    """Yield notes on a job whose hosts differ in their number of ``adapters``."""
    fewest, most = int(adapters.min()), int(adapters.max())
    if fewest < most and not (policy and policy.policy == "only"):
        yield (
            f"the hosts of job {name!r} have {fewest} to {most} adapters: "
            "an adapter of a host with fewer serves several rails of the others"
        )
