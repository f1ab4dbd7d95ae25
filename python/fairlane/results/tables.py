"""The results of a run, from what its simulations have measured and the scenario that they simulate."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property, partial
from importlib.metadata import version
from typing import Any, Self

import polars as pl

from fairlane.core.drive import Engine
from fairlane.core.tables import EngineTables, Work, frame, marks
from fairlane.model.fabric.view import Fabric
from fairlane.model.power import power
from fairlane.model.scenario import Resolved
from fairlane.results import accelerators, derive
from fairlane.results.classes import ClassCounts, class_interference, classes
from fairlane.results.culprit import LeftOut, lost_time
from fairlane.results.latency import Latency
from fairlane.results.run import Run, RunMeta, Source
from fairlane.results.schemas import RUN


class Links:
    """The links of a fabric, listed when they are first asked for."""

    def __init__(self, fabric: Fabric) -> None:
        self._fabric = fabric

    @cached_property
    def table(self) -> pl.DataFrame:
        """One row per link, as in the table ``ports``."""
        return derive.links(frame(self._fabric.link_rows()), self._fabric.classes)


@dataclass(frozen=True)
class Measured:
    """Measurements of a run of ``scenario`` in the engine's own columns, and its tables, each made when asked for."""

    scenario: Resolved
    links: Links
    together: EngineTables
    """All jobs at once."""
    latency: Latency | None = None
    """Latencies, unless ``observe.counters`` is off."""
    classes: ClassCounts | None = None
    """What was counted by traffic class, in scenarios with classes."""
    marks: pl.DataFrame | None = None
    """Ranks' marks of iterations, with ``observe.iterations``."""
    record: Mapping[str, pl.DataFrame] = field(default_factory=dict)
    """Tables of single ports, messages and packets, by name, as far as the scenario asks for them."""
    alone: Sequence[Work | None] = ()
    """The isolated run of each job, None where there is none to compare with."""
    without: Sequence[LeftOut] = ()
    """The leave-one-out runs."""
    samples: pl.DataFrame | None = None
    """Samples of ports."""
    counters: pl.DataFrame | None = None
    """The table of flits and stalls."""
    counters_before: pl.DataFrame | None = None
    """The same before each iteration."""
    latency_intervals: pl.DataFrame | None = None
    """The ends of the intervals of latencies."""

    @classmethod
    def of(cls, engine: Engine, scenario: Resolved, links: Links, **more: Any) -> Self:
        """Read the measurements of ``engine``, which simulates ``scenario``, so far; ``more`` are other fields."""
        observe = scenario.tables["observe"]
        by_port = ("port_interference",) if observe["interference_by_port"] else ()
        return cls(
            scenario,
            links,
            EngineTables.of(engine),
            latency=Latency.measured(engine) if observe["counters"] else None,
            classes=ClassCounts.measured(engine) if observe["counters"] else None,
            marks=marks(engine) if any(job.marks or job.measures for job in scenario.jobs) else None,
            record={name: frame(engine.table(name)) for name in (*by_port, *scenario.recorded)},
            **more,
        )

    def run(self, clocks: tuple[datetime, float, float], source: Source | None = None, **more: Any) -> Run:
        """The results; ``more`` is the rest of ``meta``.

        ``clocks`` are the date, the monotonic clock and the processor time at the beginning.
        """
        (started, wall, cpu), together = clocks, self.together
        meta = RunMeta(
            version=version("fairlane"),
            scenario=self.scenario.name,
            seed=self.scenario.seed,
            digest=together.digest,
            simulated_ps=together.now,
            packet_hops=together.packet_hops,
            totals=together.totals,
            wall_s=time.monotonic() - wall,
            cpu_s=time.process_time() - cpu,
            started=started,
            **more,
        )
        return Run(meta=meta, **self.tables(), source=source)

    def tables(self) -> dict[str, Any]:
        """Every table that there is, by name."""
        return {name: table for name in RUN if (table := self.table(name)) is not None}

    def table(self, name: str) -> pl.DataFrame | None:
        """One table of a run (see ``results.schemas``); None if the scenario does not ask for it."""
        maker = self._makers.get(name)
        return maker() if maker else None

    @cached_property
    def _makers(self) -> dict[str, Callable[[], pl.DataFrame | None]]:
        labels, links, together = self.scenario.jobs, self.links, self.together
        hosts = self.scenario.fabric.host_names
        failed = [run for run in (together, *self.alone) if run is not None and run.failures.height]
        makers: dict[str, Callable[[], pl.DataFrame | None]] = {
            "jobs": lambda: derive.jobs(labels, together, self.alone or [None] * len(labels)),
            "ranks": lambda: derive.ranks(labels, together, hosts),
            "completions": lambda: derive.completions(labels, together),
            "calls": lambda: derive.calls(labels, together),
            "ports": lambda: derive.ports(links.table, together),
            "interference": lambda: derive.interference(labels, together),
            "lost_time": lambda: lost_time(labels, together, self.alone, self.without) if self.without else None,
            "power": self._power,
            "counters": lambda: self.counters,
            "counters_before": lambda: self.counters_before,
            "failures": lambda: derive.failures(labels, together, self.alone, hosts) if failed else None,
            "sweeps": lambda: derive.sweeps(together.sweeps) if together.sweeps.height else None,
            "pauses": lambda: derive.pauses(links.table, together) if together.pauses.height else None,
        }
        if (latency := self.latency) is not None:
            makers["latency"] = lambda: derive.latency(labels, latency, self.latency_intervals)
            makers["latency_merged"] = lambda: derive.latency_merged(labels, latency, self.latency_intervals)
            makers["latency_histogram"] = lambda: derive.latency_histogram(labels, latency)
        if (counts := self.classes) is not None:
            names = [label.name for label in labels]
            makers["classes"] = lambda: classes(names, counts, self.alone)
            makers["class_interference"] = lambda: class_interference(names, counts)
        if (samples := self.samples) is not None:
            makers["samples"] = lambda: derive.samples(links.table, samples)
        if (marked := self.marks) is not None:
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
        return makers | {name: partial(of_record[name], raw) for name, raw in self.record.items()}

    def _power(self) -> pl.DataFrame | None:
        jobs, measured = self.scenario.jobs, self.together
        drawn = [job.power for job in jobs if job.power is not None]
        if not drawn:
            return None
        stays = [(job.start, job.stop) for job in jobs]
        table = power([job.name for job in jobs], drawn, measured.ranks, measured.now, stays)
        return derive.with_host_names(table, self.scenario.fabric.host_names)
