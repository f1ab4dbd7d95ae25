"""Tables of jobs on GPUs, from the instants at which their ranks mark iterations.

Bandwidths of collectives, as nccl-tests defines them, and latencies of inference.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
import polars as pl
from numpy.typing import NDArray

from fairlane.core.tables import PS
from fairlane.model.scenario import Resolved
from fairlane.model.scenario.resolved import ResolvedJob
from fairlane.model.workload.base import Workload
from fairlane.model.workload.inference import Inference
from fairlane.model.workload.nccl_tests import BUS_FACTORS, NcclTests
from fairlane.results.schemas import RUN, types

Times = NDArray[np.int64]
_W = TypeVar("_W", bound=Workload)
GB = 1e9
"""Bytes of a gigabyte, as nccl-tests counts."""


def collectives(scenario: Resolved, marks: pl.DataFrame) -> pl.DataFrame | None:
    """The collectives table: bandwidths by size, as nccl-tests defines them; None without such jobs.

    The time of a call is from the end of the warm-up of its size to the end of its last repetition, each at the last
    rank, over the number of repetitions. Sizes that were not completed are left out.
    """
    jobs = _jobs_with(NcclTests, scenario)
    if not jobs:
        return None
    rows: list[dict[str, Any]] = []
    for number, job, workload in jobs:
        ends = _ends(marks.filter(pl.col("job") == number), job.ranks)
        rows += [
            {"job": number, "name": job.name, "operation": workload.operation, **row}
            for row in _by_size(workload, job.ranks, ends)
        ]
    return pl.DataFrame(rows, schema=types(RUN["collectives"]))


def _jobs_with(kind: type[_W], scenario: Resolved) -> list[tuple[int, ResolvedJob, _W]]:
    """The jobs with a workload of this kind: number, job and workload."""
    jobs = enumerate(scenario.jobs)
    return [(number, job, job.table.workload) for number, job in jobs if isinstance(job.table.workload, kind)]


def _ends(marks: pl.DataFrame, ranks: int) -> list[int]:
    """Return the time of the last rank's mark of each iteration, ps, as far as all have one."""
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


def serving(scenario: Resolved, marks: pl.DataFrame) -> pl.DataFrame | None:
    """The serving table: times to the first token and between tokens of inference; None without such jobs.

    The first token of a request is there when its prefill ends; the second comes with the first step of decoding that
    begins after all keys and values have been transferred, and each further one with the next step.
    """
    jobs = _jobs_with(Inference, scenario)
    if not jobs:
        return None
    rows: list[dict[str, Any]] = []
    for number, job, workload in jobs:
        of_job = marks.filter(pl.col("job") == number).sort("rank", "iteration")
        by_rank = {int(rank): of["at"].to_numpy().astype(np.int64) for (rank,), of in of_job.group_by("rank")}
        first, between = latencies(workload, job.ranks, by_rank)
        for metric, values, objective in (
            ("first token", first, workload.first_token_objective),
            ("between tokens", between, workload.token_objective),
        ):
            rows.append({"job": number, "name": job.name, "metric": metric, **_quantiles(values, objective)})
    return pl.DataFrame(rows, schema=types(RUN["serving"]))


def latencies(workload: Inference, ranks: int, marks: Mapping[int, Times]) -> tuple[Times, Times]:
    """Times to the first token, and between tokens, of what was completed, ps; ``marks`` are those of each rank."""
    nothing = np.empty(0, dtype=np.int64)
    arrivals = marks.get(ranks - 1, nothing)
    first, between = [], [nothing]
    for request, arrival in enumerate(arrivals.tolist()):
        events = marks.get(workload.prefilled_by(request), nothing)
        place = request // workload.prefill  # among the requests of the instance, each with two events
        if 2 * place >= len(events):
            continue
        first.append(int(events[2 * place]) - arrival)
        if 2 * place + 1 >= len(events):
            continue
        steps = marks.get(workload.decoded_by(request), nothing)
        begin = int(np.searchsorted(steps, events[2 * place + 1])) + 1  # the step under way began too early
        tokens = steps[begin : begin + workload.output - 1]
        between.append(np.diff(tokens, prepend=events[2 * place]))
    return np.array(first, dtype=np.int64), np.concatenate(between)


def _quantiles(values: Times, objective: int | None) -> dict[str, Any]:
    seconds = values * PS
    known = len(values) > 0
    p50, p99 = np.quantile(seconds, [0.5, 0.99]).tolist() if known else (None, None)
    within = float((values <= objective).mean()) if known and objective is not None else None
    return {
        "count": len(values),
        "mean_s": float(seconds.mean()) if known else None,
        "p50_s": p50,
        "p99_s": p99,
        "objective_s": None if objective is None else objective * PS,
        "within_share": within,
    }
