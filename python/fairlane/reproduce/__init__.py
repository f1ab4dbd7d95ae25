"""Reproducing papers: their experiments, cell by cell, and their claims beside what was measured."""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from fairlane.errors import Problem, ScenarioError
from fairlane.reproduce.cells import Cell, Done, run_cells
from fairlane.reproduce.claims import Claim, Finding, claims_of
from fairlane.reproduce.experiment import DEFAULT, Experiment, Paper, Scale
from fairlane.reproduce.results import Results
from fairlane.reproduce.savoie2020 import PAPER as SAVOIE2020

__all__ = ["PAPERS", "Judged", "Plan", "Reproduction", "plan", "reproduce"]

PAPERS: Mapping[str, Paper] = {SAVOIE2020.name: SAVOIE2020}
"""Every paper that can be reproduced, by name."""


@dataclass(frozen=True)
class Judged:
    """A claim and what was measured."""

    claim: Claim
    findings: Sequence[Finding]
    """Empty if something that it needs was not run."""
    missing: Sequence[str]
    """The experiments that were not run, or failed."""
    scaled: bool
    """Whether less was run than the paper has: then it is a try-out and not a judgement."""

    @property
    def holds(self) -> bool | None:
        """Whether all that was measured is in its band; None if not everything was."""
        return None if self.missing else all(held for _, held in self.findings)


@dataclass(frozen=True)
class Plan:
    """What will be run, and what is left out."""

    paper: Paper
    claims: Sequence[Claim]
    experiments: Mapping[str, tuple[Experiment, Scale]]
    left_out: Mapping[str, str]
    """Experiments that are not run or are scaled, and how."""

    def cells(self) -> list[Cell]:
        """The cells, each once: experiments may share their default runs."""
        found = [
            Cell(self.paper.name, experiment.default if treatment == DEFAULT else name, placement, treatment, scale)
            for name, (experiment, scale) in self.experiments.items()
            for placement in range(1, scale.placements + 1)
            for treatment in experiment.treatments
        ]
        return list(dict.fromkeys(found))


@dataclass(frozen=True)
class Reproduction:
    """What came out."""

    plan: Plan
    results: Results
    judged: Sequence[Judged]
    failed: Sequence[Done]
    """Cells that have no rows."""


def plan(
    name: str,
    *,
    only: str | None = None,
    quick: bool = False,
    placements: int | None = None,
    periods: int | None = None,
) -> Plan:
    """Which experiments the claims need; raises ``ScenarioError`` for an unknown paper or claim.

    ``placements`` and ``periods`` are upper bounds on what each experiment has.
    """
    if name not in PAPERS:
        raise ScenarioError(Problem.unknown("paper", "paper", name, list(PAPERS), name))
    for option, value in (("--placements", placements), ("--periods", periods)):
        if value is not None and value < 1:
            raise ScenarioError(Problem(option, "out of range", value, "at least 1"))
    paper = PAPERS[name]
    claims = claims_of(name, only)
    needed = {experiment for claim in claims for experiment in paper.checks[claim.id].experiments}
    chosen: dict[str, tuple[Experiment, Scale]] = {}
    left_out: dict[str, str] = {}
    for experiment in paper.experiments.values():
        if experiment.name not in needed:
            continue
        scale = _scale(experiment, quick=quick, placements=placements, periods=periods)
        if scale is None:
            left_out[experiment.name] = "too large for a quick look"
            continue
        problem = _problem_with(experiment, scale)
        if problem:
            left_out[experiment.name] = problem
            continue
        chosen[experiment.name] = (experiment, scale)
        if scale != experiment.full:
            left_out[experiment.name] = _scaled(experiment.full, scale)
    return Plan(paper, claims, chosen, left_out)


def _scale(experiment: Experiment, *, quick: bool, placements: int | None, periods: int | None) -> Scale | None:
    scale = experiment.quick if quick else experiment.full
    if scale is None:
        return None
    return Scale(
        min(scale.placements, placements or scale.placements),
        min(scale.periods, periods or scale.periods),
        scale.period,
        scale.draws,
    )


def _problem_with(experiment: Experiment, scale: Scale) -> str | None:
    """Why it cannot be run here, if so: a routing that this simulator does not have, traces that are not there."""
    try:
        experiment.phases(1, scale)
    except ScenarioError as error:
        return str(error)
    return None


def _scaled(full: Scale, scale: Scale) -> str:
    pairs = (("placements", "placements"), ("periods", "iterations"), ("period", "P"), ("draws", "variants"))
    return ", ".join(
        f"{words} {getattr(scale, key)} of {getattr(full, key)}"
        for key, words in pairs
        if getattr(scale, key) != getattr(full, key)
    )


def _silently(done: Done) -> None:
    """Hears of a cell and says nothing."""
    del done


def reproduce(
    chosen: Plan, folder: Path, *, workers: int | None = None, told: Callable[[Done], None] = _silently
) -> Reproduction:
    """Runs what is missing in ``folder``, judges the claims, stores tables and draws figures."""
    cores = len(os.sched_getaffinity(0)) if workers is None else workers
    done = run_cells(chosen.cells(), cores, folder / "cells", told)
    defaults = {name: experiment.default for name, (experiment, _) in chosen.experiments.items()}
    results = Results.of(done, defaults)
    judged = [_judge(claim, chosen, results) for claim in chosen.claims]
    found = Reproduction(chosen, results, judged, [one for one in done if one.rows is None])
    _store(found, folder)
    return found


def _judge(claim: Claim, chosen: Plan, results: Results) -> Judged:
    check = chosen.paper.checks[claim.id]
    missing = [
        name
        for name in check.experiments
        if name not in chosen.experiments or not results.has(name, chosen.experiments[name][0].treatments[-1])
    ]
    scaled = any(name in chosen.left_out for name in check.experiments)
    return Judged(claim, [] if missing else check.judge(results), missing, scaled)


def _store(found: Reproduction, folder: Path) -> None:
    """A table of jobs for each experiment, its figure, and the claims."""
    from fairlane.reproduce.figures import draw_experiment, draw_progress

    shown = [
        (name, experiment)
        for name, (experiment, _) in found.plan.experiments.items()
        for treatment in experiment.treatments[-1:]
        if treatment != DEFAULT and found.results.has(name, treatment)
    ]
    for name, experiment in shown:
        found.results.jobs(name).write_csv(folder / f"{name}.csv", float_precision=4)
        draw_experiment(experiment, found.results, folder / f"{name}.png")
    static = [name for name, _ in shown if name.endswith(".static")]
    if static:
        draw_progress(found.results, static, folder / "progress.png")
    rows = [
        {
            "claim": one.claim.id,
            "where": one.claim.where,
            "paper": one.claim.claim,
            "measured": "; ".join(words for words, _ in one.findings) or f"not run: {', '.join(one.missing)}",
            "holds": {True: "yes", False: "no", None: "-"}[one.holds] + (" (scaled)" if one.scaled else ""),
        }
        for one in found.judged
    ]
    pl.DataFrame(rows).write_csv(folder / "claims.csv")
