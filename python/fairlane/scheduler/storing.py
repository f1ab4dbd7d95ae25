"""A comparison of allocators as a folder of results."""

from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import Any

import polars as pl

from fairlane.inputs.files import read_bytes
from fairlane.results.schedule import SCHEDULE, ScheduleMeta, ScheduleResults, hosts_as_text
from fairlane.results.schemas import types
from fairlane.results.study import StudyResults
from fairlane.scheduler.compare import Comparison
from fairlane.scheduler.slowdown.forecast import Verification


def results_of(
    found: Comparison,
    log: Path,
    kind_of: Callable[[int], str] | None,
    checked: Mapping[str, Verification],
    notes: Sequence[str] = (),
    **facts: Any,
) -> ScheduleResults:
    """The results of a comparison, in memory.

    Args:
        found: The schedules and their metrics.
        log: The file of the job log.
        kind_of: The pattern of a job by its number, if that is known.
        checked: Errors of the model of slowdowns by allocator.
        notes: Sentences that readers should know.
        facts: ``hosts``, ``fabric`` (its specification), ``load``, ``seed`` and ``model``.
    """
    rows = [
        {
            "allocator": allocator,
            "job": one.job.number,
            "pattern": kind_of(one.job.number) if kind_of else None,
            "submit": float(one.job.submit),
            "run": float(one.job.run),
            "start": round(float(one.start), 3),
            "end": round(float(one.end), 3),
            "slowdown": round(one.slowdown, 6),
            "lost": round(one.lost, 3),
            "hosts": len(one.hosts),
            "host_numbers": hosts_as_text(one.hosts),
        }
        for allocator, schedule in found.schedules.items()
        for one in schedule.jobs
    ]
    schemas = {name: types(columns) for name, columns in SCHEDULE.items()}
    placed = pl.DataFrame(rows, schema=schemas["placed"], infer_schema_length=None)
    allocators = found.table.select(*schemas["allocators"]).cast(pl.Schema(schemas["allocators"]))
    meta = ScheduleMeta(
        version=version("fairlane"),
        log=log.name,
        log_sha256=sha256(read_bytes(log)).hexdigest(),
        digest=StudyResults.digest_of({"allocators": allocators, "placed": placed}),
        verified=[_verified(name, one) for name, one in checked.items()],
        notes=list(notes),
        **facts,
    )
    return ScheduleResults(meta, allocators, placed)


def _verified(name: str, one: Verification) -> dict[str, Any]:
    error = {} if one.error is None else one.error.model_dump()
    return {"allocator": name, "snapshots": one.snapshots, **error}
