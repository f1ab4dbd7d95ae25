"""Plan of a survey: a scenario on several seeds, and the parts that fail, one at a time or in pairs."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import comb
from typing import Any

import polars as pl

from fairlane.errors import Problem, ScenarioError, nearest
from fairlane.inputs.problems import Problems
from fairlane.results.tables import Links
from fairlane.scenario import Scenario
from fairlane.scenario.checks import late
from fairlane.scenario.resolve import building
from fairlane.seeds import Purpose, stream
from fairlane.tasks.pools import affordable
from fairlane.units import DURATION
from fairlane.wording import some

AT = 0.25
"""The part of the simulated time after which parts fail, unless another time is given."""


@dataclass(frozen=True)
class Options:
    """Parts that fail, and the time of failure."""

    at: str | None = None
    """Time of failure; None for a quarter of the simulated time."""
    switches: bool = False
    """Whether switches fail, in place of cables."""
    hosts: bool = False
    """Whether the cables of hosts fail as well."""
    cables: Sequence[str] = ()
    """The cables that fail, by one direction of each; none for all."""
    pairs: int | None = None
    """Number of pairs that fail, sampled uniformly at random; None for single parts."""
    replicates: int = 3
    """Number of seeds."""


@dataclass(frozen=True)
class Part:
    """Parts that fail at the same time: a cable or a switch, or two of them."""

    kind: str
    """The kind of fault: ``link_down`` or ``switch_down``."""
    names: tuple[str, ...]

    @property
    def name(self) -> str:
        """Its name in tables."""
        return " and ".join(self.names)

    def faults(self, at: int) -> Iterator[str]:
        """Its faults as the simulator takes them, from an instant on, ps."""
        key = "switch" if self.kind == "switch_down" else "link"
        for name in self.names:
            yield json.dumps({"fault": {"name": self.kind, "params": {key: name}}, "at": at, "until": None})


@dataclass(frozen=True)
class Plan:
    """A scenario, and what fails in it."""

    scenario: Scenario
    seeds: Sequence[int]
    """Seeds of the replicates; placements are drawn with them."""
    parts: Sequence[Part]
    at: int
    """Time of failure, ps."""

    @property
    def duration(self) -> int:
        """Simulated time in all, ps."""
        return self.scenario.duration

    def of(self, seed: int) -> Scenario:
        """The scenario with a seed."""
        return self.scenario.model_copy(update={"seed": seed})

    @cached_property
    def workers(self) -> int:
        """Number of forks for which there are cores and memory, besides the simulation that they come from."""
        estimate = self.of(self.seeds[0]).resolve().estimate
        return affordable(estimate.memory if estimate else 0.0, self.scenario.memory)

    def check(self) -> None:
        """Raises ``ScenarioError`` or ``BuildError`` for what only building the first simulation finds out."""
        self.workers  # noqa: B018 - it is kept
        engine = self.of(self.seeds[0]).resolve().engine()
        for part in self.parts[:1]:
            for fault in part.faults(self.at):
                engine.add_fault(fault)

    def described(self) -> Mapping[str, Any]:
        """Settings that the results depend on besides part and seed."""
        return {
            "scenario": self.scenario.model_dump(mode="json", exclude_defaults=True, exclude={"seed"}),
            "at_ps": self.at,
            "duration_ps": self.duration,
        }


def prepared(scenario: Scenario, options: Options) -> Plan:
    """The plan for a scenario. Raises ``ScenarioError``, also for a cable that is not there."""
    counts = {"--replicates": options.replicates, "--pairs": options.pairs}
    if wrong := [
        Problem(name, "out of range", value, "1 or more")
        for name, value in counts.items()
        if value is not None and value < 1
    ]:
        raise ScenarioError(wrong)
    if options.switches and (options.cables or options.hosts):
        raise ScenarioError(
            Problem("--switches", "switches fail in place of cables", allowed="without --cable, --hosts")
        )
    if wrong := list(late(scenario, scenario.duration)):
        raise scenario.error(Problems(*wrong))
    at = _instant(scenario, options.at)
    try:
        links = building(lambda: Links(scenario.fabric.spec).table)
    except Problems as problems:
        raise scenario.error(problems) from None
    single = _switches(links) if options.switches else _cables(links, options)
    parts = single if options.pairs is None else _pairs(single, options.pairs, scenario.seed)
    observe = scenario.observe.model_copy(update={"counters": True})  # latencies of jobs without iterations
    changed = scenario.model_copy(update={"observe": observe, "until": None})
    return Plan(changed, [scenario.seed + number for number in range(options.replicates)], parts, at)


def _instant(scenario: Scenario, given: str | None) -> int:
    try:
        at = round(AT * scenario.duration) if given is None else DURATION.parse(given)
    except ValueError as error:
        raise ScenarioError(Problem("--at", str(error), given)) from None
    if at >= scenario.duration:
        allowed = f"below {DURATION.format(scenario.duration)}"
        raise ScenarioError(Problem("--at", "nothing is left to measure", given, allowed))
    return at


def _switches(links: pl.DataFrame) -> list[Part]:
    """All switches, in the order of the fabric."""
    ends = links.filter(pl.col("from_vertex").str.starts_with("switch ")).sort("from_vertex", maintain_order=True)
    number = pl.col("from_vertex").str.strip_prefix("switch ").cast(pl.Int64)
    names = ends.select(number, "from_name").unique("from_vertex").sort("from_vertex")["from_name"]
    return [Part("switch_down", (name,)) for name in names]


def _cables(links: pl.DataFrame, options: Options) -> list[Part]:
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
        return [Part("link_down", (name,)) for name in between]
    known = {row["link_name"]: first[row["from_name"], row["from_port"]] for row in rows}
    known |= {f"{row['from_name']} port {row['from_port']}": known[row["link_name"]] for row in rows}
    for name in options.cables:
        if name not in known:
            raise ScenarioError(Problem("--cable", "unknown cable", name, some(between, 3), nearest(name, known)))
    return [Part("link_down", (name,)) for name in dict.fromkeys(known[name] for name in options.cables)]


def _pairs(single: Sequence[Part], wanted: int, seed: int) -> list[Part]:
    """Different pairs, drawn uniformly at random; all of them if there are no more."""
    count = len(single)
    rng, found = stream(seed, Purpose.FAILURES), dict[tuple[int, int], None]()
    if wanted >= comb(count, 2):
        found = {(one, other): None for other in range(count) for one in range(other)}
    while len(found) < min(wanted, comb(count, 2)):
        one, other = sorted(int(number) for number in rng.choice(count, 2, replace=False))
        found[one, other] = None
    if not found:
        raise ScenarioError(Problem("--pairs", "needs two parts at least", count))
    return [Part(single[0].kind, (*single[one].names, *single[other].names)) for one, other in sorted(found)]
