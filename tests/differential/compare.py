"""Runs one scenario in one go, in pieces, in forks, with and without observation, and compares what was measured."""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from random import Random

from differential.scenarios import arbiter, draw
from fairlane import BuildError, RunError, Simulation
from fairlane.runner.experiment import Experiment
from fairlane.scenario import Resolved

__all__ = ["Difference", "compare"]

RECORDED = ("port_interference", "departures", "marks", "messages", "waits")
UNOBSERVED = ("ranks", "calls")
"""The tables that are the same whether or not ports are observed."""


Found = list[tuple[str, str | None, str]]
"""What was compared, the expected digest (None for that of the straight run), and the one found."""


class Difference(AssertionError):
    """Two ways to run a scenario that do not agree, or a law that does not hold."""


@dataclass(frozen=True)
class Action:
    """A change while a scenario runs."""

    at: int
    """When it is made, ps."""
    what: str
    do: Callable[[Simulation], None]


def compare(seed: int) -> dict[str, int]:
    """Runs the scenario of this seed in all ways and returns what happened; raises ``Difference``."""
    _, resolved = draw(seed)
    rng = Random(f"actions {seed}")
    actions = _actions(rng, resolved)
    try:
        straight = _straight(resolved, actions)
        ways: dict[str, Callable[[], Found]] = {
            "in pieces": lambda: _in_pieces(rng, resolved, actions),
            "forked": lambda: _forked(rng, resolved, actions),
            "observed otherwise": lambda: _observed_otherwise(resolved, actions),
            "by the runner": lambda: _by_the_runner(resolved),
        }
        for name, run in ways.items():
            for what, expected, found in run():
                if (straight if expected is None else expected) != found:
                    words = ", ".join(f"{action.what} at {action.at} ps" for action in actions) or "no actions"
                    raise Difference(f"seed {seed}: {name}: {what} differ; {words}")
    except RunError as error:
        raise Difference(f"seed {seed}: {error}") from error
    hops = Simulation(resolved)
    hops.run_until(resolved.duration)
    return {"packet_hops": hops.packet_hops, "actions": len(actions), "jobs": len(resolved.jobs)}


def _actions(rng: Random, resolved: Resolved) -> list[Action]:
    lanes = len(set(resolved.tables["qos"]["sl2vl"]) or {0})
    instants = sorted(rng.randrange(1, resolved.duration) for _ in range(rng.randint(0, 4)))
    return [action for at in instants if _possible(action := _action(rng, at, resolved, lanes), resolved)]


def _action(rng: Random, at: int, resolved: Resolved, lanes: int) -> Action:
    job, level = rng.choice(resolved.jobs), rng.choice([None, *range(lanes)])
    rank, kind = rng.randrange(job.ranks), rng.choice(list(resolved.tables["qos"]["kinds"]))
    chosen = arbiter(rng, lanes)
    ranks = {} if level is None else {rank: level}

    def of_job(one: Simulation) -> None:
        one.set_job_service_level(job.name, level)

    def of_kind(one: Simulation) -> None:
        one.set_kind_service_level(kind, level)

    def of_rank(one: Simulation) -> None:
        one.set_service_levels({job.name: ranks})

    def of_ports(one: Simulation) -> None:
        one.set_arbiter(**chosen)

    choices = [
        (f"level {level} of {job.name}", of_job),
        (f"level {level} of {kind}", of_kind),
        (f"level {level} of rank {rank} of {job.name}", of_rank),
        (f"arbiter {chosen}", of_ports),
    ]
    return Action(at, *rng.choice(choices))


def _possible(action: Action, resolved: Resolved) -> bool:
    try:
        action.do(Simulation(resolved))
    except BuildError:
        return False
    return True


def _do(one: Simulation, actions: Sequence[Action], end: int) -> None:
    for action in actions:
        one.run_until(action.at)
        action.do(one)
    one.run_until(end)


def _straight(resolved: Resolved, actions: Sequence[Action]) -> str:
    one = Simulation(resolved)
    _do(one, actions, resolved.duration)
    _check(one)
    return _digest(one)


def _in_pieces(rng: Random, resolved: Resolved, actions: Sequence[Action]) -> Found:
    """In steps of odd lengths and few packet-hops; laws hold at each stop; changes that change nothing do nothing."""
    one = Simulation(resolved)
    kinds = dict(resolved.tables["qos"]["kinds"])
    changed = any("level" in action.what for action in actions)
    for end, action in [*((action.at, action) for action in actions), (resolved.duration, None)]:
        while one.now < end and not one.finished:
            if rng.random() < 0.5:
                one.engine.run_window_budget(end, rng.randint(1, 400))
            else:
                one.run_until(min(end, one.now + rng.randint(1, resolved.duration // 5)))
            _check(one)
            if rng.random() < 0.3 and not changed:
                kind = rng.choice(list(kinds))
                one.set_kind_service_level(kind, kinds[kind])
            one.table("ports")
        one.run_until(end)
        if action is not None:
            action.do(one)
    return [("pieces", None, _digest(one))]


def _forked(rng: Random, resolved: Resolved, actions: Sequence[Action]) -> Found:
    """Continued in forks of forks, which are left behind and run to the end themselves."""
    one = Simulation(resolved)
    left: list[tuple[Simulation, list[Action]]] = []
    stops = sorted(rng.randrange(1, resolved.duration) for _ in range(3))
    todo = [*actions]
    for stop in stops:
        while todo and todo[0].at <= stop:
            one.run_until(todo[0].at)
            todo.pop(0).do(one)
        one.run_until(stop)
        other = one.fork()
        left.append((one, list(todo)))
        one = other
    left.append((one, todo))
    found: Found = []
    for number, (simulation, rest) in enumerate(left):
        _do(simulation, rest, resolved.duration)
        _check(simulation)
        found.append((f"fork {number} of those at {stops} ps", None, _digest(simulation)))
    return found


def _observed_otherwise(resolved: Resolved, actions: Sequence[Action]) -> Found:
    """With all that can be observed of ports, and with nothing."""
    bare = {"counters": False, "interference_by_port": False, "departures": False, "onward_waiting": False}
    full = dict.fromkeys(bare, True)
    digests = []
    for observe in (bare, full):
        tables = {**resolved.tables, "observe": {**resolved.tables["observe"], **observe, "record": None}}
        one = Simulation(replace(resolved, tables=tables))
        _do(one, actions, resolved.duration)
        _check(one)
        digests.append(_hash(one, UNOBSERVED))
    return [("ranks and calls", digests[0], digests[1])]


def _by_the_runner(resolved: Resolved) -> Found:
    """As `fairlane run` does, with samples, counters at iterations, and what is recorded."""
    one = Simulation(resolved)
    one.run_until(resolved.duration)
    outcome = Experiment(resolved, isolated=False).perform(progress=False)
    return [("runs", one.digest(), outcome.together.measured.digest)]


def _check(one: Simulation) -> None:
    one.engine.check_laws()


def _digest(one: Simulation) -> str:
    return one.digest() + _hash(one, RECORDED)


def _hash(one: Simulation, tables: Sequence[str]) -> str:
    found = hashlib.sha256()
    for table in tables:
        for name, (dtype, content) in one.engine.table(table).items():
            found.update(f"{name} {dtype} ".encode() + content)
    return found.hexdigest()
