"""A scenario under way: run it for a while, look at the jobs' progress, change service levels and weights, go on."""

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self

from numpy.typing import NDArray

from fairlane import _core
from fairlane.engine import drive
from fairlane.errors import Problem, ScenarioError, nearest
from fairlane.fabric import columns
from fairlane.inputs.parameters import named, resolve_parameters
from fairlane.inputs.problems import Problems
from fairlane.scenario import Resolved, Scenario
from fairlane.scenario.levels import MAX_LEVELS
from fairlane.units import DURATION

if TYPE_CHECKING:
    from fairlane.results.latency import Latency

__all__ = ["Simulation"]


class Simulation:
    """All jobs of a scenario on its fabric.

    It stands still unless ``run_for`` or ``run_until`` is called, and whatever is changed in between takes effect from
    then on. Ctrl-C raises ``KeyboardInterrupt`` within a fraction of a second and leaves the simulation whole: it can
    be looked at, and run on.

    Raises ``ScenarioError`` or ``BuildError`` if the scenario cannot be built.
    """

    def __init__(self, scenario: Scenario | Resolved) -> None:
        self._resolved = scenario.resolve() if isinstance(scenario, Scenario) else scenario
        self._numbers = {job.name: number for number, job in enumerate(self._resolved.jobs)}
        self._arbiter = dict(self._resolved.spec["qos"]["arbiter"])
        self._asked = 0
        self._core = self._resolved.engine()

    @property
    def scenario(self) -> Resolved:
        """What is simulated, with everything decided."""
        return self._resolved

    @property
    def engine(self) -> _core.Simulation:
        """The simulator underneath, with tables that are not part of a result."""
        return self._core

    @property
    def jobs(self) -> list[str]:
        """The jobs' names."""
        return list(self._numbers)

    @property
    def now(self) -> int:
        """Simulated time, picoseconds: at least what was asked for, and less than one link latency more."""
        return self._core.now

    @property
    def packet_hops(self) -> int:
        """Packets times links crossed, so far."""
        return self._core.packet_hops

    @property
    def finished(self) -> bool:
        """Whether every rank has come to the end of its program; workloads never do."""
        return self._core.finished

    def run_for(self, duration: str | int) -> bool:
        """Simulates for ``duration``: "5 ms", or picoseconds. True when every rank has finished.

        Raises ``RunError`` when the run cannot go on.
        """
        span = DURATION.parse(duration) if isinstance(duration, str) else duration
        return self.run_until(self._asked + span)

    def run_until(self, instant: str | int) -> bool:
        """Simulates until ``instant`` after the start: "60 ms", or picoseconds. True when every rank has finished."""
        end = DURATION.parse(instant) if isinstance(instant, str) else instant
        try:
            drive(self._core, end)
        finally:  # also after Ctrl-C
            self._asked = max(self._asked, min(end, self._core.now))
        return self._core.finished

    def progress(self) -> dict[str, list[int]]:
        """Iterations so far, by job and rank."""
        return dict(zip(self._numbers, self._core.progress(), strict=True))

    def work(self) -> dict[str, int]:
        """Iterations of each job's slowest rank."""
        return {job: min(ranks) for job, ranks in self.progress().items()}

    def set_service_levels(self, levels: Mapping[str, Mapping[int, int]]) -> None:
        """Gives ranks service levels of their own: ``{"flood-0": {3: 5}}``.

        For each job named this replaces what its ranks had; ranks that are not listed have none of their own. A level
        shares the lane of level 0 unless ``qos.service_levels`` or ``qos.sl2vl`` gives it one. Raises
        ``ScenarioError``.
        """
        for job, ranks in levels.items():
            number = self._number(job)
            size = self._resolved.jobs[number].ranks
            for rank, level in ranks.items():
                if not 0 <= rank < size:
                    raise ScenarioError(Problem(job, f"has no rank {rank}", allowed=f"0 to {size - 1}"))
                _check_level(level, f"{job}[{rank}]")
            self._core.set_service_levels(number, dict(ranks))

    def set_job_service_level(self, job: str, level: int | None) -> None:
        """Gives a job's messages a service level, or none."""
        _check_level(level, job)
        self._core.set_job_service_level(self._number(job), level)

    def set_kind_service_level(self, kind: str, level: int | None) -> None:
        """Gives a kind of traffic (``control``, ``eager``, ``bulk``, ``collective``) a service level, or none."""
        kinds = list(self._resolved.spec["qos"]["kinds"])
        if kind not in kinds:
            raise ScenarioError(Problem.unknown(kind, "kind of traffic", kind, kinds))
        _check_level(level, kind)
        self._core.set_kind_service_level(kind, level)

    def set_arbiter(self, name: str, **parameters: Any) -> None:
        """Replaces every port's arbiter, from now on. Raises ``ScenarioError`` or ``BuildError`` if it does not fit."""
        try:
            entry = named("arbiter", name, "name")
            resolved = resolve_parameters(entry, parameters)
        except Problems as problems:
            raise ScenarioError(problems.problems) from None
        self._set_arbiter({"name": name, "params": resolved})

    def set_weights(self, weights: list[int]) -> None:
        """Replaces the arbiter's weights, one for each lane, and keeps the rest of its parameters.

        Raises ``ScenarioError`` if the arbiter has no such list (``set_arbiter`` replaces what it has, as the tables
        of ``vlarb``), ``BuildError`` if the list does not fit.
        """
        name = self._arbiter["name"]
        known = named("arbiter", name, "name").schema.get("properties", {})
        if "weights" not in known:
            words = f"the arbiter {name} has no list of weights: replace its parameters with set_arbiter"
            example = f'set_arbiter("{name}", ...) with {", ".join(known)}'
            raise ScenarioError(Problem("weights", words, list(weights), example))
        parameters = {**self._arbiter["params"], "weights": list(weights)}
        self._set_arbiter({"name": self._arbiter["name"], "params": parameters})

    def _set_arbiter(self, arbiter: dict[str, Any]) -> None:
        self._core.set_arbiter(json.dumps(arbiter))
        self._arbiter = arbiter

    def fork(self) -> Self:
        """A second simulation that goes on from here by itself."""
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__)
        other._arbiter = dict(self._arbiter)
        other._core = self._core.fork()
        return other

    def result(self) -> dict[str, dict[str, NDArray[Any]]]:
        """What was measured so far: tables of columns, by name; times in picoseconds."""
        return {name: self.table(name) for name in ("ranks", "calls", "ports", "interference")}

    def table(self, name: str) -> dict[str, NDArray[Any]]:
        """One table of what was measured so far; also ``port_interference`` and ``departures`` if they are observed."""
        return columns(self._core.table(name))

    def latency(self) -> "Latency":
        """The latencies of all messages and packets delivered so far; empty without ``observe.counters``."""
        from fairlane.results.latency import Latency

        return Latency.measured(self._core)

    def digest(self) -> str:
        """A fingerprint of all that has happened: equal for equal runs."""
        return self._core.digest()

    def _number(self, job: str) -> int:
        if job not in self._numbers:
            known = list(self._numbers)
            raise ScenarioError(
                Problem(job, "there is no such job", allowed=", ".join(known), nearest=nearest(job, known))
            )
        return self._numbers[job]


def _check_level(level: int | None, key: str) -> None:
    if level is not None and not 0 <= level < MAX_LEVELS:
        raise ScenarioError(Problem(key, "no service level", level, f"0 to {MAX_LEVELS - 1}"))
