"""Reproducing papers: their experiments, cell by cell, and their claims beside what was measured."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from fairlane.controller import make
from fairlane.errors import Problem, ScenarioError
from fairlane.reproduce.cells import run_cells
from fairlane.reproduce.claims import Claim, claims_of
from fairlane.reproduce.experiment import CONTROL, Experiment, Paper, Scale
from fairlane.reproduce.output import store
from fairlane.reproduce.report import Judged, Plan, Reproduction
from fairlane.reproduce.results import Results
from fairlane.reproduce.savoie2020 import PAPER as SAVOIE2020
from fairlane.study.execute import Watcher
from fairlane.study.pool import LocalPool, Pool, cores
from fairlane.study.store import Store

__all__ = ["PAPERS", "Judged", "Plan", "Reproduction", "plan", "reproduce"]

PAPERS: Mapping[str, Paper] = {SAVOIE2020.name: SAVOIE2020}
"""Every paper that can be reproduced, by name."""


def plan(
    name: str,
    *,
    only: str | None = None,
    quick: bool = False,
    placements: int | None = None,
    periods: int | None = None,
    beside: Sequence[str] = (),
) -> Plan:
    """Which experiments the claims need; raises ``ScenarioError`` for an unknown paper, claim or controller.

    ``placements`` and ``periods`` are upper bounds on what each experiment has. Controllers ``beside`` the paper's own
    are run and shown, and no claim is judged by them.
    """
    if name not in PAPERS:
        raise ScenarioError(Problem.unknown("paper", "paper", name, [*PAPERS, "wilke2020"], name))
    for option, value in (("--placements", placements), ("--periods", periods)):
        if value is not None and value < 1:
            raise ScenarioError(Problem(option, "out of range", value, "at least 1"))
    for controller in beside:
        make(controller)
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
        chosen[experiment.name] = (_beside(experiment, beside), scale)
        if scale != experiment.full:
            left_out[experiment.name] = _scaled(experiment.full, scale)
    return Plan(paper, claims, chosen, left_out)


def _beside(experiment: Experiment, controllers: Sequence[str]) -> Experiment:
    """The experiment with these controllers too, if it has any."""
    if CONTROL not in experiment.treatments:
        return experiment
    return replace(experiment, treatments=tuple(dict.fromkeys([*experiment.treatments, *controllers])))


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


def reproduce(
    chosen: Plan, folder: Path, watcher: Watcher, *, workers: int | None = None, dask: str | None = None
) -> Reproduction:
    """Runs what is missing in ``folder``, judges the claims, stores tables and draws figures.

    Args:
        chosen: What to run.
        folder: Where answers are kept and found again, with tables and figures beside them.
        watcher: Hears of every cell.
        workers: How many processes of this machine; None for all cores.
        dask: Address of a Dask scheduler whose workers to use instead.
    """
    if dask is None:
        pool: Pool = LocalPool(cores() if workers is None else workers)
    else:
        from fairlane.study.cluster import connect

        pool = connect(dask)
    try:
        done = run_cells(chosen.cells(), pool, Store(folder), watcher)
    finally:
        pool.close()
    defaults = {name: experiment.default for name, (experiment, _) in chosen.experiments.items()}
    results = Results.of(done, defaults)
    judged = [_judge(claim, chosen, results) for claim in chosen.claims]
    found = Reproduction(chosen, results, judged, done)
    store(found, folder)
    return found


def _judge(claim: Claim, chosen: Plan, results: Results) -> Judged:
    check = chosen.paper.checks[claim.id]
    missing = [
        name
        for name in check.experiments
        if name not in chosen.experiments or not results.has(name, chosen.experiments[name][0].judged)
    ]
    scaled = any(name in chosen.left_out for name in check.experiments)
    return Judged(claim, [] if missing else check.judge(results), missing, scaled)
