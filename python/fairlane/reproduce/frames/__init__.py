"""Reproducing papers: their experiments simulated, and their claims beside what was measured.

A paper is a folder here with a ``PAPER`` and its ``claims.toml``, and one line in ``PAPERS``. ``paper`` says what a
``Paper`` is.
"""

from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path

from fairlane.controller import CONTROLLERS
from fairlane.errors import Problem, ScenarioError
from fairlane.reproduce.frames.claims import claims_of
from fairlane.reproduce.frames.output import store
from fairlane.reproduce.frames.paper import Done, Options, Paper
from fairlane.reproduce.frames.report import HOLDS, Judged, Plan, Reproduction
from fairlane.reproduce.frames.running import perform_all
from fairlane.reproduce.frames.yang2016 import PAPER as YANG2016
from fairlane.tasks.executor import Watcher
from fairlane.tasks.pools import open_pool
from fairlane.tasks.store import Store

__all__ = ["HOLDS", "PAPERS", "Judged", "Plan", "Reproduction", "plan", "reproduce"]

PAPERS: Mapping[str, Paper] = {paper.name: paper for paper in (YANG2016,)}
"""Every paper that can be reproduced, by name."""


def plan(
    name: str,
    *,
    only: str | Sequence[str] = (),
    quick: bool = False,
    placements: int | None = None,
    periods: int | None = None,
    beside: Sequence[str] = (),
    cabling: str | None = None,
) -> Plan:
    """What all claims, or ``only`` one or some, need; raises ``ScenarioError`` for a name that is unknown.

    ``placements`` and ``periods`` are upper bounds on what each experiment has. Controllers ``beside`` the paper's own
    are run and shown, and no claim is judged by them. ``cabling`` is one of the paper's ways to cable its machine.
    """
    if name not in PAPERS:
        raise ScenarioError(Problem.unknown("paper", "paper", name, list(PAPERS), name))
    paper, claims = PAPERS[name], claims_of(name, only)
    for option, value in (("--placements", placements), ("--periods", periods)):
        if value is not None and value < 1:
            raise ScenarioError(Problem(option, "out of range", value, "at least 1"))
    for controller in beside:
        if controller not in CONTROLLERS:
            raise ScenarioError(Problem.unknown("--beside", "controller", controller, list(CONTROLLERS), controller))
    if cabling is not None and paper.cablings and cabling not in paper.cablings:
        raise ScenarioError(Problem.unknown("--cabling", "cabling", cabling, paper.cablings, cabling))
    options = Options(quick, placements, periods, beside, cabling)
    refused = sorted(options.given - paper.options)
    if refused:
        allowed = ["only", "quick", "out", "resume", "workers", "dask", *sorted(paper.options)]
        words = ", ".join(f"--{option}" for option in allowed)
        raise ScenarioError(Problem(f"--{refused[0]}", f"{name} has no such option", allowed=words))
    checks = [paper.checks[claim.id] for claim in claims]
    needed = {experiment for check in checks for experiment in (*check.experiments, *check.shown)}
    return Plan(paper, claims, options, paper.select([one for one in paper.experiments if one in needed], options))


def reproduce(
    chosen: Plan, folder: Path, watcher: Watcher, *, workers: int | None = None, dask: str | None = None
) -> Reproduction:
    """Runs what is missing in ``folder``, judges the claims, stores tables and draws figures.

    Args:
        chosen: What to run.
        folder: Where answers are kept and found again, with tables and figures beside them.
        watcher: Hears of every task.
        workers: How many processes of this machine; None for all cores.
        dask: Address of a Dask scheduler whose workers to use instead.
    """
    kept = Store(folder)
    with closing(open_pool(workers, dask)) as pool:
        done = perform_all(chosen.selection.tasks, pool, kept, watcher)
    return _conclude(chosen, done, folder, kept.damaged)


def _conclude(chosen: Plan, done: Mapping[object, Done], folder: Path, damaged: Sequence[str] = ()) -> Reproduction:
    """Judges the claims by what came of the tasks, and stores everything."""
    measured = chosen.selection.measured(done)
    judged = [chosen.judge(claim, measured) for claim in chosen.claims]
    found = Reproduction(chosen, measured, judged, done, damaged)
    folder.mkdir(parents=True, exist_ok=True)
    store(found, folder)
    return found
