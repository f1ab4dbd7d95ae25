"""How the claims of Smith et al. 2018 are judged: what was measured, and whether it is in its band."""

from collections.abc import Iterator, Mapping

import numpy as np
import polars as pl

from fairlane.analysis import SLOW, Trend
from fairlane.predict import PARTS
from fairlane.reproduce.frames.findings import within
from fairlane.reproduce.frames.paper import Check, Finding
from fairlane.reproduce.frames.smith2018.measured import Measured

__all__ = ["CHECKS"]


def _variability(measured: Measured) -> Iterator[Finding]:
    runs = measured.runs()
    compute = (runs["compute_max_s"] / runs["compute_min_s"]).to_numpy().max()
    yield within("greatest over least compute time of the ranks of a run, at most", float(compute), high=1.1)
    times = runs["seconds"].to_numpy()
    yield within("slowest over fastest run", float(times.max() / times.min()), low=1.5)
    slowest, fastest = runs["slowest_timestep_s"].to_numpy().max(), runs["fastest_timestep_s"].to_numpy().min()
    yield within("slowest over fastest timestep", float(slowest / fastest), low=2.0)
    share = (runs["wait_share"] + runs["allreduce_share"]).to_numpy().min()
    yield within("share of MPI_Wait and MPI_Allreduce in the time in MPI, at least", float(share), low=0.75)


def _groups(measured: Measured) -> Iterator[Finding]:
    runs = measured.runs()
    found = float(np.corrcoef(runs["groups"].to_numpy(), runs["seconds"].to_numpy())[0, 1])
    yield within("Pearson r of number of groups and run time", found, low=-0.5, high=0.5)


def _wait_delays(measured: Measured) -> Iterator[Finding]:
    """By the exact table. The paper's counts what lies between routers of a group as one."""
    router, group, other = _slowest(measured.table_one("truth"))
    between, within_one = f"{other:.3g} ms to other groups", f"{group:.3g} ms within, {router:.3g} ms on a router"
    yield f"longest slow communication: {between}, {within_one}", other > group > router


def _slowest(table: pl.DataFrame) -> tuple[float, float, float]:
    """The longest slow communication on a router, within a group and between groups, ms."""
    slow = {row["neighbour"]: row["greatest_ms"] or 0.0 for row in table.filter(delay=SLOW).iter_rows(named=True)}
    router, other = slow.pop("same switch", 0.0), slow.pop("other group", 0.0)
    slow.pop("same host", None)
    return router, max(slow.values(), default=0.0), other


def _flits_threshold(measured: Measured) -> Iterator[Finding]:
    points = measured.points()
    if not points.height:
        yield "pairs whose routers share a link: none", False
        return
    trend = Trend.of(points, "wait_ps")
    low, high = trend.low_p95 or 0.0, trend.high_p95 or 0.0
    share = low / high if high else float("inf")
    yield within("p95 of waits in the lowest quarter of flits over that in the highest", share, high=0.1)
    yield within("Pearson r of waits and flits", 1.0 if trend.pearson is None else trend.pearson, high=0.8)


def _prediction(measured: Measured) -> Iterator[Finding]:
    error = measured.prediction.error
    for parts in PARTS:
        boosting, forest = error("gbm", parts), error("forest", parts)
        words = f"{parts}: mean squared error {boosting:.3g} s² with boosting, {forest:.3g} with the forest"
        yield words, boosting < forest
    base, sparse = error("gbm", "base"), error("gbm", "sparse")
    yield f"boosting: {sparse:.3g} s² on sparse parts, {base:.3g} on the counters themselves", sparse <= base


def _local_models(measured: Measured) -> Iterator[Finding]:
    for column, words, high in (("mse", "mean squared error", 0.8), ("max_abs_error", "maximum absolute error", 0.75)):
        one, two = (measured.prediction.local_error(clusters, column) for clusters in (1, 2))
        yield within(f"{words} of two models over that of one", two / one, high=high)


CHECKS: Mapping[str, Check] = {
    "smith.variability": Check(["runs"], _variability),
    "smith.groups": Check(["runs"], _groups),
    "smith.wait-delays": Check(["traces"], _wait_delays),
    "smith.flits-threshold": Check(["traces"], _flits_threshold),
    "smith.prediction": Check(["runs"], _prediction),
    "smith.local-models": Check(["runs"], _local_models),
}
"""For each claim, what it needs and how it is judged."""
