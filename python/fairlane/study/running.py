"""Computing a study from its file to its tables."""

from __future__ import annotations

import time
from contextlib import ExitStack, closing
from datetime import datetime
from importlib.metadata import version
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from fairlane.errors import Problem, ScenarioError
from fairlane.results.manifest import seal, unseal
from fairlane.results.store import new_folder
from fairlane.results.study import META, STUDY_SCHEMA_VERSION, StudyMeta, StudyResults
from fairlane.scenario.estimate import bytes_text, machine_memory
from fairlane.study.execute import Executed, execute
from fairlane.study.plan import Plan, plan
from fairlane.study.pool import LocalPool, cores
from fairlane.study.profile import profile
from fairlane.study.progress import StudyProgress
from fairlane.study.sheet import DATASET, EFFECTS, placement_name, store_design
from fairlane.study.store import Store, unfinished
from fairlane.study.study import Study
from fairlane.study.tables import tables

if TYPE_CHECKING:
    from fairlane.study.pool import Pool

__all__ = ["run"]

KIND = "study"
STUDY = "study.toml"


def run(
    study: Study,
    *,
    out: Path | None = None,
    resume: bool = False,
    workers: int | None = None,
    dask: str | None = None,
    progress: bool = True,
    figures: bool = True,
) -> StudyResults:
    """Computes a study, and stores its tables.

    What is computed is stored at once: after Ctrl-C or worse, ``resume`` goes on where it was.

    Args:
        study: What to compute.
        out: The folder, new or empty; None for ``runs/<study>-<date>-<time>``.
        resume: Whether to go on in a folder that is there; without ``out`` in the latest that was not completed.
        workers: How many processes of this machine; None for all cores, unless the study names a cluster.
        dask: Address of a Dask scheduler whose workers to use instead.
        progress: Whether to show progress on standard error.
        figures: Whether to draw the figure.

    Raises:
        ScenarioError: The study is wrong; nothing was computed.
        ResultsError: The folder is in use, cannot be written, or is of another study.
    """
    started, begun = datetime.now().astimezone(), time.monotonic()
    if dask is not None:
        from fairlane.study.cluster import find

        find(dask)  # planning takes a while
    if dask is None and workers is None:
        study.check_code()
    planned = plan(study)
    if dask is None and (workers is not None or study.table.cluster is None):
        workers = affordable(planned, workers)
    planning = time.monotonic() - begun
    with ExitStack() as ends:
        # A scheduler must be there before anything is written; where jobs are submitted, the folder has their logs.
        far = None if dask is None else ends.enter_context(closing(_connected(dask)))
        store = _store(study, started, out, resume=resume)
        pool = far or ends.enter_context(closing(_pool(study, store, workers, resume=resume)))
        executed, opened = Executed(laps={"planning": planning}), time.monotonic()
        with StudyProgress(wanted=progress) as shown:
            _compute(planned, pool, store, shown, executed)
            many, spent = pool.workers, time.monotonic() - opened
    writing = time.monotonic()
    found = tables(planned, executed)
    executed.laps["writing"] = executed.laps.get("writing", 0.0) + time.monotonic() - writing
    wall = time.monotonic() - begun
    meta = StudyMeta(
        version=version("fairlane"),
        study=study.name,
        digest=StudyResults.digest_of(found),
        points=len(planned.cells),
        runs=found["runs"].height,
        simulations=found["runs"]["simulation"].n_unique(),
        failures=found["failures"].height,
        treatments=list(study.treatments),
        placements=[placement_name(table) for table in study.table.placements or [{}]],
        wall_s=wall,
        started=started,
        profile=profile(executed, many, spent, wall),
        recomputed=store.damaged,
    )
    results = StudyResults(meta=meta, folder=store.folder, **found)
    unseal(store.folder)
    for name, table in found.items():
        store.write_table(f"{name}.parquet", table)
    if study.table.design is not None:
        store_design(study, found["work"], meta, store)
    store.write(META, meta.model_dump_json(indent=2) + "\n")
    designed = [DATASET, EFFECTS] if study.table.design is not None else []
    seal(store.folder, "study", STUDY_SCHEMA_VERSION, [META, *(f"{name}.parquet" for name in found), *designed])
    if figures:
        from fairlane.plot import draw_all

        draw_all(results)
    return results


def _compute(plan: Plan, pool: Pool, store: Store, shown: StudyProgress, executed: Executed) -> None:
    """First the compute times, which all runs of a point share, then the runs."""
    calibrations = [cell.calibrations() for cell in plan.cells]
    shown.stage("calibrating")
    execute((task for tasks in calibrations for task in tasks if task), pool, store, shown, executed)
    ready = []
    for cell, tasks in zip(plan.cells, calibrations, strict=True):
        if all(task is None or executed.of(task) for task in tasks):
            cell.decide(
                [executed.answers[task.digest]["compute"][0] if task else None for task in tasks], plan.study.treatments
            )
            ready.append(cell)
    store.describe(plan)
    shown.stage("simulating")
    execute(chain.from_iterable(cell.tasks() for cell in ready), pool, store, shown, executed)


def _store(study: Study, started: datetime, out: Path | None, *, resume: bool) -> Store:
    if resume:
        return Store.resume(out or unfinished(study.name, KIND, _complete), KIND, study.spec)
    return Store.begin(new_folder(study.name, started, out), KIND, study.spec, {STUDY: study.text})


def _complete(folder: Path) -> bool:
    """Whether its tables are there."""
    return (folder / META).is_file()


def _connected(dask: str) -> Pool:
    from fairlane.study.cluster import connect

    return connect(dask)


def affordable(plan: Plan, workers: int | None) -> int:
    """How many workers of this machine there is memory for, at most its cores; or those asked for, if there is.

    Raises ``ScenarioError`` if there is not.
    """
    largest = max((cell.memory for cell in plan.cells), default=0.0)
    memory = max([machine_memory(), *(cell.allowed or 0 for cell in plan.cells)])
    room = max(1, int(memory // max(largest, 1.0)))
    if workers is None:
        return min(cores(), room)
    if workers > room:
        words = f"each takes about {bytes_text(largest)} of memory"
        raise ScenarioError(Problem("--workers", words, workers, f"at most {room}, for {bytes_text(memory)}"))
    return workers


def _pool(study: Study, store: Store, workers: int | None, *, resume: bool) -> Pool:
    if study.table.cluster is not None and workers is None:
        from fairlane.study.cluster import start_slurm

        with ExitStack() as failed:
            if not resume:
                failed.callback(store.undo)
            try:
                pool = start_slurm(study.table.cluster, study.name, str(store.folder / "logs"))
            except ScenarioError as error:
                raise ScenarioError(study.error(problem) for problem in error.problems) from None
            failed.pop_all()
        return pool
    return LocalPool(cores() if workers is None else workers)
