"""Resolves a scenario into the simulator's input: choices made, quantities rounded, programs generated."""

import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor, wait
from dataclasses import replace
from threading import Event
from typing import TYPE_CHECKING, Any, TypeVar

import numpy

from fairlane.core import bridge
from fairlane.core.errors import BuildError, Problem, RunError
from fairlane.core.units import CLOCK_END
from fairlane.core.wording import plural
from fairlane.inputs.problems import Problems, under, validated
from fairlane.inputs.registry import blamed
from fairlane.model.fabric.congestion import mixed_speeds, slow_links
from fairlane.model.fabric.view import Fabric
from fairlane.model.power import Pace, job_power
from fairlane.model.qos import Expansion, JobShare
from fairlane.model.scenario.calibrate import CalibrationError, calibrate
from fairlane.model.scenario.checks import WITH_STRATEGY, lossy_lanes, sl2vl
from fairlane.model.scenario.classes import class_specs, jobs_of, with_communicators
from fairlane.model.scenario.estimate import estimate, fabric_parts, within_memory
from fairlane.model.scenario.placing import fixed_hosts, place, rail_notes, rails_of
from fairlane.model.scenario.remarks import memory_notes, network_notes
from fairlane.model.scenario.resolved import Resolved, ResolvedJob, injection_of
from fairlane.model.scenario.traffic import MeanPath
from fairlane.model.workload.builder import JobScript
from fairlane.model.workload.trace import Trace

if TYPE_CHECKING:
    from fairlane.model.scenario.models import Job, Qos
    from fairlane.model.scenario.tables import ScenarioTables

_T = TypeVar("_T")
_Scenario = TypeVar("_Scenario", bound="ScenarioTables")

_POLL_S = 0.1  # how often it is checked for Ctrl-C, s


def resolve(scenario: "ScenarioTables") -> Resolved:
    """Decides everything; raises ``Problems`` with what cannot be built."""
    scenario = _expanded(scenario)
    # Everything but the programs is checked first, because calibrating compute times takes long.
    resolved = _decide(scenario)
    stop = Event()
    pool = ThreadPoolExecutor()  # the simulations that calibrate release the interpreter's lock
    try:
        jobs = [pool.submit(_programmed, scenario, resolved.alone(at), stop) for at in range(len(resolved.jobs))]
        programmed = tuple(map(_result, jobs))
    finally:
        stop.set()  # after Ctrl-C or an error, calibrations that are under way end soon
        pool.shutdown(cancel_futures=True)
    if classes := resolved.tables["qos"].get("classes"):
        known = {job.name: job.program.communicators for job in programmed}
        optional = [name for name, message_class in scenario.classes.items() if message_class.allow_missing]
        named, problems = with_communicators(classes, known, optional)
        if problems:
            raise Problems(*problems)
        resolved = replace(resolved, tables=_with_classes(resolved.tables, named))
    return replace(resolved, jobs=programmed)


def decide(scenario: "ScenarioTables") -> Resolved:
    """Hosts, lanes and arbiter, checked with jobs that do nothing; raises ``Problems``."""
    return _decide(_expanded(scenario))


def _expanded(scenario: "ScenarioTables") -> "ScenarioTables":
    """The same with the jobs of its background, if there is memory for its fabric."""
    fabric, switches = scenario.fabric.spec, scenario.network.switch.name
    within_memory(building(lambda: fabric_parts(fabric, len(set(sl2vl(scenario)) or {0}), switches)), scenario)
    return with_background(scenario)


def without_strategy(scenario: "ScenarioTables") -> "ScenarioTables":
    """The same with the service levels and lanes that its strategy stands for; ``Problems`` if it does not fit."""
    scenario = with_background(scenario)
    return _with_strategy(scenario, list(copies(scenario)))[0]


def _decide(scenario: "ScenarioTables") -> Resolved:
    counted = scenario.observe.switch_counters
    scenario, jobs = _with_strategy(scenario, list(copies(scenario)))
    tables = _with_classes(_tables(scenario), class_specs(scenario, jobs))
    fabric = building(lambda: Fabric.build(tables["fabric"]))
    lanes = len(set(tables["qos"]["sl2vl"]) or {0})
    path = MeanPath.of(tables["fabric"], fabric, lanes, scenario.network.switch_latency)
    estimated = estimate(scenario, jobs, path)
    within_memory(estimated.parts, scenario)
    marked = {*scenario.observe.iterations, *filter(None, [counted and counted.job])}
    jobs = [
        replace(job, marks=job.name in marked, rails=rails_of(scenario, job, fabric))
        for job in place(scenario, fabric, jobs)
    ]
    observe = scenario.observe
    looked_at = (observe.interval, observe.switch_counters, scenario.until, observe.leave_one_out)
    resolved = Resolved(scenario.name, scenario.seed, scenario.duration, tables, tuple(jobs), *looked_at, fabric=fabric)
    try:
        building(lambda: fabric.check_simulation(resolved.spec, [job.program for job in jobs]))
    except Problems as problems:
        raise Problems(*(_of_job(problem, jobs) for problem in problems.problems)) from None
    powered = _with_power(scenario, jobs, fabric.hosts)
    remarks = [*network_notes(tables, fabric, [job.spec().get("transport") for job in jobs])]
    remarks += memory_notes(tables, {job.name: job.hosts for job in jobs})
    return replace(resolved, jobs=powered, notes=(*_notes(jobs, fabric), *remarks), estimate=estimated)


def _notes(jobs: list[ResolvedJob], fabric: Fabric) -> Iterator[str]:
    """Yield notes on traces, on jobs whose hosts differ in their adapters, and on links slower than the rest."""
    for job in jobs:
        if job.table.trace and (left_out := job.table.trace.left_out()):
            yield f"job {job.name!r} leaves out of its trace: {left_out}"
    for job in jobs:
        if job.nccl and (unused := job.nccl.remark(job.name, job.hosts)):
            yield unused
        hosts = numpy.asarray(job.hosts)
        yield from rail_notes(job.name, job.table.rails, fabric.adapters_of_hosts[hosts])
        only = job.rails["only"] if job.rails and job.rails.get("policy") == "only" else None
        bandwidths = fabric.bandwidths_of_hosts(only)
        if numpy.ptp(bandwidths[hosts]) and (mixed := mixed_speeds(job.name, job.hosts, bandwidths, fabric.host_names)):
            yield mixed
    yield from slow_links(fabric)


def _of_job(problem: Problem, jobs: list[ResolvedJob]) -> Problem:
    """The problem with the key of the job in the scenario: the simulator counts copies."""
    match = re.match(r"jobs\[(\d+)\]", problem.key)
    return replace(problem, key=jobs[int(match[1])].key + problem.key[match.end() :]) if match else problem


def _with_power(scenario: "ScenarioTables", jobs: list[ResolvedJob], hosts: int) -> tuple[ResolvedJob, ...]:
    """The jobs with their sockets, if the scenario has a table ``power``."""
    table = scenario.power
    if table is None:
        return tuple(jobs)
    machine, powered = table.draw(hosts), []
    for job in jobs:
        cap = table.cap if job.table.power_cap is None else job.table.power_cap
        powered.append(replace(job, power=job_power(cap, table.waiting, job.hosts, machine)))
    return tuple(powered)


def _with_strategy(scenario: "ScenarioTables", jobs: list[ResolvedJob]) -> tuple["ScenarioTables", list[ResolvedJob]]:
    """The same with the service levels, lanes and shares that the strategy stands for."""
    classes = {name: jobs_of(message_class, jobs) for name, message_class in scenario.classes.items()}
    shares = [
        JobShare(job.name, job.hosts_needed, tuple(name for name, chosen in classes.items() if job.name in chosen))
        for job in jobs
    ]
    qos, levels = expand(scenario.qos, shares)
    levelled = [replace(job, service_level=levels.jobs.get(job.name, job.service_level)) for job in jobs]
    given = {
        name: message_class.model_copy(update={"service_level": levels.classes.get(name, message_class.service_level)})
        for name, message_class in scenario.classes.items()
    }
    return scenario.model_copy(update={"qos": qos, "classes": given}), levelled


def expand(qos: "Qos", jobs: Sequence[JobShare]) -> tuple["Qos", Expansion]:
    """The table that the strategy stands for, and what it has returned; nothing without a strategy."""
    if qos.strategy is None or qos.expand is None:
        return qos, Expansion(sl2vl=[], arbiter={})
    try:
        expansion = qos.expand(jobs)
        given = {"sl2vl": list(expansion.sl2vl), "kinds": dict(expansion.kinds), "arbiter": dict(expansion.arbiter)}
    except ValueError as error:
        raise Problems(Problem("qos.strategy", str(error), qos.strategy)) from None
    except Exception as error:
        problem = blamed(qos.expand, "qos.strategy", error)
        if problem is None:
            raise
        raise Problems(problem) from error
    try:
        kept = {key: getattr(qos, key) for key in sorted(WITH_STRATEGY - {"strategy"})}
        return validated(type(qos), {**kept, **given}), expansion
    except Problems as problems:
        cause = f"the strategy {qos.strategy} makes of the jobs: "
        raise Problems(
            *(replace(reported, message=cause + reported.message).under("qos") for reported in problems.problems)
        ) from None


def _result(job: Future[_T]) -> _T:
    """Waits in steps: a signal that another thread takes does not wake one that waits without end."""
    while not job.done():
        wait([job], timeout=_POLL_S)
    return job.result()


def _with_classes(tables: Mapping[str, Any], classes: list[dict[str, Any]]) -> dict[str, Any]:
    """The tables with these classes; unchanged without any."""
    return {**tables, **({"qos": {**tables["qos"], "classes": classes}} if classes else {})}


def _tables(scenario: "ScenarioTables") -> dict[str, Any]:
    network, qos, mpi, observe = scenario.network, scenario.qos, scenario.mpi, scenario.observe
    return {
        "fabric": scenario.fabric.spec,
        "network": network.spec,
        "qos": {
            "lanes": qos.lanes,
            "sl2vl": sl2vl(scenario),
            "default": qos.default,
            "kinds": dict(qos.kinds),
            "arbiter": {"name": qos.arbiter.name, "params": qos.arbiter.parameters},
            **lossy_lanes(scenario),
        },
        "mpi": {
            **dict(mpi),
            **{key: list(map(dict, getattr(mpi, key))) for key in ("send_overheads", "adapter_delays")},
        },
        "observe": {
            **observe.model_dump(
                exclude={"interval", "iterations", "switch_counters", "input_queueing", "leave_one_out"}
            ),
            "record": _record(scenario),
            "onward_waiting": observe.input_queueing or observe.switch_counters is not None,
        },
        "faults": [fault.spec for fault in scenario.fault],
    }


def _record(scenario: "ScenarioTables") -> dict[str, int] | None:
    """Return the job that is recorded and the time, as the simulator takes it."""
    record = scenario.observe.record
    if record is None:
        return None
    names = [name for job in scenario.jobs for name in job.names()]
    # The run ends a little after its duration, with the simulator's window.
    stop = CLOCK_END if record.stop is None else record.stop
    return {"job": names.index(record.job), "from": record.start, "to": stop}


def building(build: Callable[[], _T]) -> _T:
    """Builds a part of the simulation; the simulator's error becomes a problem of the scenario's key."""
    try:
        return build()
    except BuildError as error:
        raise Problems(error.problem) from None


def copies(scenario: "ScenarioTables") -> Iterator[ResolvedJob]:
    """The jobs of the scenario's tables, each as often as its ``count``; nothing is decided about them."""
    number = 0
    for at, table in enumerate(scenario.jobs):
        key = f"jobs[{at}]"
        recorded = _recorded(table, key)
        placement, levels = table.placement or scenario.placement, table.service_levels
        ranks = recorded.ranks if recorded else table.ranks or 0
        for copy, name in enumerate(table.names()):
            yield ResolvedJob(
                table=table,
                key=key,
                number=number if table.stream is None else table.stream + copy,
                name=name,
                ranks=ranks,
                placement=placement,
                ranks_per_host=table.ranks_per_host or placement.ranks_per_host,
                program=bridge.ProgramBuilder(ranks).build(),
                recorded=recorded,
                service_level=levels.default if levels and levels.default is not None else table.service_level,
                rank_levels=dict(levels.ranks) if levels else {},
                start=table.start,
                stop=table.departure,
            )
            number += 1


def _recorded(table: "Job", key: str) -> bridge.Program | None:
    """The program of a table's trace, if it has one."""
    if table.trace is None:
        return None
    with under(f"{key}.trace"):
        recorded = table.trace.program()
    if table.ranks not in (None, recorded.ranks):
        raise Problems(Problem(f"{key}.ranks", f"the trace has {plural(recorded.ranks, 'rank')}", table.ranks))
    return recorded


def _programmed(scenario: "ScenarioTables", alone: Resolved, stop: Event) -> ResolvedJob:
    """The only job of ``alone``, with its program."""
    job = alone.jobs[0]
    capped = job.power is not None and job.power.capped()
    frequencies = job.power.frequencies() if job.power and capped else ()
    workload = job.table.source
    if isinstance(workload, Trace):
        pace = Pace(frequencies, workload.memory_bound)
        return replace(job, program=workload.program(pace) if capped else job.recorded or workload.program())

    def script(iterations: int | None = None, pace: Pace | None = None) -> JobScript:
        return JobScript(
            job.ranks,
            seed=scenario.seed,
            job=job.number,
            variant=workload.variant,
            iterations=iterations,
            pace=pace,
            stop=stop,
            injection=lambda: injection_of(alone, job),
        )

    try:
        if classes := alone.tables["qos"].get("classes"):
            names = workload.program(script(1), 0).communicators
            alone = replace(
                alone, tables=_with_classes(alone.tables, with_communicators(classes, {job.name: names})[0])
            )
        whole = {**alone.tables, "faults": []}  # what a job computes does not depend on what goes wrong
        always = replace(alone, jobs=(replace(job, start=0, stop=None),), tables=whole)
        begun = time.monotonic()
        compute = workload.compute if workload.compute is not None else calibrate(workload, script, always, stop)
        calibrated = (begun, time.monotonic()) if workload.compute is None else None
        iterations = job.table.stop if isinstance(job.table.stop, int) else None
        # Compute times are calibrated without a power cap; the cap's slowdown is added.
        paced = Pace(frequencies, workload.memory_bound) if capped else None
        written = workload.program(script(iterations, paced), compute)
        return replace(job, program=written, compute=compute, calibrated=calibrated)
    except CalibrationError as error:
        raise Problems(Problem(f"{job.key}.workload.compute_share", str(error), workload.target_share)) from None
    except OverflowError:
        message = "its parameters make a number that the simulator cannot hold"
        raise Problems(
            Problem(f"{job.key}.workload", message, allowed="sizes below 1 TiB, times below 53 days")
        ) from None
    except Exception as error:
        problem = blamed(workload, f"{job.key}.workload", error)
        if isinstance(error, RunError | CancelledError) or problem is None:
            raise
        raise Problems(problem) from error


def with_background(scenario: _Scenario) -> _Scenario:
    """The same with the background's jobs among its own, and no table that draws them.

    Raises ``Problems`` if the mix does not fit.
    """
    if scenario.background is None:
        return scenario
    with scenario.reading():
        jobs = list(copies(scenario))
        fabric = building(lambda: Fabric.build(scenario.fabric.spec))
        servers = set().union(*(fixed_hosts(job, fabric) for job in jobs))
        taken = sum(job.hosts_needed for job in jobs) + len(servers)
        drawn = list(scenario.background.draw(max(0, fabric.hosts - taken), scenario.seed))
    names = {job.name for job in jobs}
    double = next((job.name for job in drawn if job.name in names), None)
    if double is not None:
        raise Problems(Problem("jobs", "duplicate job name: a background job has it", double, "another name"))
    return scenario.model_copy(update={"jobs": [*scenario.jobs, *drawn], "background": None})
