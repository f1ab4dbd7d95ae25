"""Who ran where and when, for other programs: a CSV file with a row for each job and allocator."""

from collections.abc import Sequence
from pathlib import Path

import polars as pl

from fairlane.errors import Problem, ScenarioError
from fairlane.inputs.writing import replacing
from fairlane.scheduler.compare import Comparison
from fairlane.slurm import compress

__all__ = ["write_placed"]


def write_placed(found: Comparison, names: Sequence[str], path: Path) -> Path:
    """Writes the file; raises ``ScenarioError`` if that is not possible.

    Its columns are ``allocator``, ``job``, ``submit``, ``start`` and ``end`` (s), ``slowdown``, ``lost`` (s, to
    neighbours), ``hosts``, and ``node_list`` as Slurm's ``--nodelist`` takes it.
    """
    rows = [
        {
            "allocator": allocator,
            "job": one.job.number,
            "submit": one.job.submit,
            "start": round(float(one.start), 3),
            "end": round(float(one.end), 3),
            "slowdown": round(one.slowdown, 6),
            "lost": round(one.lost, 3),
            "hosts": len(one.hosts),
            "node_list": compress(names[host] for host in one.hosts),
        }
        for allocator, schedule in found.schedules.items()
        for one in schedule.jobs
    ]
    try:
        with replacing(path) as scratch:
            pl.DataFrame(rows).write_csv(scratch)
    except OSError as error:
        raise ScenarioError(Problem("", f"cannot be written: {error.strerror or error}", file=str(path))) from None
    return path
