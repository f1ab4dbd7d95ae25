"""A case: a scenario and what happens while it runs, both plain data, so that a case can be stored, read and shrunk."""

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import Any

import tomlkit

from fairlane import FairlaneError, RunError, Scenario, Simulation
from fairlane.inputs.code import allow_code
from fairlane.model.scenario import Resolved
from vopr.fabrics import Table
from vopr.scenarios import SCRIPTED, TRACE, draw_arbiter, draw_scenario

__all__ = ["CHANGES", "DISTURBANCES", "Action", "Case", "apply", "draw", "possible"]

ATTEMPTS = 200
"""Some draws do not fit together, as a placement that finds no room; then the next one is taken."""
MOST_HOPS = 30_000
"""Packet-hops of a run; a longer one is cut off there."""
MOST_ITERATIONS = 20_000
"""Iterations of a rank; a run in which one is further is cut off there."""
PARTS = 40
"""In how many parts of its duration a run is tried."""
RANK_TIME = 40 * 10**9
"""Simulated time times ranks, ps: what does not send costs, too."""

Action = dict[str, Any]
"""What is done at a time ``at``, ps: ``do`` names it, other keys are its parameters."""


@dataclass(frozen=True)
class Case:
    """A scenario with its actions. Its files are relative to this folder."""

    seed: int
    scenario: Table
    actions: Sequence[Action] = ()

    @contextmanager
    def read(self) -> Iterator[Scenario]:
        """Within, the scenario can be built; it may name the workload of random programs."""
        tables = json.dumps(self.scenario)
        for name in (TRACE, SCRIPTED):
            tables = tables.replace(f'"{name}"', json.dumps(str(Path(__file__).parent / name)))
        with allow_code():
            yield Scenario(**json.loads(tables))

    def resolve(self) -> Resolved:
        """The scenario with everything decided."""
        with self.read() as scenario:
            return scenario.resolve()

    @property
    def changes(self) -> list[Action]:
        """The actions that change what is simulated."""
        return [action for action in self.actions if action["do"] in CHANGES]

    @property
    def text(self) -> str:
        """The case as TOML."""
        return tomlkit.dumps({"seed": self.seed, "scenario": self.scenario, "actions": list(self.actions)})

    @classmethod
    def load(cls, path: Path) -> "Case":
        """The case of a file that has its ``text``."""
        data = tomlkit.parse(path.read_text(encoding="utf-8")).unwrap()
        return cls(data["seed"], data["scenario"], data.get("actions", []))


CHANGES: dict[str, Callable[[Simulation, Action], None]] = {
    "job_level": lambda one, action: one.set_job_service_level(action["job"], action.get("level")),
    "kind_level": lambda one, action: one.set_kind_service_level(action["kind"], action.get("level")),
    "rank_levels": lambda one, action: one.set_service_levels(
        {action["job"]: {int(rank): level for rank, level in action["levels"].items()}}
    ),
    "arbiter": lambda one, action: one.set_arbiter(**action["arbiter"]),
}
"""The actions that change what is simulated from then on."""

DISTURBANCES = ("fork", "diverge", "pause", "look")
"""The actions that must not change anything: a fork that is followed or left, a fork with a change of its own, a pause
after a number of packet-hops, reading all results."""


def apply(one: Simulation, action: Action) -> None:
    """Carries out a change; raises ``FairlaneError`` if the scenario does not allow it."""
    CHANGES[action["do"]](one, action)


def draw(seed: int) -> tuple[Case, Resolved]:
    """The case of a seed, and its scenario with everything decided."""
    refused: Exception | None = None
    for attempt in range(ATTEMPTS):
        try:
            case = Case(seed, draw_scenario(seed, attempt))
            resolved = case.resolve()
        except FairlaneError as error:
            refused = error
            continue
        duration = _affordable(resolved)
        if duration < resolved.duration:
            case = replace(case, scenario={**case.scenario, "duration": f"{duration} ps"})
            resolved = case.resolve()
        return replace(case, actions=_actions(Random(f"actions {seed}"), resolved)), resolved
    raise RuntimeError(f"seed {seed}: no draw of {ATTEMPTS} fits together; the last: {refused}")


def _affordable(resolved: Resolved) -> int:
    """How long it is simulated, ps: not beyond a number of packet-hops, nor for long if there are many ranks.

    Nor beyond a number of iterations: a rank that only sends small messages can be far ahead of their receiver, and
    each of them takes memory until it is received.
    """
    ranks = sum(job.ranks for job in resolved.jobs)
    duration = min(resolved.duration, RANK_TIME // ranks)
    engine = resolved.engine()
    with suppress(RunError):  # which a check will find
        for part in range(1, PARTS + 1):
            engine.run_window_budget(duration * part // PARTS, MOST_HOPS - engine.packet_hops)
            most = max(max(of_job, default=0) for of_job in engine.progress())
            if engine.packet_hops >= MOST_HOPS or most >= MOST_ITERATIONS:
                break
        return max(1, min(duration, engine.now))
    return duration


def _actions(rng: Random, resolved: Resolved) -> list[Action]:
    instants = sorted(rng.randrange(1, resolved.duration + 1) for _ in range(rng.choice([0, 1, 2, 4, 6, 8])))
    found = []
    for at in instants:
        action = {"at": at, **(_change(rng, resolved) if rng.random() < 0.5 else _disturbance(rng, resolved))}
        if possible(action, resolved):
            found.append(action)
    return found


def _change(rng: Random, resolved: Resolved) -> Action:
    qos = resolved.tables["qos"]
    lanes = 1 + max(qos["sl2vl"], default=0)
    job, levels = rng.choice(resolved.jobs), [*range(max(lanes, len(qos["sl2vl"])))]
    level: Action = {"level": rng.choice(levels)} if rng.random() < 0.8 else {}
    ranks = {str(rank): rng.choice(levels) for rank in rng.sample(range(job.ranks), rng.randint(0, 2))}
    return rng.choice(
        [
            {"do": "job_level", "job": job.name, **level},
            {"do": "kind_level", "kind": rng.choice(list(qos["kinds"])), **level},
            {"do": "rank_levels", "job": job.name, "levels": ranks},
            {"do": "arbiter", "arbiter": draw_arbiter(rng, lanes)},
        ]
    )


def _disturbance(rng: Random, resolved: Resolved) -> Action:
    name = rng.choice(DISTURBANCES)
    if name == "fork":
        return {"do": name, "follow": rng.choice(["parent", "child"])}
    if name == "diverge":
        return {"do": name, "change": _change(rng, resolved)}
    return {"do": name, "hops": rng.randint(1, 2000)} if name == "pause" else {"do": name}


def possible(action: Action, resolved: Resolved) -> bool:
    """Whether a scenario allows an action."""
    change = action.get("change", action)
    if change["do"] not in CHANGES:
        return True
    try:
        apply(Simulation(resolved), change)
    except FairlaneError:
        return False
    return True
