"""Reproducing papers: a folder with study files, claims and figures, run, judged and drawn.

``folder`` has the format, ``planning`` what is run, ``running`` how, ``judging`` the verdicts, ``figures`` and
``output`` what is left. The papers that fairlane comes with are in ``papers``.
"""

from collections.abc import Sequence
from pathlib import Path

from fairlane.controller import CONTROLLERS
from fairlane.errors import Problem, ScenarioError
from fairlane.inputs.problems import refusing
from fairlane.reproduce.folder import Folder
from fairlane.reproduce.judging import HOLDS, Judged, judged
from fairlane.reproduce.output import Reproduction, store
from fairlane.reproduce.planning import PAPERS, Options, Plan, plan_of
from fairlane.reproduce.running import Outcome, perform, stored_as
from fairlane.tasks.executor import Executor
from fairlane.tasks.pools import open_pool
from fairlane.tasks.progress import TaskProgress
from fairlane.tasks.store import Store

__all__ = ["HOLDS", "PAPERS", "Judged", "Plan", "Reproduction", "conclude", "folder_of", "plan", "reproduce"]


def folder_of(paper: str | Path) -> Folder:
    """The folder of a paper, by name or path. Raises ``ScenarioError``."""
    with refusing("paper"):
        return Folder(PAPERS.find(str(paper)))


def plan(
    paper: str | Path,
    *,
    only: str | Sequence[str] = (),
    quick: bool = False,
    placements: int | None = None,
    periods: int | None = None,
    also: Sequence[str] = (),
    cabling: str | None = None,
) -> Plan:
    """What all claims, or ``only`` one or some, need; raises ``ScenarioError`` for a name that is unknown.

    ``placements`` and ``periods`` are upper bounds on what each study has. The controllers of ``also`` are run and
    shown in addition to the paper's; they do not affect any claim. ``cabling`` is one of those of the paper's machine.
    """
    folder = folder_of(paper)
    only = [only] if isinstance(only, str) else only
    names = [claim.id for claim in folder.claims]
    if unknown := [one for one in only if one not in names]:
        raise ScenarioError(Problem.unknown("--only", f"claim of {folder.name}", unknown[0], names, unknown[0]))
    for option, value in (("--placements", placements), ("--periods", periods)):
        if value is not None and value < 1:
            raise ScenarioError(Problem(option, "out of range", value, "at least 1"))
    for controller in also:
        if controller not in CONTROLLERS:
            raise ScenarioError(Problem.unknown("--also", "controller", controller, list(CONTROLLERS), controller))
    cablings = [*folder.paper.cablings]
    if cabling is not None and cablings and cabling not in cablings:
        raise ScenarioError(Problem.unknown("--cabling", "cabling", cabling, cablings, cabling))
    options = Options(quick, placements, periods, also, cabling)
    if refused := sorted(options.given - {*folder.paper.options}):
        allowed = ["only", "quick", "out", "resume", "workers", "dask", *sorted(folder.paper.options)]
        words = ", ".join(f"--{option}" for option in allowed)
        raise ScenarioError(Problem(f"--{refused[0]}", f"{folder.name} has no such option", allowed=words))
    return plan_of(folder, [claim for claim in folder.claims if not only or claim.id in only], options)


def reproduce(
    chosen: Plan, folder: Path, watcher: TaskProgress, *, workers: int | None = None, dask: str | None = None
) -> Reproduction:
    """Runs what is missing in ``folder``, judges the claims, stores tables and draws figures.

    Args:
        chosen: What to run.
        folder: Of answers, which are found again, and of tables and figures.
        watcher: Shows the progress of tasks.
        workers: How many processes of this machine; None for all cores.
        dask: Address of a Dask scheduler whose workers to use instead.
    """
    with Executor(open_pool(workers, dask), Store(folder, stored_as), watcher) as executor:
        return conclude(chosen, executor, folder)


def conclude(chosen: Plan, executor: Executor, folder: Path) -> Reproduction:
    """The same by an executor, whose store is in ``folder``."""
    outcome = perform(chosen, executor)
    folder.mkdir(parents=True, exist_ok=True)
    kept = executor.store
    unused = len(kept.digests() - {kept.key(done.task) for done in outcome.done.values()}) if kept else 0
    found = Reproduction(chosen, outcome, judge(chosen, outcome), kept.damaged if kept else (), unused)
    store(found, folder)
    return found


def judge(chosen: Plan, outcome: Outcome) -> list[Judged]:
    """The verdicts on the claims, by the tables of an outcome."""
    return [
        judged(
            claim,
            outcome.tables,
            [words for name in claim.studies for words in outcome.missing(chosen, name)],
            scaled=chosen.options.quick or any(name in chosen.left_out for name in claim.studies),
        )
        for claim in chosen.claims
    ]
