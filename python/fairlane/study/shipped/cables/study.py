"""Failures on seeds: a fork of the simulation of all jobs, compared with the fork in which nothing fails."""

import json
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future
from itertools import combinations, product
from math import comb
from threading import Lock
from typing import Any

import polars as pl
from pydantic import Field
from typing_extensions import override

from fairlane.core.errors import Problem, RunError, ScenarioError, nearest
from fairlane.core.seeds import Purpose, stream
from fairlane.core.tables import frame, totals
from fairlane.core.units import DURATION, Duration
from fairlane.core.wording import some
from fairlane.inputs.problems import Problems
from fairlane.model.fabric.view import Fabric
from fairlane.model.scenario import Scenario
from fairlane.model.scenario.checks import late
from fairlane.model.scenario.observe import Fault
from fairlane.results import derive
from fairlane.results.tables import Links
from fairlane.study.shipped.base import (
    Measurement,
    Options,
    ShippedStudy,
    check_before,
    fabric_of,
    from_options,
    seeds_of,
)
from fairlane.study.shipped.cables.forks import State, Trunk, jobs_of
from fairlane.study.shipped.cables.results import Cables
from fairlane.study.tasks.store import Store
from fairlane.study.tasks.task import Answer, Stopwatch

AT = 0.25
"""The part of the simulated time after which parts fail, unless another time is given."""
MOST_TRUNKS = 2
"""Seeds whose beginnings are kept: tasks of one seed may still start when those of the next one do."""


class SurveyOptions(Options):
    """Parts that fail, and the time of failure."""

    at: Duration | None = None
    """Time of failure; None for a quarter of the simulated time."""
    switches: bool = False
    """Whether switches fail, in place of cables."""
    hosts: bool = False
    """Whether the cables of hosts fail as well."""
    cables: list[str] = Field(default_factory=list)
    """The cables that fail, by one direction of each; none for all."""
    pairs: int | None = Field(default=None, ge=1)
    """Number of pairs that fail, sampled uniformly at random; None for single parts."""


class Survey(ShippedStudy[Cables]):
    """A scenario, and the parts of its fabric that fail: cables or switches, one at a time or in pairs."""

    results, noun = Cables, "survey"

    def __init__(self, scenario: Scenario, **options: Any) -> None:
        """Prepares a survey with ``SurveyOptions``. Raises ``ScenarioError``, also for an unknown cable."""
        wanted = from_options(SurveyOptions, options)
        if wanted.switches and (wanted.cables or wanted.hosts):
            message, allowed = "switches fail in place of cables", "without --cable, --hosts"
            raise ScenarioError(Problem("--switches", message, allowed=allowed))
        if wrong := list(late(scenario, scenario.duration)):
            raise scenario.error(Problems(*wrong))
        self.at_ps: int = round(AT * scenario.duration) if wanted.at is None else wanted.at
        check_before("--at", self.at_ps, scenario.duration)
        links = Links(fabric_of(scenario, Fabric.build)).table
        single = _switches(links) if wanted.switches else _cables(links, wanted)
        drawn = None if wanted.pairs is None else _pairs(single, wanted.pairs, scenario.seed)
        together = [[name] for name in single] if drawn is None else drawn
        self.parts: dict[str, list[str]] = {" and ".join(names): names for names in together}
        """The names of what fails at the same time, by its name in tables."""
        self.kind, self._key = ("switch_down", "switch") if wanted.switches else ("link_down", "link")
        observe = scenario.observe.model_copy(update={"counters": True})  # latencies of jobs without iterations
        self.scenario = scenario.model_copy(update={"observe": observe, "until": None})
        self.seeds = seeds_of(scenario, wanted.replicates)
        self._lock, self._trunks = Lock(), dict[int, Future[Trunk]]()

    def faults(self, part: str, at: int) -> list[Fault]:
        """The faults of a part, from an instant on, ps."""
        return [Fault(kind=self.kind, at=DURATION.format(at), **{self._key: name}) for name in self.parts[part]]

    @override
    def measurements(self) -> Iterator[Measurement]:
        for seed, part in product(self.seeds, self.parts):
            yield Measurement(self, {"part": part}, seed)

    @override
    def at(self, condition: Mapping[str, Any], seed: int) -> Scenario:
        """The scenario of a measurement without the failure."""
        return self.scenario.model_copy(update={"seed": seed})

    @override
    def written(self, condition: Mapping[str, Any], seed: int) -> dict[str, Any]:
        scenario = super().written(condition, seed)
        faults = [
            fault.model_dump(mode="json", exclude_none=True) for fault in self.faults(condition["part"], self.at_ps)
        ]
        return {**scenario, "fault": [*scenario.get("fault", []), *faults]}

    @override
    def check(self) -> None:
        super().check()
        first = next(self.measurements())
        engine = self.at(first.condition, first.seed).resolve().engine()
        for fault in self.faults(first.condition["part"], self.at_ps):
            engine.add_fault(json.dumps(fault.spec))

    @override
    def described(self) -> dict[str, Any]:
        return {**super().described(), "at_ps": self.at_ps, "duration_ps": self.scenario.duration}

    @override
    def summary(self) -> dict[str, Any]:
        together = len(next(iter(self.parts.values())))
        return {"kind": self.kind, "parts": len(self.parts), "together": together}

    @override
    def measure(self, condition: Mapping[str, Any], seed: int, watch: Stopwatch) -> Answer:
        """Simulates the fork with the failure. Its error is part of the answer, one of the unbroken fork is raised."""
        trunk, duration = self.trunk(seed, watch), self.scenario.duration
        engine, error = trunk.fork(), None
        for fault in self.faults(condition["part"], trunk.now):
            engine.add_fault(json.dumps(fault.spec))
        with watch.lap("simulating"):
            try:
                watch.advance(engine, duration, duration)
            except RunError as raised:
                if raised.slug == "stopped":
                    raise
                error = str(raised)
        sweeps = derive.sweeps(frame(engine.table("sweeps"))).filter(pl.col("time_ps") >= trunk.now)
        last = sweeps.row(-1, named=True) if sweeps.height else {}
        carried = totals(engine)
        return {
            "error": error,
            **{name: carried[name] for name in ("packets_lost", "packets_retransmitted", "packets_given_up")},
            **{name: last.get(name) for name in ("routing", "reason", "hosts_cut_off", "cut_off")},
            "digest": engine.digest(),
            "unbroken_digest": trunk.digest,
            "jobs": [] if error else jobs_of(trunk, State.of(engine, trunk.resolved)),
        }

    @override
    def run(self, store: Store | None = None, *, progress: bool = False) -> Cables:
        try:
            return super().run(store, progress=progress)
        finally:
            self._trunks.clear()

    def trunk(self, seed: int, watch: Stopwatch) -> Trunk:
        """The trunk of a seed, simulated by the first that needs it while others wait. Raises ``RunError``."""
        with self._lock:
            known = self._trunks.get(seed)
            future = self._trunks.setdefault(seed, Future())
            while len(self._trunks) > MOST_TRUNKS:
                del self._trunks[next(iter(self._trunks))]
        if known is None:
            try:
                future.set_result(Trunk(self.at({}, seed), self.at_ps, watch))
            except BaseException as error:
                self._trunks.pop(seed, None)
                future.set_exception(error)
        return future.result()


def _switches(links: pl.DataFrame) -> list[str]:
    """All switches, in the order of the fabric."""
    ends = links.filter(pl.col("from_vertex").str.starts_with("switch ")).sort("from_vertex", maintain_order=True)
    number = pl.col("from_vertex").str.strip_prefix("switch ").cast(pl.Int64)
    return ends.select(number, "from_name").unique("from_vertex").sort("from_vertex")["from_name"].to_list()


def _cables(links: pl.DataFrame, options: SurveyOptions) -> list[str]:
    """A cable for each two links, by its first one: those that are named, or all; of hosts only if that is wanted."""
    rows = links.sort("link").to_dicts()
    first: dict[tuple[str, int], str] = {}  # by the ports at both ends
    between = list[str]()
    for row in rows:
        ends = (row["from_name"], row["from_port"]), (row["to_name"], row["to_port"])
        if ends[0] in first:
            continue
        first |= dict.fromkeys(ends, row["link_name"])
        if options.hosts or not any(row[f"{end}_vertex"].startswith("host ") for end in ("from", "to")):
            between.append(row["link_name"])
    if not options.cables:
        if not between:
            raise ScenarioError(Problem("fabric", "has no cables between switches", allowed="--hosts"))
        return between
    known = {row["link_name"]: first[row["from_name"], row["from_port"]] for row in rows}
    known |= {f"{row['from_name']} port {row['from_port']}": known[row["link_name"]] for row in rows}
    for name in options.cables:
        if name not in known:
            raise ScenarioError(Problem("--cable", "unknown cable", name, some(between, 3), nearest(name, known)))
    return list(dict.fromkeys(known[name] for name in options.cables))


def _pairs(single: Sequence[str], wanted: int, seed: int) -> list[list[str]]:
    """Different pairs, drawn uniformly at random; all of them if there are no more."""
    count, rng = len(single), stream(seed, Purpose.FAILURES)
    if count < 2:
        raise ScenarioError(Problem("--pairs", "needs two parts at least", count))
    if wanted >= comb(count, 2):
        return [[*pair] for pair in combinations(single, 2)]
    drawn = set[tuple[int, int]]()
    while len(drawn) < wanted:
        first, second = sorted(int(number) for number in rng.choice(count, 2, replace=False))
        drawn.add((first, second))
    return [[single[first], single[second]] for first, second in sorted(drawn)]
