"""A simulation in steps: run it for a while, read the progress of jobs, change service levels and weights, go on."""

import json
import time
from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal, Self

from fairlane.core import bridge
from fairlane.core.drive import drive
from fairlane.core.errors import Problem, ScenarioError
from fairlane.core.tables import PS, EngineTables, Work, frame, totals
from fairlane.core.units import DURATION, SIZE
from fairlane.core.wording import html_table, plural, seconds
from fairlane.inputs.parameters import named, resolve_parameters
from fairlane.inputs.problems import refusing
from fairlane.model.scenario import Resolved, Scenario
from fairlane.model.scenario.estimate import free_cores
from fairlane.model.scenario.levels import MAX_LEVELS
from fairlane.model.scenario.observe import Fault
from fairlane.model.workload.builder import WORLD
from fairlane.model.workload.stepped import Stepped
from fairlane.results import derive
from fairlane.results.latency import Latency
from fairlane.results.run import Run
from fairlane.results.schemas import RUN
from fairlane.results.tables import Links, Measured
from fairlane.sim.stepping import Completion, Messages, amount

if TYPE_CHECKING:
    import polars as pl

__all__ = ["Simulation"]

_STEP_HOPS = 500_000  # packet-hops between two looks for Ctrl-C


class Simulation:
    """All jobs of a scenario on its fabric.

    Time advances only in ``run_for``, ``run_until`` and ``advance``, and whatever is changed in between takes effect
    from then on. Ctrl-C raises ``KeyboardInterrupt`` within a fraction of a second and leaves the simulation whole: it
    can be looked at, and run on.

    Args:
        scenario: What to simulate.
        threads: How many threads simulate it, 1 to 32; by default one for each free core where the fabric is large
            enough to gain. Results do not depend on it.

    Raises ``ScenarioError`` or ``BuildError`` if the scenario cannot be built.
    """

    def __init__(self, scenario: Scenario | Resolved, *, threads: int | None = None) -> None:
        self._started = (datetime.now().astimezone(), time.monotonic(), time.process_time())
        self._resolved = scenario.resolve() if isinstance(scenario, Scenario) else scenario
        self._numbers = {job.name: number for number, job in enumerate(self._resolved.jobs)}
        self._arbiter = dict(self._resolved.spec["qos"]["arbiter"])
        self._asked = 0
        self._messages = Messages()
        automatic = threads is None
        self._core = self._resolved.engine(free_cores() if threads is None else threads, automatic=automatic)
        self._links = Links(self._resolved.fabric)

    @property
    def scenario(self) -> Resolved:
        """The resolved scenario."""
        return self._resolved

    @property
    def engine(self) -> bridge.Simulation:
        """The simulator underneath, with tables that are not part of a result."""
        return self._core

    @property
    def jobs(self) -> list[str]:
        """The jobs' names."""
        return list(self._numbers)

    @property
    def now(self) -> int:
        """Simulated time, picoseconds, at the end of a window.

        After ``run_until`` at least what was asked for, less than one window more; ``advance`` says how far it goes.
        """
        return self._core.now

    @property
    def packet_hops(self) -> int:
        """Packets times links crossed, so far."""
        return self._core.packet_hops

    def totals(self) -> dict[str, int]:
        """Totals of the network so far, all jobs together.

        ``packet_hops``, as the property of that name; ``messages_injected`` and ``messages_delivered``, and their
        payload ``bytes_injected`` and ``bytes_delivered``; ``packets_lost``, each time that they were, and
        ``packets_trimmed``, and ``packets_discarded`` because one before them was missing; of all these
        ``packets_retransmitted``, with their payload ``bytes_retransmitted``, and ``packets_given_up``; and
        what congestion control did: ``packets_marked`` by switches, ``control_packets`` (acknowledgements and CNPs)
        that NICs made, their payload ``control_bytes``, and of these ``control_packets_received`` and
        ``control_bytes_received`` by the hosts whose flows they are for.
        """
        return totals(self._core)

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

    def send(
        self,
        job: str,
        source: int,
        destination: int,
        size: str | int,
        *,
        tag: int = 0,
        at: str | int | None = None,
        mode: Literal["standard", "eager"] = "standard",
        communicator: str | None = None,
    ) -> int:
        """Sends a message between two ranks of a job whose workload is ``stepped``.

        ``source`` calls MPI_Isend and ``destination`` MPI_Irecv, both at ``at``, with the overheads, protocols and
        service levels of any other message.

        Args:
            job: Name of the job.
            source: Rank that sends.
            destination: Rank that receives.
            size: Payload: "2 MiB", or bytes.
            tag: Tag: messages with the same ranks, tag and communicator are matched in the order of their times.
            at: When it is sent: "5 ms", or picoseconds after the start; at least ``now``, which is the default.
            mode: "eager" for no rendezvous whatever the size.
            communicator: One of the ``communicators`` of the workload, whose traffic class the message has; by default
                that of all messages of the job, ``world``.

        Returns its handle, which ``advance`` names when the message is complete. Raises ``ScenarioError`` or
        ``BuildError`` if something does not fit, as a time that has been simulated already.
        """
        if mode not in ("standard", "eager"):
            raise ScenarioError(Problem.unknown("mode", "mode", mode, ["standard", "eager"], mode))
        number = self._number(job)
        payload, sent = amount("size", size, SIZE), self.now if at is None else amount("at", at, DURATION)
        for key, rank in (("source", source), ("destination", destination)):
            if not 0 <= rank < 1 << 32:
                raise ScenarioError(Problem(key, "no rank", rank, "0 or more, below 2^32"))
        if not 0 <= tag < 1 << 31:
            raise ScenarioError(Problem("tag", "out of range", tag, "0 or more, below 2^31"))
        place = None if communicator in (None, WORLD) else self._communicator(number, str(communicator))
        message = Completion(self._messages.handles, 0, job, source, destination, payload, tag, sent)
        self._core.send(number, message.handle, source, destination, payload, tag, mode == "eager", sent, place)
        self._messages.add(message)
        return message.handle

    def _communicator(self, job: int, name: str) -> int:
        """The place of a communicator of a job that takes messages. Raises ``ScenarioError``."""
        workload = self._resolved.jobs[job].table.workload
        known = workload.communicators if isinstance(workload, Stepped) else []
        if name not in known:
            raise ScenarioError(Problem.unknown("communicator", "communicator", name, [*known, WORLD], name))
        return known.index(name)

    def advance(self, until: str | int, *, first: bool = False) -> list[Completion]:
        """Simulates until ``until`` after the start, and never further, for programs that ``send`` messages.

        The simulation runs in windows of ``window`` picoseconds, which is at most the shortest latency of a link. The
        window in which ``until`` lies is left for the next call, so messages can still be sent at ``until``.

        Args:
            until: "60 ms", or picoseconds.
            first: Whether to stop after the window in which the first message is complete.

        Returns the messages that have become complete since the last call, in the order of their times: all whose time
        is before ``now``. Raises ``RunError`` when the run cannot go on.
        """
        end = amount("until", until, DURATION)
        try:
            while not self._core.step(end, _STEP_HOPS, first):
                pass
        finally:  # also after Ctrl-C
            self._asked = max(self._asked, min(end, self._core.now))
        return self._messages.complete(self._core.take_completed())

    @property
    def window(self) -> int:
        """Picoseconds that are simulated at once; see ``advance``."""
        return self._core.window

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

    def set_class_service_level(self, name: str, level: int | None) -> None:
        """Gives a traffic class of the scenario a service level, or none."""
        known = [traffic_class["name"] for traffic_class in self._resolved.spec["qos"].get("classes", ())]
        if name not in known:
            raise ScenarioError(Problem.unknown(name, "traffic class", name, known))
        _check_level(level, name)
        self._core.set_class_service_level(name, level)

    def set_arbiter(self, name: str, **parameters: Any) -> None:
        """Replaces every port's arbiter, from now on. Raises ``ScenarioError`` or ``BuildError`` if it does not fit."""
        with refusing():
            resolved = resolve_parameters(named("arbiter", name, "name"), parameters)
        self._set_arbiter({"name": name, "params": resolved})

    def set_weights(self, weights: list[int]) -> None:
        """Replaces the arbiter's weights, one for each lane, and keeps the rest of its parameters.

        Raises ``ScenarioError`` if the arbiter has no such list (``set_arbiter`` replaces what it has, as the tables
        of ``vlarb``), ``BuildError`` if the list does not fit.
        """
        name = self._arbiter["name"]
        known = named("arbiter", name, "name").schema.get("properties", {})
        if "weights" not in known:
            message = f"the arbiter {name} has no list of weights: replace its parameters with set_arbiter"
            example = f'set_arbiter("{name}", ...) with {", ".join(known)}'
            raise ScenarioError(Problem("weights", message, list(weights), example))
        self._set_arbiter({"name": name, "params": {**self._arbiter["params"], "weights": list(weights)}})

    def _set_arbiter(self, arbiter: dict[str, Any]) -> None:
        self._core.set_arbiter(json.dumps(arbiter))
        self._arbiter = arbiter

    def degrade_link(
        self, link: str, *, lanes: int = 1, width: int = 4, at: str | int = 0, until: str | int | None = None
    ) -> None:
        """Lets a cable work with ``lanes`` of its ``width`` lanes, in both directions.

        Args:
            link: One direction of the cable, as tables name it: "leaf4 port 7 to spine2", or only "leaf4 port 7".
            lanes: Lanes that are left.
            width: Lanes that the cable has.
            at: When it begins: "5 ms", or picoseconds after the start; at once if that has passed.
            until: When the cable is whole again; by default never.

        Raises ``ScenarioError`` or ``BuildError`` for a link that is not there, or lanes or times that do not fit.
        """
        self._add_fault("degraded_link", at, until, link=link, lanes=lanes, width=width)

    def fail_link(self, link: str, *, at: str | int = 0, until: str | int | None = None) -> None:
        """Lets a cable go down, in both directions: packets on it and to it are lost. See ``degrade_link``."""
        self._add_fault("link_down", at, until, link=link)

    def fail_switch(self, switch: str, *, at: str | int = 0, until: str | int | None = None) -> None:
        """Lets a switch, as "leaf4", go down with all its cables. For times and errors see ``degrade_link``."""
        self._add_fault("switch_down", at, until, switch=switch)

    def fail_adapter(self, host: str, rail: int = 0, *, at: str | int = 0, until: str | int | None = None) -> None:
        """Lets adapter ``rail`` of a host, as "host12", go down. For times and errors see ``degrade_link``."""
        self._add_fault("adapter_down", at, until, host=host, rail=rail)

    def disturb_link(self, link: str, rate: float = 1e-8, *, at: str | int = 0, until: str | int | None = None) -> None:
        """Gives a cable a bit error rate, in both directions: packets with errors are repeated on the link.

        ``rate`` is in errors per bit, at most 1e-4. For times and errors see ``degrade_link``.
        """
        self._add_fault("bit_errors", at, until, link=link, rate=rate)

    def slow_down_host(
        self, host: str, factor: float = 2.0, *, at: str | int = 0, until: str | int | None = None
    ) -> None:
        """Lets computations on a host take ``factor`` times as long. For times and errors see ``degrade_link``."""
        self._add_fault("slow_host", at, until, host=host, factor=factor)

    def storm(
        self,
        host: str,
        rail: int = 0,
        *,
        vl: int | None = None,
        at: str | int = 0,
        until: str | int | None = None,
    ) -> None:
        """Lets an adapter send PAUSE without end, on a virtual lane or all. For times see ``degrade_link``."""
        self._add_fault("pause_storm", at, until, host=host, rail=rail, **({} if vl is None else {"vl": vl}))

    def _add_fault(self, kind: str, at: str | int, until: str | int | None, **parameters: Any) -> None:
        times = {"at": at} if until is None else {"at": at, "until": until}
        written = {key: f"{time} ps" if isinstance(time, int) else time for key, time in times.items()}
        fault = Fault.read({"kind": kind, **parameters, **written})
        self._core.add_fault(json.dumps(fault.spec))

    def failures(self) -> "pl.DataFrame":
        """The jobs that have failed so far, because a packet was lost for good: a row each, in the order of time."""
        hosts = self._resolved.fabric.host_names
        return derive.failures(self._resolved.jobs, Work.of(self._core), (), hosts)

    def sweeps(self) -> "pl.DataFrame":
        """Return the recomputations of routes so far: time, routing, reason, and the hosts that were cut off."""
        return derive.sweeps(frame(self._core.table("sweeps")))

    def pauses(self) -> "pl.DataFrame":
        """The lanes that priority flow control has paused so far, in order of their first pauses."""
        return derive.pauses(self._links.table, EngineTables.of(self._core))

    def fork(self) -> Self:
        """A second simulation that goes on from here by itself."""
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__)
        other._arbiter = dict(self._arbiter)
        other._messages = self._messages.copy()
        other._core = self._core.fork()
        return other

    def result(self) -> Run:
        """Return the measurements so far, as a run in memory.

        There are no isolated runs, so ``w`` is null, and no samples of ports nor counters of iterations.
        """
        notes = self._resolved.notes
        return self._measured().run(self._started, duration_ps=self._asked, partial=False, notes=notes)

    def table(self, name: str) -> "pl.DataFrame":
        """One table of what was measured so far, as in ``result``.

        Raises ``ScenarioError`` if there is no such table, or the scenario does not ask for it.
        """
        if name not in RUN:
            raise ScenarioError(Problem.unknown(name, "table", name, list(RUN)))
        frame = self._measured().table(name)
        if frame is None:
            raise ScenarioError(Problem(name, "the scenario does not ask for this table (see its table observe)"))
        return frame

    def _measured(self) -> Measured:
        return Measured.of(self._core, self._resolved, self._links)

    def latency(self) -> Latency:
        """The latencies of all messages and packets delivered so far; empty without ``observe.counters``."""
        return Latency.measured(self._core)

    def digest(self) -> str:
        """A fingerprint of all that has happened: equal for equal runs."""
        return self._core.digest()

    def __repr__(self) -> str:
        return f"<Simulation of {self._headline()}>"

    def _repr_html_(self) -> str:
        rows = [
            (job.name, job.workload, job.ranks, iterations)
            for job, iterations in zip(self._resolved.jobs, self.work().values(), strict=True)
        ]
        headings = ("job", "workload", "ranks", "iterations")
        return html_table(f"Simulation of {self._headline()}", headings, rows)

    def _headline(self) -> str:
        return f"{self._resolved.name}: {plural(len(self._numbers), 'job')}, {seconds(self.now * PS)} simulated"

    def _number(self, job: str) -> int:
        if job not in self._numbers:
            raise ScenarioError(Problem.unknown(job, "job", job, self.jobs))
        return self._numbers[job]


def _check_level(level: int | None, key: str) -> None:
    if level is not None and not 0 <= level < MAX_LEVELS:
        raise ScenarioError(Problem(key, "no service level", level, f"0 to {MAX_LEVELS - 1}"))
