"""Tables of jobs on GPUs, from the instants at which their ranks mark iterations: bandwidths of collectives."""

from collections.abc import Iterator, Sequence
from typing import Any

import polars as pl

from fairlane.engine.tables import PS
from fairlane.results.schemas import RUN, types
from fairlane.scenario import Resolved
from fairlane.workload.nccl_tests import BUS_FACTORS, NcclTests

GB = 1e9
"""Bytes of a gigabyte, as nccl-tests counts."""


def collectives(scenario: Resolved, marks: pl.DataFrame) -> pl.DataFrame | None:
    """The collectives table: bandwidths by size, as nccl-tests defines them; None without such jobs.

    The time of a call is from the end of the warm-up of its size to the end of its last repetition, each at the last
    rank, over the number of repetitions. Sizes that were not completed are left out.
    """
    jobs = [(number, job) for number, job in enumerate(scenario.jobs) if isinstance(job.table.workload, NcclTests)]
    if not jobs:
        return None
    rows: list[dict[str, Any]] = []
    for number, job in jobs:
        workload = job.table.workload
        assert isinstance(workload, NcclTests), "invariant: chosen by it"
        ends = _ends(marks.filter(pl.col("job") == number), job.ranks)
        rows += [
            {"job": number, "name": job.name, "operation": workload.operation, **row}
            for row in _by_size(workload, job.ranks, ends)
        ]
    return pl.DataFrame(rows, schema=types(RUN["collectives"]))


def _ends(marks: pl.DataFrame, ranks: int) -> list[int]:
    """When the last rank marked each iteration, ps, as far as all have."""
    by_iteration = marks.group_by("iteration").agg(pl.len().alias("marked"), pl.col("at").max())
    return by_iteration.filter(pl.col("marked") == ranks).sort("iteration")["at"].to_list()


def _by_size(workload: NcclTests, ranks: int, ends: Sequence[int]) -> Iterator[dict[str, Any]]:
    for place, size in enumerate(workload.sizes):
        first, last = place * workload.calls + workload.warm_up - 1, (place + 1) * workload.calls - 1
        if last >= len(ends):
            return
        time = (ends[last] - ends[first]) * PS / workload.repetitions
        algorithm = size / time / GB if time else 0.0
        yield {
            "bytes": size,
            "repetitions": workload.repetitions,
            "time_s": time,
            "algbw_gb_s": algorithm,
            "busbw_gb_s": algorithm * BUS_FACTORS[workload.operation](ranks),
        }
