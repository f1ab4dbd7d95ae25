"""The alternatives that an application has beside its neighbours, each simulated; the best one is the advice.

It takes simulations and not a fitted model, which does not know the run time of an application that it has not seen
(see docs/advice.md). A study does them: every alternative on the hosts of several seeds, beside the neighbours and
without them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from fairlane.errors import Problem, RunError, ScenarioError

if TYPE_CHECKING:
    from fairlane.scenario import Scenario

__all__ = ["PLACEMENTS", "Advice", "advise"]

PLACEMENTS = ("packed", "spread", "random")
_KEYS = ("rails", "service_level", "placement")


@dataclass(frozen=True)
class Advice:
    """What was found for one application."""

    job: str
    """Its name."""
    table: pl.DataFrame
    """A row for each alternative, the best first: ``rails``, ``service_level``, ``placement``; ``iteration_ms`` with
    ``least_ms`` and ``most_ms`` over the seeds, ``alone_ms`` without neighbours; and ``neighbours``, the mean W of the
    other jobs."""
    iterations: int
    """The fewest of its iterations in a simulation: times are known to one part in so many."""


def advise(
    file: Path,
    *,
    job: str | None = None,
    cap: str | None = None,
    levels: Sequence[int] | None = None,
    length: str | None = None,
    seeds: int = 3,
    workers: int | None = None,
    out: Path | None = None,
) -> Advice:
    """Simulates all alternatives of a scenario's job, by default its first, and puts them in order.

    Args:
        file: The scenario, with the application and its neighbours.
        job: The application's name.
        cap: Its power cap, as ``"65 W"``, in place of the scenario's.
        levels: Service levels that it may have; by default all that the scenario has.
        length: How long each simulation is, as ``"2 ms"``, in place of the scenario's duration.
        seeds: How many seeds, and so random placements, each alternative is tried with.
        workers: Processes; None for one for each core.
        out: Folder of the study; None for a new one in ``runs``.

    Raises:
        ScenarioError: Something that was given is wrong; nothing was simulated.
        RunError: A simulation failed, or was too short for an iteration.
    """
    from fairlane.inputs.document import Document
    from fairlane.scenario import Scenario
    from fairlane.study import Study, run

    overrides = [f'duration="{length}"'] if length else []
    scenario = Scenario.load(file, set=overrides)
    at = _number(scenario, job, file)
    keys = {key: f"jobs[{at}].{key}" for key in _KEYS}
    values = _values(scenario, at, levels, file)
    changes: dict[str, Any] = {"duration": length} if length else {}
    changes |= {f"jobs[{at}].power_cap": cap} if cap else {}
    changes |= _computing(scenario)
    study = Study(
        Document(
            {
                "name": f"{scenario.name}-advice",
                "scenario": str(file.resolve()),
                "set": changes,
                "seeds": list(range(1, seeds + 1)),
                "parameters": {keys[key]: [written for _, written in values[key]] for key in _KEYS},
            }
        )
    )
    found = run(study, out=out, workers=workers, figures=False)
    if found.failures.height:
        raise RunError(f"{found.failures['error'][0]}; see {found.folder}", slug="failed")
    name = scenario.jobs[at].names()[0]
    own = found.work.filter(pl.col("name") == name)
    fewest = int(own.select(pl.col("iterations").min()).item())
    if not fewest:
        raise RunError(f"{name}: no iteration in the length of a simulation; make it longer", slug="limit")
    return Advice(name, _ranked(found.work, name, _labels(values)), fewest)


def _number(scenario: "Scenario", job: str | None, file: Path) -> int:
    """Which of the scenario's jobs it is."""
    names = [one.name or one.kind for one in scenario.jobs]
    if job is not None and job not in names:
        raise ScenarioError(Problem.unknown("--job", "job of the scenario", job, names, job))
    at = 0 if job is None else names.index(job)
    if scenario.jobs[at].count > 1:
        raise ScenarioError(
            Problem(f"jobs[{at}].count", "advice is for one job", scenario.jobs[at].count, "1", str(file))
        )
    return at


def _values(
    scenario: "Scenario", at: int, levels: Sequence[int] | None, file: Path
) -> Mapping[str, Sequence[tuple[str, Any]]]:
    """What each key can be, with what that is called."""
    from fairlane.scenario.resolve import decide

    have = len(set(decide(scenario).tables["qos"]["sl2vl"]))
    wrong = [level for level in levels or () if not 0 <= level < have]
    if wrong:
        words = "the scenario has no such service level"
        raise ScenarioError(Problem("--level", words, wrong[0], f"0 to {have - 1}", str(file)))
    rails = scenario.fabric.rails.count if scenario.fabric.rails else 1
    every: list[tuple[str, Any]] = [(f"only {rail}", {"only": rail}) for rail in range(rails)]
    if rails > 1:
        every.insert(0, ("all", {"policy": "by_source", "order": "random"}))
    own = scenario.jobs[at].ranks_per_host or (scenario.jobs[at].placement or scenario.placement).ranks_per_host
    return {
        "rails": every,
        "service_level": [(str(level), level) for level in levels or range(have)],
        "placement": [(name, {"strategy": name, "ranks_per_host": own}) for name in PLACEMENTS],
    }


def _computing(scenario: "Scenario") -> dict[str, Any]:
    """Compute times that are to be found, found once: alternatives are to have the same."""
    unknown = [at for at, job in enumerate(scenario.jobs) if job.workload and job.workload.compute is None]
    if not unknown:
        return {}
    first, number = {}, 0
    for at, job in enumerate(scenario.jobs):
        first[at] = number
        number += job.count
    resolved = scenario.resolve()
    return {f"jobs[{at}].workload.compute": f"{resolved.jobs[first[at]].compute} ps" for at in unknown}


def _labels(values: Mapping[str, Sequence[tuple[str, Any]]]) -> list[dict[str, str]]:
    """What the alternatives are called, in the order of a study's points."""
    return [
        dict(zip(_KEYS, names, strict=True)) for names in product(*([it for it, _ in values[key]] for key in _KEYS))
    ]


def _ranked(work: pl.DataFrame, name: str, labels: Sequence[Mapping[str, str]]) -> pl.DataFrame:
    seeds = work["point"].n_unique() // len(labels)
    own = work.filter(pl.col("name") == name)
    others = work.filter(pl.col("name") != name).group_by("point").agg(neighbours=pl.col("w").mean())
    time = pl.col("span_ps") / pl.col("iterations") * 1e-9
    return (
        own.with_columns(time=time, alternative=pl.col("point") // seeds)
        .join(others, on="point", how="left")
        .group_by("alternative", maintain_order=True)
        .agg(
            iteration_ms=pl.col("time").mean(),
            least_ms=pl.col("time").min(),
            most_ms=pl.col("time").max(),
            alone_ms=(pl.col("time") * (1 + pl.col("w"))).mean(),
            neighbours=pl.col("neighbours").mean(),
        )
        .with_columns(*(pl.Series(key, [label[key] for label in labels]) for key in _KEYS))
        .sort("iteration_ms", "alternative")
        .select(*_KEYS, "iteration_ms", "least_ms", "most_ms", "alone_ms", "neighbours")
    )
