"""Reproducing papers: a folder with study files, claims and figures, run, judged and drawn.

``folder`` has the format, ``planning`` what is run, ``running`` how, ``deriving`` what is made of it, ``judging`` the
findings of one replicate, ``reseeding`` what differs between replicates, ``replicating`` their order and the loop,
``verdicts`` what comes of all of them, ``storing`` the table of verdicts, ``figures`` and ``output`` what is written.
``space`` says what a paper leaves open, ``robustness`` runs points of it, ``shares`` has what they say of clauses,
``robustness_output`` what is written. The papers that fairlane comes with are in ``published``.
"""

from collections.abc import Sequence
from dataclasses import replace
from math import isfinite
from pathlib import Path

from fairlane.core.errors import Problem, ScenarioError
from fairlane.inputs.problems import refusing
from fairlane.papers.folder import Folder
from fairlane.papers.judging import Judged
from fairlane.papers.output import Reproduction, store
from fairlane.papers.planning import PAPERS, Options, Plan, check_outputs, plan_of
from fairlane.papers.replicating import judge, nothing, repeat
from fairlane.papers.reseeding import MOST_REPLICATES
from fairlane.papers.running import perform, stored_as
from fairlane.papers.storing import known
from fairlane.papers.verdicts import Verdict
from fairlane.sim.controller import CONTROLLERS
from fairlane.study.tasks.executor import Executor
from fairlane.study.tasks.pools import open_pool
from fairlane.study.tasks.progress import TaskProgress
from fairlane.study.tasks.store import Store

__all__ = [
    "PAPERS",
    "Judged",
    "Plan",
    "Reproduction",
    "Verdict",
    "check_replicates",
    "conclude",
    "folder_of",
    "plan",
    "reproduce",
]
HOUR_S = 3600.0


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
    variant: str | None = None,
    deciding: bool = False,
    first_replicate: int = 1,
) -> Plan:
    """Plan all claims, or ``only`` some; raises ``ScenarioError`` for a name that is unknown.

    ``placements`` and ``periods`` are upper bounds on what each study has. The controllers of ``also`` are run and
    shown in addition to the paper's; they do not affect any claim. ``variant`` is another model of the paper's system.
    ``deciding`` leaves out the studies that are only shown beside claims; ``first_replicate`` begins with another
    replicate than 1.
    """
    folder = folder_of(paper)
    only = [only] if isinstance(only, str) else only
    names = [claim.id for claim in folder.claims]
    if unknown := [name for name in only if name not in names]:
        raise ScenarioError(Problem.unknown("--only", f"claim of {folder.name}", unknown[0], names, unknown[0]))
    for option, value in (("--placements", placements), ("--periods", periods)):
        if value is not None and value < 1:
            raise ScenarioError(Problem(option, "out of range", value, "at least 1"))
    for controller in also:
        if controller not in CONTROLLERS:
            raise ScenarioError(Problem.unknown("--also", "controller", controller, list(CONTROLLERS), controller))
    variants = [*folder.paper.variant]
    if variant is not None and variant not in variants:
        raise ScenarioError(Problem.unknown("--variant", f"variant of {folder.name}", variant, variants, variant))
    wanted = only or (folder.paper.variant[variant].claims if variant else ()) or names
    options = Options(quick, placements, periods, also, variant, first_replicate, deciding)
    if refused := sorted(options.given - {*folder.paper.options}):
        allowed = ["only", "quick", "out", "resume", "workers", "dask", *sorted(folder.paper.options)]
        message = ", ".join(f"--{option}" for option in allowed)
        raise ScenarioError(Problem(f"--{refused[0]}", f"{folder.name} has no such option", allowed=message))
    check_outputs(folder)
    return plan_of(folder, [claim for claim in folder.claims if claim.id in wanted], options)


def check_replicates(replicates: int, cpu_hours: float | None, first: int = 1, *, earlier: bool = False) -> None:
    """Raises ``ScenarioError`` for numbers of replicates or a limit of processor time that are out of range.

    With replicates from ``earlier`` runs there may be none to run.
    """
    if replicates == 0 and not earlier:
        raise ScenarioError(Problem("--replicates", "leaves nothing to judge", replicates, "1 or more, or --with FILE"))
    if not 1 <= first <= MOST_REPLICATES:
        raise ScenarioError(Problem("--first-replicate", "out of range", first, f"1 to {MOST_REPLICATES}"))
    if not 0 <= replicates <= MOST_REPLICATES + 1 - first:
        allowed = f"1 to {MOST_REPLICATES + 1 - first}"
        raise ScenarioError(Problem("--replicates", "out of range", replicates, allowed))
    if cpu_hours is not None and not (cpu_hours > 0 and isfinite(cpu_hours)):
        raise ScenarioError(Problem("--cpu-hours", "out of range", cpu_hours, "a number above 0"))
    if cpu_hours is not None and replicates <= 1:
        message = "limits replicates after the first, and there are none"
        raise ScenarioError(Problem("--cpu-hours", message, cpu_hours, "with --replicates 2 or more"))


def reproduce(
    chosen: Plan,
    folder: Path,
    watcher: TaskProgress,
    *,
    workers: int | None = None,
    dask: str | None = None,
    replicates: int = 1,
    cpu_hours: float | None = None,
    earlier: Sequence[Path] = (),
) -> Reproduction:
    """Runs what is missing in ``folder``, judges the claims, stores tables and draws figures.

    Args:
        chosen: What to run.
        folder: Of answers, which are found again, and of tables and figures.
        watcher: Shows the progress of tasks.
        workers: How many processes of this machine; None for all cores.
        dask: Address of a Dask scheduler whose workers to use instead.
        replicates: How many replicates to judge the claims by; 0 to run nothing and judge by ``earlier`` alone.
        cpu_hours: Processor time for all replicates but the first, h; None for no limit.
        earlier: Files ``clauses.csv`` of other replicates, or their folders, to judge the claims by as well.

    Raises:
        ScenarioError: A number is out of range, or a study or a claim is wrong.
    """
    check_replicates(replicates, cpu_hours, chosen.options.replicate, earlier=bool(earlier))
    with Executor(open_pool(workers, dask), Store(folder, stored_as), watcher) as executor:
        return conclude(chosen, executor, folder, replicates=replicates, cpu_hours=cpu_hours, earlier=earlier)


def conclude(
    chosen: Plan,
    executor: Executor,
    folder: Path,
    *,
    replicates: int = 1,
    cpu_hours: float | None = None,
    earlier: Sequence[Path] = (),
) -> Reproduction:
    """The same by an executor, whose store is in ``folder``."""
    others = known(earlier, chosen, running=replicates > 0)
    if replicates == 0:
        chosen = replace(chosen, studies={})
    outcome = perform(chosen, executor)
    folder.mkdir(parents=True, exist_ok=True)
    first = judge(chosen, outcome) if replicates else nothing(chosen)
    limit_s = None if cpu_hours is None else cpu_hours * HOUR_S
    replication = repeat(chosen, outcome, first, executor, replicates, limit_s, others)
    kept = executor.store
    tasks = [done.task for of in (outcome.done, *replication.done.values()) for done in of.values()]
    unused = len(kept.digests() - {kept.key(task) for task in tasks}) if kept else 0
    reproduced = Reproduction(chosen, outcome, first, kept.damaged if kept else (), unused, replication)
    return replace(reproduced, not_written=store(reproduced, folder))
