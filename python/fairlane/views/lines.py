"""Lines of text that commands print: checks of scenarios and studies, times of simulations, answers to queries."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import polars as pl

from fairlane.core.wording import listed, percent, plural, seconds, wall_time
from fairlane.inputs.hosts import shortened
from fairlane.model.scenario import Resolved, Scenario
from fairlane.results.run import Run
from fairlane.views.fabric import lanes_text, routes_text
from fairlane.views.tables import Column, Faint, Table

if TYPE_CHECKING:
    from fairlane.study.running import Cost
    from fairlane.study.study import Study


def checked_scenario(loaded: Scenario, resolved: Resolved, facts: Mapping[str, Any]) -> Iterator[str]:
    """A scenario; ``facts`` are its ``virtual_lanes``, ``coverage``, ``jobs``, ``code`` and ``plugins``."""
    yield str(loaded)
    yield f"  {lanes_text(facts['virtual_lanes'])}"
    yield f"  routes: {routes_text(facts['coverage'])}"
    yield from (f"  warning: {line}" for line in facts["coverage"].warnings)
    if loaded.model:
        keys = (f"{key} = {value}" for key, value in loaded.applied.keys.items())
        yield f"  model {loaded.model} sets: {', '.join(keys)}"
        yield from (f"  unlike {loaded.model}: {line}" for line in loaded.applied.differs)
    if resolved.estimate is not None:
        yield f"  {resolved.estimate}"
    for job in facts["jobs"]:
        yield f"  {job['name']}: {plural(job['ranks'], 'rank')} of {job['workload']} on {shortened(job['host_names'])}"
    yield from _code(facts)
    yield from (f"  note: {note}" for note in resolved.notes)


def checked_study(loaded: "Study", cost: "Cost", facts: Mapping[str, Any]) -> Iterator[str]:
    """A study and what it takes; ``facts`` are its ``code`` and ``plugins``."""
    yield f"{loaded.name}: a study of {listed([*loaded.treatments]) or 'no treatment'}"
    yield from (f"  {line}" for line in cost.lines())
    yield from _code(facts)


def _code(facts: Mapping[str, Any]) -> Iterator[str]:
    """The code that an input names, and that of plug-ins."""
    waiting = "it has not run and is not checked without --allow-code"
    yield from (f"  names code: {name}; {waiting}" for name in facts["code"])
    yield from (f"  runs code: {name}" for name in facts["plugins"])


_PROFILE = {
    "simulating": "workers in simulations",
    "set-up": "workers building scenarios and finding compute times",
    "waiting": "workers starting, without a task, or with their answer on its way",
    "planning": "this process reading the study and trying every scenario, before workers start",
    "writing": "this process storing answers and tables",
}
_OF_WORKERS = ("simulating", "set-up", "waiting")


def times_of_run(run: Run) -> Iterator[str]:
    """Yield the parts of the wall time of a run, and the engine's speed in the co-run."""
    spent = run.meta.timings
    if spent is None:
        return
    parts = {"set-up": spent.set_up_s, "calibration": spent.calibration_s, "simulation": spent.simulation_s}
    more = {"tables": spent.writing_s, "figures": spent.figures_s}
    known = parts | {name: value for name, value in more.items() if value is not None}
    each = ", ".join(f"{name} {wall_time(value)}" for name, value in known.items())
    yield Faint(f"Wall time {wall_time(sum(known.values()))}: {each}")
    if spent.engine_s:
        speed = f"{run.meta.packet_hops / spent.engine_s / 1e6:.1f} M packet-hops/s"
        yield Faint(f"Engine, co-run {wall_time(spent.engine_s)}: {speed}")


def times_of_study(times: Mapping[str, float]) -> Iterator[str]:
    """Yield the parts of the time of a study, summed over workers: the shares of its ``profile``."""
    workers = plural(round(times["workers"]), "worker")
    yield f"Where the time went: {seconds(times['wall'])}, of these {seconds(times['spent'])} with {workers}"
    for name, meaning in _PROFILE.items():
        of = times["spent"] * times["workers"] if name in _OF_WORKERS else times["wall"]
        share = percent(times[name] / of) if of else ""
        yield f"  {name:<10}  {seconds(times[name]):>8}  {share:>6}  {meaning}"


def times_of_reproduction(runs: int, wall_s: float, cpu_s: float, *, stored: int, unused: int) -> Iterator[str]:
    """Yield the times of the runs of a reproduction, whenever they were computed, and what was stored before."""
    yield f"{runs} runs took {seconds(wall_s)}, {seconds(cpu_s)} of processor time, summed over workers."
    if stored:
        yield f"{stored - unused} of them were stored already."
    if unused:
        reason = "not used: of other settings, or computed by another version of the simulator"
        yield f"{unused} stored runs are {reason}."


def answer_table(frame: pl.DataFrame) -> Table:
    """The rows as a table."""
    numeric = {name: kind.is_numeric() for name, kind in frame.schema.items()}
    return Table([Column(name, name, _value, left=not right) for name, right in numeric.items()], frame.to_dicts())


def answer_csv(frame: pl.DataFrame) -> str:
    """The rows as CSV, which has neither lists nor records: these are text."""
    nested = [name for name, kind in frame.schema.items() if kind.is_nested()]
    texts = [[None if value is None else str(value) for value in frame[name].to_list()] for name in nested]
    flat = [pl.Series(name, text, pl.String) for name, text in zip(nested, texts, strict=True)]
    return frame.with_columns(flat).write_csv().removesuffix("\n")


def _value(value: object) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)
