"""Checks across keys: duplicate names, service levels without a lane, hosts of two jobs."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from fairlane.core.errors import Problem
from fairlane.core.units import DURATION, POWER
from fairlane.core.wording import plural
from fairlane.model.placement import hosts_needed
from fairlane.model.scenario.classes import class_problems
from fairlane.model.scenario.levels import MAX_LEVELS

if TYPE_CHECKING:
    from fairlane.inputs.hosts import Host
    from fairlane.model.scenario.models import Job, Placement, Qos
    from fairlane.model.scenario.tables import ScenarioTables

WITH_STRATEGY = {"strategy", "lanes", "lossy", "trim_vl"}  # keys of ``qos`` that are allowed together with a strategy


def check(scenario: "ScenarioTables") -> Iterator[Problem]:
    """Every contradiction between the keys of a scenario, before anything is built."""
    if scenario.until is not None and scenario.duration != scenario.until.at_most:
        message = "the table until says when the run ends"
        yield Problem("duration", message, DURATION.format(scenario.duration), "duration or until")
    yield from _names(scenario)
    yield from _set_twice(scenario)
    yield from _observed(scenario)
    yield from class_problems(scenario)
    yield from _lanes(scenario)
    yield from listed_twice(scenario, lambda placement: placement.hosts or ())
    for at, job in enumerate(scenario.jobs):
        yield from _length(at, job)
    yield from _rails(scenario)
    yield from _caps(scenario)


def late(scenario: "ScenarioTables", end: int, step: int = 1) -> Iterator[Problem]:
    """Errors for jobs that start after the end of the run, ``end``, ps.

    Jobs can begin at multiples of ``step`` only. Background jobs are skipped: their times are drawn.
    """
    for at, job in enumerate(scenario.jobs):
        begin = -(-job.start // step) * step
        if begin >= end and not job.background:
            allowed = f"before {DURATION.format(end)}" if step == 1 else f"at most {DURATION.format(end - step)}"
            message = "starts after the end of the run"
            yield Problem(f"jobs[{at}].start", message, DURATION.format(job.start), allowed)


def _names(scenario: "ScenarioTables") -> Iterator[Problem]:
    seen: set[str] = set()
    for at, job in enumerate(scenario.jobs):
        for name in job.names():
            if name in seen:
                yield Problem(f"jobs[{at}].name", "duplicate job name", name)
            seen.add(name)


def _observed(scenario: "ScenarioTables") -> Iterator[Problem]:
    names = [name for job in scenario.jobs for name in job.names()]
    observe = scenario.observe
    named = [(f"observe.iterations[{at}]", name) for at, name in enumerate(observe.iterations)]
    tables = {"switch_counters": observe.switch_counters, "record": observe.record}
    named += [(f"observe.{key}.job", table.job) for key, table in tables.items() if table is not None]
    for key, name in named:
        if name not in names:
            yield Problem.unknown(key, "job", name, names, name)


def _set_twice(scenario: "ScenarioTables") -> Iterator[Problem]:
    """Keys that the QoS strategy sets, too."""
    name = scenario.qos.strategy
    if name is None:
        return
    keys = [
        f"qos.{key}" for key in type(scenario.qos).model_fields if key in scenario.qos.model_fields_set - WITH_STRATEGY
    ]
    for at, job in enumerate(scenario.jobs):
        per_job = ("service_level", "service_levels")
        keys += [f"jobs[{at}].{key}" for key in per_job if getattr(job, key) is not None]
    keys += [
        f"classes.{name}.service_level"
        for name, message_class in scenario.classes.items()
        if message_class.service_level is not None
    ]
    for key in keys:
        yield Problem(key, f"is set by the QoS strategy {name}", allowed="either this key or qos.strategy")


def levels_in_use(scenario: "ScenarioTables") -> dict[int, str]:
    """The service levels that the scenario mentions, each with the first key that does."""
    levels = {scenario.qos.default: "qos.default"}
    for kind, level in scenario.qos.kinds:
        if level is not None:
            levels.setdefault(level, f"qos.kinds.{kind}")
    for name, message_class in scenario.classes.items():
        if message_class.service_level is not None:
            levels.setdefault(message_class.service_level, f"classes.{name}.service_level")
    for at, job in enumerate(scenario.jobs):
        if job.service_level is not None:
            levels.setdefault(job.service_level, f"jobs[{at}].service_level")
        if job.service_levels:
            for level in (job.service_levels.default, *job.service_levels.ranks.values()):
                if level is not None:
                    levels.setdefault(level, f"jobs[{at}].service_levels")
    return levels


def lanes_of_levels(qos: "Qos", in_use: Iterable[int]) -> list[int]:
    """The virtual lane of each service level that has one of its own."""
    return qos.sl2vl or list(range(qos.service_levels or max(in_use) + 1))


def sl2vl(scenario: "ScenarioTables") -> list[int]:
    """The virtual lane of each of the sixteen service levels; levels without one of their own take lane 0."""
    given = lanes_of_levels(scenario.qos, levels_in_use(scenario))
    return [*given, *[0] * (MAX_LEVELS - len(given))]


def lossy_lanes(scenario: "ScenarioTables") -> dict[str, Any]:
    """Lossy virtual lanes and that of headers, as the simulator takes them; empty without lossy lanes."""
    lossy, trim_vl = scenario.qos.lossy, scenario.qos.trim_vl
    if lossy is True:
        lossy = sorted(set(sl2vl(scenario)) - {trim_vl})
    return {key: value for key, value in (("lossy", lossy or None), ("trim_vl", trim_vl)) if value is not None}


def _lanes(scenario: "ScenarioTables") -> Iterator[Problem]:
    qos, lanes = scenario.qos, scenario.qos.lanes
    if qos.sl2vl and qos.service_levels and len(qos.sl2vl) < qos.service_levels:
        yield Problem("qos.sl2vl", f"has {len(qos.sl2vl)} lanes for {qos.service_levels} service levels", qos.sl2vl)
    table = len(qos.sl2vl) if qos.sl2vl else qos.service_levels or MAX_LEVELS
    for level, key in levels_in_use(scenario).items():
        if level >= table:
            yield Problem(key, "service level without a virtual lane", level, f"0 to {table - 1}, more with qos.sl2vl")
    mapped = sl2vl(scenario)
    if lanes is not None and max(mapped) >= lanes:
        level = mapped.index(max(mapped))
        message = f"service level {level} is mapped to lane {max(mapped)}: more service levels than lanes"
        yield Problem("qos.lanes", message, lanes, f"at least {max(mapped) + 1}")


def _rails(scenario: "ScenarioTables") -> Iterator[Problem]:
    rails = scenario.fabric.rails
    if rails is None and scenario.fabric.topology == "imported":
        return  # the number of adapters is known after the fabric is built
    count = rails.count if rails else 1
    for at, job in enumerate(scenario.jobs):
        for key in ("only", "to"):
            rail = getattr(job.rails, key) if job.rails else None
            if rail is not None and rail >= count:
                allowed = f"0 to {count - 1}" if rails else "0, or more in fabric.rails"
                yield Problem(f"jobs[{at}].rails.{key}", "the fabric has no such rail", rail, allowed)


def _caps(scenario: "ScenarioTables") -> Iterator[Problem]:
    for at, job in enumerate(scenario.jobs):
        if job.power_cap is None:
            continue
        if scenario.power is None:
            message = "the scenario has no table `power`"
            yield Problem(f"jobs[{at}].power_cap", message, POWER.format(job.power_cap), "with a table `power`")
        elif problem := scenario.power.problem_with(job.power_cap):
            yield problem.under(f"jobs[{at}].power_cap")


def listed_twice(scenario: "ScenarioTables", named: "Callable[[Placement], Iterable[Host]]") -> Iterator[Problem]:
    """Hosts that are listed for two jobs at one time, or twice for one; ``named`` says which a placement lists."""
    owners: dict[Host, list[tuple[str, list[Job], bool]]] = defaultdict(list)
    without = [job for job in scenario.jobs if job.placement is None]
    tables: list[tuple[str, Placement | None, list[Job]]] = [("placement", scenario.placement, without)]
    foreground = [(at, job) for at, job in enumerate(scenario.jobs) if not job.background]
    tables += [(f"jobs[{at}].placement", job.placement, [job]) for at, job in foreground]
    drawn = [job for job in scenario.jobs if job.background]
    tables += [("background.placement", job.placement, drawn) for job in drawn[:1]]  # they share one table
    for key, placement, jobs in tables:
        for host in named(placement) if placement else ():
            for owner, others, shared in owners[host]:
                if owner == key:
                    yield Problem(f"{key}.hosts", f"host {host} is listed twice", allowed="each host once")
                elif any(job.stay.meets(other.stay) for job in jobs for other in others) and not (
                    shared and placement and placement.shared
                ):
                    allowed = "each host once, unless the jobs run at different times or both placements are shared"
                    yield Problem(f"{key}.hosts", f"host {host} is in {owner}.hosts already", allowed=allowed)
            owners[host].append((key, jobs, placement is not None and placement.shared))


def _length(at: int, job: "Job") -> Iterator[Problem]:
    """A job's own list has a host for every group of ranks of every copy."""
    if job.placement and job.placement.hosts is not None and job.ranks:
        fixed = len(job.workload.fixed_hosts()) if job.workload else 0
        needed = job.count * hosts_needed(job.ranks - fixed, job.ranks_per_host or job.placement.ranks_per_host)
        if len(job.placement.hosts) != needed:
            message = f"lists {plural(len(job.placement.hosts), 'host')}, but the job needs {needed}"
            yield Problem(f"jobs[{at}].placement.hosts", message, allowed=f"exactly {plural(needed, 'host')}")
