"""What must hold of every case: laws, and runs of the same case that must agree bit for bit."""

import hashlib
import json
import tempfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from random import Random

from typing_extensions import override

from fairlane import RunError, Scenario, Simulation, _core
from fairlane.core.wording import plural
from fairlane.inputs.code import allow_code
from fairlane.model.scenario import Resolved
from fairlane.sim.runner.experiment import Experiment
from vopr.case import Action, Case, apply
from vopr.laws import broken
from vopr.reference import Unsupported, compare

__all__ = ["CHECKS", "VARIANTS", "Difference", "Variant", "check"]

RECORDED = (
    "port_interference",
    "departures",
    "marks",
    "job_marks",
    "messages",
    "waits",
    "latency",
    "latency_histogram",
)
UNOBSERVED = ("ranks", "calls", "job_marks", "under_way")
"""The tables that are the same whatever is observed."""
ALL = (*RECORDED, "ranks", "calls", "ports", "interference", "under_way")


class Difference(AssertionError):
    """Two runs of a case that do not agree, or a law that does not hold."""

    def __init__(self, check: str, words: str) -> None:
        super().__init__(f"{check}: {words}")
        self.check = check


@dataclass(frozen=True)
class Variant:
    """A way to execute a simulation that must not change anything."""

    name: str
    build: Callable[[Resolved], Simulation]


@dataclass(frozen=True)
class _Divided(Resolved):
    """A scenario whose simulations are divided into shards."""

    division: tuple[int, int] = (1, 1)

    @override
    def engine(self, threads: int = 1, *, automatic: bool = False) -> _core.Simulation:
        shards, threads = self.division
        programs = [job.program for job in self.jobs]
        return _core.Simulation(json.dumps(self.spec), programs, threads=threads, shards=shards)


def _in_shards(shards: int, threads: int) -> Variant:
    def build(resolved: Resolved) -> Simulation:
        given = {item.name: getattr(resolved, item.name) for item in fields(Resolved)}
        return Simulation(_Divided(**given, division=(shards, threads)))

    return Variant(f"{shards} shards on {plural(threads, 'thread')}", build)


VARIANTS: tuple[Variant, ...] = (
    Variant("default", Simulation),
    _in_shards(2, 1),
    _in_shards(3, 1),
    _in_shards(7, 1),
    _in_shards(2, 2),
    _in_shards(7, 3),
)
"""Every case runs once more in the first, and in one that the case draws."""


def check(case: Case, resolved: Resolved | None = None, only: str | None = None) -> Counter[str]:
    """Carries out all checks, or one, and returns how many runs each has compared; raises ``Difference``.

    Raises ``FairlaneError`` for a case that cannot be built.
    """
    resolved = resolved or case.resolve()
    counts, straight = Counter[str](), Simulation(resolved)
    with _as_difference("laws"):
        _run(straight, case.changes, resolved.duration)
        _keeps_laws("laws", straight)
    counts["packet-hops"] = straight.packet_hops
    for name, run in CHECKS.items():
        if only in (None, name):
            with _as_difference(name):
                counts[name] += run(case, resolved, straight)
    return counts


@contextmanager
def _as_difference(name: str) -> Iterator[None]:
    """Within, any error is a difference that this check has found."""
    try:
        yield
    except Difference:
        raise
    except RunError as error:
        raise Difference(name, str(error)) from error
    except BaseException as error:
        # A panic of the engine is no Exception.
        if isinstance(error, Exception) or type(error).__name__ == "PanicException":
            raise Difference(name, f"{type(error).__name__}: {error}") from error
        raise


def _again(case: Case, resolved: Resolved, straight: Simulation) -> int:
    """The same once more, and in another variant unless the first is drawn."""
    drawn = zlib.crc32(repr(case).encode()) % len(VARIANTS)
    variants = dict.fromkeys((VARIANTS[0], VARIANTS[drawn]))
    for variant in variants:
        one = variant.build(resolved)
        _run(one, case.changes, resolved.duration)
        _agree("again", variant.name, straight, one)
    return len(variants)


def _written(case: Case, resolved: Resolved, straight: Simulation) -> int:
    """The scenario written as TOML, read and resolved anew."""
    with case.read() as scenario, tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "scenario.toml"
        path.write_text(scenario.text, encoding="utf-8")
        with allow_code():
            one = Simulation(Scenario.load(path, allow_code=True).resolve())
    _run(one, case.changes, resolved.duration)
    _agree("written", "written and read", straight, one)
    return 1


@dataclass
class _Branch:
    """A simulation that is forked off, and the actions that it has before it."""

    name: str
    one: Simulation
    left: list[Action]
    expected: Simulation
    changes: list[Action] = field(default_factory=list)
    """Those that it has had."""


def _disturbed(case: Case, resolved: Resolved, straight: Simulation) -> int:
    """Paused, looked at and forked at the actions; forks go on in steps of random lengths, interleaved."""
    rng, end = Random(f"steps {case.seed}"), resolved.duration
    branches, done = [_Branch("the run", Simulation(resolved), list(case.actions), straight)], []
    while branches:
        branch = rng.choice(branches)
        if branch.left and branch.one.now >= branch.left[0]["at"]:
            branches += _act(branch, resolved, end)
        elif not branch.left and (branch.one.now >= end or branch.one.finished):
            _run(branch.one, (), end)
            branches.remove(branch)
            done.append(branch)
        else:
            _step(rng, branch.one, branch.left[0]["at"] if branch.left else end, end)
            if rng.random() < 0.2:
                branch.one.engine.check_laws()
    for branch in done:
        _keeps_laws("disturbed", branch.one)
        _agree("disturbed", branch.name, branch.expected, branch.one)
    return len(done)


def _step(rng: Random, one: Simulation, at: int, end: int) -> None:
    """Towards an instant: to it, a part of the way, or for some packet-hops."""
    choice = rng.random()
    if choice < 0.4:
        one.run_until(at)
    elif choice < 0.7:
        one.run_until(min(at, one.now + rng.randint(1, max(1, end // 5))))
    else:
        one.engine.run_window_budget(at, rng.randint(1, 400))
    if one.finished:
        one.run_until(at)


def _act(branch: _Branch, resolved: Resolved, end: int) -> list[_Branch]:
    """Carries out a branch's next action; the forks that it makes."""
    action, one = branch.left.pop(0), branch.one
    match action["do"]:
        case "fork":
            child = one.fork()
            stays, goes = (child, one) if action["follow"] == "child" else (one, child)
            branch.one = stays
            which = "parent" if goes is one else "child"
            return [
                _Branch(
                    f"the {which} of the fork at {action['at']} ps",
                    goes,
                    list(branch.left),
                    branch.expected,
                    list(branch.changes),
                )
            ]
        case "diverge":
            change = {**action["change"], "at": action["at"]}
            fresh = Simulation(resolved)
            _run(fresh, [*branch.changes, change], end)
            other = one.fork()
            apply(other, change)
            return [_Branch(f"the fork that diverges at {action['at']} ps", other, [], fresh)]
        case "pause":
            one.engine.run_window_budget(end if not branch.left else branch.left[0]["at"], action["hops"])
        case "look":
            for table in ALL:
                one.engine.table(table)
            one.progress()
            one.digest()
            _keeps_laws("disturbed", one)
        case _:
            apply(one, action)
            branch.changes.append(action)
    return []


def _observed(case: Case, resolved: Resolved, straight: Simulation) -> int:
    """With all that can be observed, and with nothing."""
    switches = [key for key, value in resolved.tables["observe"].items() if isinstance(value, bool)]
    for name, on in (("nothing", False), ("all", True)):
        observe = {**resolved.tables["observe"], **dict.fromkeys(switches, on), "record": None}
        if on:
            observe["record"] = {"job": 0, "from": 0, "to": resolved.duration}
        one = Simulation(replace(resolved, tables={**resolved.tables, "observe": observe}))
        _run(one, case.changes, resolved.duration)
        _keeps_laws("observed", one)
        if _hash(straight, UNOBSERVED) != _hash(one, UNOBSERVED):
            raise Difference("observed", f"the progress of ranks differs if {name} is observed")
    return 2


def _runner(case: Case, resolved: Resolved, straight: Simulation) -> int:
    """As `fairlane run` does, with samples, counters at iterations, and what is recorded."""
    if case.changes:
        return 0
    measured = Experiment(resolved, isolated=False).perform(progress=False)
    if measured.together.digest != straight.digest():
        raise Difference("runner", "the runner's digest differs")
    return 1


def _reference(case: Case, resolved: Resolved, _straight: Simulation) -> int:
    """Event for event as the second simulator, in plain Python, does it."""
    try:
        difference = compare(case, resolved)
    except Unsupported:
        return 0
    if difference:
        raise Difference("reference", difference)
    return 1


CHECKS: dict[str, Callable[[Case, Resolved, Simulation], int]] = {
    "laws": lambda _case, _resolved, _straight: 1,
    "again": _again,
    "written": _written,
    "disturbed": _disturbed,
    "observed": _observed,
    "runner": _runner,
    "reference": _reference,
}
"""The checks by name; each returns how many runs it has compared."""


def _run(one: Simulation, changes: Sequence[Action], end: int) -> None:
    """Runs a simulation to the end, with changes on the way."""
    for action in changes:
        one.run_until(action["at"])
        apply(one, action)
    one.run_until(end)


def _keeps_laws(name: str, one: Simulation) -> None:
    words = broken(one)
    if words:
        raise Difference(name, f"after {one.now} ps: {words}")


def _agree(name: str, which: str, expected: Simulation, found: Simulation) -> None:
    if expected.digest() != found.digest() or _hash(expected, RECORDED) != _hash(found, RECORDED):
        tables = [table for table in ALL if _hash(expected, [table]) != _hash(found, [table])]
        raise Difference(name, f"{which}: these tables differ: {', '.join(tables) or 'none, only the clock'}")


def _hash(one: Simulation, tables: Sequence[str]) -> str:
    found = hashlib.sha256()
    for table in tables:
        for name, (dtype, content) in one.engine.table(table).items():
            found.update(f"{name} {dtype} ".encode() + content)
    return found.hexdigest()
