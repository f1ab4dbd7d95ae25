"""Computing a study from its file to its tables, and what that takes."""

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from datetime import datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import polars as pl

from fairlane.core.errors import ScenarioError
from fairlane.core.statistics import FEWEST_UNITS
from fairlane.core.wording import bytes_text, listed, plural, seconds_text
from fairlane.model.scenario.estimate import START
from fairlane.results.schemas import STUDY_SCHEMA_VERSION
from fairlane.results.study import META, StudyMeta, StudyResults
from fairlane.study.design import SHEET, data_sheet, dataset, effects, placement_name
from fairlane.study.measured import plan_of
from fairlane.study.plan import Plan
from fairlane.study.replicates import repeated
from fairlane.study.study import Study
from fairlane.study.table import RUN_TABLES
from fairlane.study.tasks.closure import STUDY as TASKS
from fairlane.study.tasks.cluster import find, start_slurm
from fairlane.study.tasks.executor import Executor
from fairlane.study.tasks.pools import Pool, affordable, open_pool
from fairlane.study.tasks.progress import TaskProgress
from fairlane.study.tasks.store import Store


@dataclass(frozen=True)
class Cost:
    """Cost of a study. Calibrations of compute times count as simulations."""

    points: int
    runs: int
    simulations: int
    """Runs that differ: the others have the answer of one of them."""
    calibrations: int
    seconds: float | None
    """Estimated processor time of all simulations, s; None of a study that measures with a function of its own."""
    memory: float | None
    """Estimated memory of the largest simulation, bytes; None likewise."""
    identical: Sequence[Sequence[int]] = field(default_factory=tuple)
    """Groups of points whose runs are all the same."""
    labels: Sequence[str] = ()
    """Conditions of each point as text."""
    pilot: str | None = None
    """What follows, where this is the pilot of a study that chooses the length of its runs."""

    def lines(self) -> Iterator[str]:
        """Format as text, a line each."""
        shared = self.runs - self.simulations
        same = f" ({plural(shared, 'run')} the same as another)" if shared else ""
        before = f", after {plural(self.calibrations, 'calibration')} of compute times" if self.calibrations else ""
        counts = ((self.points, "point"), (self.runs, "run"), (self.simulations, "simulation"))
        yield f"{', '.join(plural(count, name) for count, name in counts)}{same}{before}"
        if self.seconds is None or self.memory is None:
            yield "time and memory: not known, its function decides what is simulated"
        else:
            yield f"about {seconds_text(self.seconds)} on one core, {bytes_text(self.memory)} of memory a worker"
        if self.pilot is not None:
            yield self.pilot
        for group in self.identical:
            names = listed([f"{number} ({self.labels[number]})" for number in group], 2)
            yield f"note: points {names} are the same simulation, and count once in a condition"


def cost_of(planned: Plan) -> Cost:
    """The cost of a plan whose calibrations are not done yet."""
    planned.outline()
    cells = planned.cells
    tasks = {run.task.digest: cell.seconds_of(run.task) for cell in cells for run in cell.runs}
    calibrations = {task.digest: cell.seconds_of(task) for cell in cells for task in cell.calibrations.values()}
    times = [*tasks.values(), *calibrations.values()]
    known = [seconds for seconds in times if seconds is not None]
    whole = len(known) == len(times)
    runs, labels = sum(len(cell.runs) for cell in cells), [str(cell.point) for cell in cells]
    seconds, memory = (START + sum(known), planned.memory) if whole else (None, None)
    identical = _identical([cell.identity for cell in cells])
    return Cost(len(cells), runs, len(tasks), len(calibrations), seconds, memory, identical, labels, planned.pilot)


def _identical(points: Sequence[tuple[str, ...]]) -> Sequence[Sequence[int]]:
    groups: dict[tuple[str, ...], list[int]] = {}
    for number, runs in enumerate(points):
        groups.setdefault(runs, []).append(number)
    return [group for group in groups.values() if len(group) > 1]


STUDY = "study.toml"
CELLS = "cells.json"


def run(
    study: Study,
    *,
    out: Path | None = None,
    resume: bool = False,
    workers: int | None = None,
    dask: str | None = None,
    cpu_limit_s: float | None = None,
    progress: bool = False,
) -> StudyResults:
    """Computes a study, and stores its tables.

    Every answer is stored at once: after Ctrl-C or a crash, ``resume`` continues.

    Args:
        study: What to compute.
        out: The folder, new or empty; None for ``runs/<study>-<date>-<time>``.
        resume: Whether to continue in an existing folder; without ``out`` in the latest unfinished one.
        workers: How many processes of this machine; None for all cores, unless the study names a cluster.
        dask: Address of a Dask scheduler whose workers to use instead.
        cpu_limit_s: Processor time of all workers after which no further simulation is begun, s; None for no limit.
        progress: Whether to show progress on standard error.

    Raises:
        ScenarioError: The study is wrong; nothing was computed.
        ResultsError: The folder is in use, cannot be written, or is of another study.
        RunError: The processor time is used up, or the Dask scheduler is gone.
    """
    started, begun = datetime.now().astimezone(), time.monotonic()
    if dask is not None:
        find(dask)  # planning takes a while
    if dask is None and workers is None:
        study.check_code()
    planned = plan_of(study)
    if dask is None and (workers is not None or study.table.cluster is None):
        workers = affordable(planned.memory, planned.allowed, workers)
    planning = time.monotonic() - begun
    with ExitStack() as ends:
        # A scheduler must be there before anything is written; where jobs are submitted, the folder has their logs.
        far = None if dask is None else ends.enter_context(closing(open_pool(dask=dask)))
        store = Store.open(
            "study",
            study.name,
            study.spec,
            {STUDY: study.text},
            code=[*TASKS, *planned.code],
            out=out,
            started=started,
            resume=resume,
            complete=lambda folder: (folder / META).is_file(),
        )
        if resume:  # with more replicates
            store.write(STUDY, study.text)
        pool = far or ends.enter_context(closing(_pool(study, store, workers, resume=resume)))
        opened = time.monotonic()
        with TaskProgress(wanted=progress) as shown:
            executor = Executor(pool, store, shown, cpu_limit_s=cpu_limit_s)
            executor.spent("planning", planning)
            further: Plan | None = planned
            while further is not None:
                planned = further
                shown.stage("calibrating")
                executor.run(planned.calibrations())
                planned.calibrate(executor)
                cells = planned.described()
                store.write(CELLS, json.dumps(cells))
                shown.stage("simulating")
                executor.run(planned.tasks())
                further = planned.extended(executor)
            many, spent = pool.workers, time.monotonic() - opened
    writing = time.monotonic()
    tables = planned.tables(executor)
    executor.spent("writing", time.monotonic() - writing)
    wall = time.monotonic() - begun
    meta = StudyMeta(
        version=version("fairlane"),
        study=study.name,
        digest=StudyResults.digest_of(tables),
        points=len(cells),
        runs=tables["runs"].height,
        simulations=tables["runs"]["simulation"].n_unique(),
        failures=tables["failures"].height,
        treatments=list(study.treatments),
        measured=None if study.table.measure is None else [name for name in tables if name not in RUN_TABLES],
        placements=[placement_name(table) for table in _placements(study, tables)],
        wall_s=wall,
        started=started,
        profile=profile(executor.laps, many, spent, wall),
        recomputed=store.damaged,
        notes=[
            *planned.notes,
            *repeated(tables["runs"], tables["work"] if study.table.measure is None else None),
            *_without_effect(cells),
            *_chosen(study.table.placements or ()),
        ],
        length=planned.run_length,
    )
    kept = dict(tables)
    if study.table.design is not None:
        kept["dataset"] = dataset(tables["work"], meta.placements)
        kept["effects"] = effects(kept["dataset"])
        sheet = data_sheet(kept["dataset"], meta, sampled=study.table.design.runs is not None)
        store.write(SHEET, "\n".join(sheet) + "\n")
    store.finish("study", STUDY_SCHEMA_VERSION, kept, {META: meta.model_dump_json(indent=2) + "\n"})
    return StudyResults.of(meta, tables, store.folder)


def _without_effect(cells: Sequence[Mapping[str, Any]]) -> Sequence[str]:
    """Keys of the scenario that only ``fairlane run`` heeds: an early end, and leave-one-out runs."""
    notes = []
    longest = {until["at_most"] for cell in cells if (until := cell["scenario"].get("until"))}
    if longest:
        words = f"every simulation lasted until.at_most, {listed(sorted(longest))}"
        does = "in a study repeat = { precision = … } does"
        notes.append(f"{words}: only fairlane run ends at a precision; {does}")
    if any(cell["scenario"].get("observe", {}).get("leave_one_out") for cell in cells):
        notes.append("observe.leave_one_out has no effect: only fairlane run simulates the jobs without each of them")
    return notes


def _chosen(placements: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Placements that are no sample: they differ in more than their seed."""
    unseeded = [{key: value for key, value in table.items() if key != "seed"} for table in placements]
    has_interval = len(unseeded) >= FEWEST_UNITS
    if has_interval and any(table != unseeded[0] for table in unseeded):
        yield (
            "placements differ in more than their seed and are no sample: ± says how much these differ, and not how "
            "certain a mean is; for that, give one policy and a number of placements"
        )


def _placements(study: Study, tables: Mapping[str, pl.DataFrame]) -> Sequence[Mapping[str, Any]]:
    """Placements by number: those of the study, or seeds of replicates."""
    if study.table.repeat is None:
        return study.table.placements or [{}]
    largest = tables["runs"]["placement"].max()
    return [{"seed": number + 1} for number in range(int(str(largest)) + 1)]


def profile(laps: Mapping[str, float], workers: int, spent: float, wall: float) -> dict[str, float]:
    """Seconds by activity: ``spent`` by workers, out of ``wall``. The remaining time of workers is waiting."""
    busy = {name: laps.get(name, 0.0) for name in ("simulating", "set-up")}
    waiting = max(0.0, workers * spent - sum(busy.values()))
    own = {name: laps.get(name, 0.0) for name in ("planning", "writing")}
    return {**busy, "waiting": waiting, **own, "spent": spent, "wall": wall, "workers": float(workers)}


def _pool(study: Study, store: Store, workers: int | None, *, resume: bool) -> Pool:
    if study.table.cluster is None or workers is not None:
        return open_pool(workers)
    with ExitStack() as failed:
        if not resume:
            failed.callback(store.undo)
        try:
            pool = start_slurm(study.table.cluster, study.name, str(store.folder / "logs"))
        except ScenarioError as error:
            raise ScenarioError(study.error(problem) for problem in error.problems) from None
        failed.pop_all()
    return pool
