"""The tables of a run, from what a simulation has measured and the scenario that it simulates."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any, Self

import polars as pl

from fairlane.core import bridge
from fairlane.core.drive import Engine
from fairlane.core.tables import EngineTables, Work, frame, marks
from fairlane.model.power import power
from fairlane.model.scenario import Resolved
from fairlane.results import accelerators, derive
from fairlane.results.classes import ClassCounts, class_interference, classes
from fairlane.results.culprit import LeftOut, lost_time
from fairlane.results.latency import Latency
from fairlane.results.schemas import RUN


@dataclass(frozen=True)
class Observed:
    """Everything that one simulation has measured, in the engine's own columns."""

    measured: EngineTables
    latency: Latency | None = None
    """Latencies, unless ``observe.counters`` is off."""
    classes: ClassCounts | None = None
    """What was counted by traffic class, in scenarios with classes."""
    marks: pl.DataFrame | None = None
    """Ranks' marks of iterations, with ``observe.iterations``."""
    record: Mapping[str, pl.DataFrame] = field(default_factory=dict)
    """Tables of single ports, messages and packets, by name, as far as the scenario asks for them."""

    @classmethod
    def of(cls, engine: Engine, scenario: Resolved) -> Self:
        """Read the measurements of ``engine``, which simulates ``scenario``, so far."""
        observe = scenario.tables["observe"]
        by_port = ("port_interference",) if observe["interference_by_port"] else ()
        return cls(
            EngineTables.of(engine),
            Latency.measured(engine) if observe["counters"] else None,
            ClassCounts.measured(engine) if observe["counters"] else None,
            marks(engine) if any(job.marks or job.measures for job in scenario.jobs) else None,
            {name: frame(engine.table(name)) for name in (*by_port, *scenario.recorded)},
        )


def _unless_empty(table: pl.DataFrame) -> pl.DataFrame | None:
    return table if table.height else None


class Links:
    """The links of a fabric and the names of its hosts, built when they are first asked for."""

    def __init__(self, fabric: Mapping[str, Any]) -> None:
        """``fabric``: its resolved specification."""
        self._fabric = fabric

    @cached_property
    def table(self) -> pl.DataFrame:
        """One row per link, as in the table ``ports``."""
        built = bridge.fabric(self._fabric)
        return derive.links(frame(built.links()), built.classes())

    @cached_property
    def hosts(self) -> list[str]:
        """The names of the hosts, by number."""
        hosts = self.table.filter(pl.col("from_vertex").str.starts_with("host "))
        number = pl.col("from_vertex").str.strip_prefix("host ").cast(pl.UInt32)
        return hosts.select(number, "from_name").unique("from_vertex").sort("from_vertex")["from_name"].to_list()


@dataclass(frozen=True)
class Tables:
    """The tables of a run of ``scenario``, each made when it is asked for."""

    scenario: Resolved
    observed: Observed
    links: Links
    alone: Sequence[Work | None] = ()
    """The isolated run of each job, None where there is none to compare with."""
    without: Sequence[LeftOut] = ()
    """The leave-one-out runs."""
    samples: pl.DataFrame | None = None
    """Samples of ports, in the engine's own columns."""
    counters: pl.DataFrame | None = None
    """The table of flits and stalls."""
    counters_before: pl.DataFrame | None = None
    """The same before each iteration."""
    latency_intervals: pl.DataFrame | None = None
    """The ends of the intervals of latencies."""

    def items(self) -> Iterator[tuple[str, pl.DataFrame]]:
        """Every table that there is, by name."""
        for name in RUN:
            table = self.table(name)
            if table is not None:
                yield name, table

    def table(self, name: str) -> pl.DataFrame | None:
        """One table of a run (see ``results.schemas``); None if the scenario does not ask for it."""
        return self._makers.get(name, lambda: None)()

    @cached_property
    def _makers(self) -> dict[str, Callable[[], pl.DataFrame | None]]:
        labels, links, seen = derive.labels_of(self.scenario), self.links, self.observed
        makers: dict[str, Callable[[], pl.DataFrame | None]] = {
            "jobs": lambda: derive.jobs(labels, seen.measured, self.alone or [None] * len(labels)),
            "ranks": lambda: derive.ranks(labels, seen.measured, links.hosts),
            "completions": lambda: derive.completions(labels, seen.measured),
            "calls": lambda: derive.calls(labels, seen.measured),
            "ports": lambda: derive.ports(links.table, seen.measured),
            "interference": lambda: derive.interference(labels, seen.measured),
            "lost_time": lambda: lost_time(labels, seen.measured, self.alone, self.without) if self.without else None,
            "power": self._power,
            "counters": lambda: self.counters,
            "counters_before": lambda: self.counters_before,
            "failures": lambda: _unless_empty(derive.failures(labels, seen.measured, self.alone, links.hosts)),
            "sweeps": lambda: (
                _unless_empty(derive.sweeps(seen.measured.sweeps)) if seen.measured.sweeps.height else None
            ),
            "pauses": lambda: derive.pauses(links.table, seen.measured) if seen.measured.pauses.height else None,
        }
        if (latency := seen.latency) is not None:
            makers["latency"] = lambda: derive.latency(labels, latency, self.latency_intervals)
            makers["latency_merged"] = lambda: derive.latency_merged(labels, latency, self.latency_intervals)
            makers["latency_histogram"] = lambda: derive.latency_histogram(labels, latency)
        if (counts := seen.classes) is not None:
            names = [label.name for label in labels]
            makers["classes"] = lambda: classes(names, counts, self.alone)
            makers["class_interference"] = lambda: class_interference(names, counts)
        if (samples := self.samples) is not None:
            makers["samples"] = lambda: derive.samples(links.table, samples)
        if (marked := seen.marks) is not None:
            kept = [number for number, job in enumerate(self.scenario.jobs) if job.marks]
            if kept:
                makers["iterations"] = lambda: derive.iterations(labels, marked.filter(pl.col("job").is_in(kept)))
            makers["collectives"] = lambda: accelerators.collectives(self.scenario, marked)
            makers["serving"] = lambda: accelerators.serving(self.scenario, marked)
        of_record: dict[str, Callable[[pl.DataFrame], pl.DataFrame]] = {
            "port_interference": lambda raw: derive.port_interference(labels, links.table, raw),
            "messages": derive.messages,
            "waits": derive.waits,
            "departures": lambda raw: derive.departures(labels, links.table, raw),
        }
        return makers | {name: partial(of_record[name], raw) for name, raw in seen.record.items()}

    def _power(self) -> pl.DataFrame | None:

        jobs, measured = self.scenario.jobs, self.observed.measured
        drawn = [job.power for job in jobs if job.power is not None]
        if not drawn:
            return None
        stays = [(job.start, job.stop) for job in jobs]
        table = power([job.name for job in jobs], drawn, measured.ranks, measured.now, stays)
        return derive.with_host_names(table, self.links.hosts)
