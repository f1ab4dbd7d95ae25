"""Views of a run's tables: ports as links, by role and over time; times of iterations; the interference matrix."""

from dataclasses import dataclass
from typing import Literal, Self

import numpy as np
import numpy.typing as npt
import polars as pl

from fairlane.core.tables import PS
from fairlane.core.wording import time_unit
from fairlane.results.run import Run

_SHARES = ("port_active_share", "port_stalled_share")
_OF_LANES = ("lane", "stalled_ps", "input_queueing_ps", "bytes", "packets", "queueing_ps", "mean_queue", "max_queue")
"""Columns of ``ports`` that are a lane's; the others are the same in the rows of all lanes of a port."""
Floats = npt.NDArray[np.float64]


def by_link(ports: pl.DataFrame) -> pl.DataFrame:
    """One row per port instead of one per port and lane: its own times, and the sums over its lanes."""
    return (
        ports.group_by("link")
        .agg(
            pl.exclude("link", *_OF_LANES).first(),
            pl.col("bytes", "packets", "queueing_ps", "mean_queue").sum(),
            pl.col("max_queue").max(),
        )
        .sort("link")
    )


def by_role(ports: pl.DataFrame) -> pl.DataFrame:
    """One row per role of a port (host, up, down, local, global, a dimension): sums, and the ports' shares of time."""
    return (
        by_link(ports)
        .group_by("role")
        .agg(
            pl.len().alias("ports"),
            pl.col("bytes", "packets", "queueing_ps").sum(),
            pl.col("max_queue").max(),
            pl.col("mean_queue", *_SHARES, "port_idle_share").mean(),
            *(pl.col(share).quantile(0.99).name.prefix("p99_") for share in _SHARES),
            *(pl.col(share).max().name.prefix("max_") for share in _SHARES),
        )
        .sort("role")
    )


def over_time(samples: pl.DataFrame, ports: pl.DataFrame) -> pl.DataFrame:
    """One row per interval and role: bytes, mean queue of a port, and mean and maximum share of time of its ports.

    Ports without a sample in an interval did nothing in it, and count as well.
    """
    counts = by_link(ports).group_by("role").agg(pl.len().alias("ports"))
    whole = samples.group_by("from_ps", "to_ps", "role", "link").agg(
        pl.col("bytes", "mean_queue").sum(), pl.col(*_SHARES).first()
    )
    grid = samples.select("from_ps", "to_ps").unique().join(counts, how="cross")
    sums = whole.group_by("from_ps", "to_ps", "role").agg(
        pl.col("bytes", "mean_queue", *_SHARES).sum(), *(pl.col(share).max().name.prefix("max_") for share in _SHARES)
    )
    return (
        grid.join(sums, on=["from_ps", "to_ps", "role"], how="left")
        .with_columns(pl.exclude("from_ps", "to_ps", "role", "ports").fill_null(0))
        .with_columns(pl.col("mean_queue", *_SHARES) / pl.col("ports"))
        .sort("from_ps", "role")
    )


def distribution(iterations: pl.DataFrame) -> pl.DataFrame:
    """One row per job: how many iterations there are besides the first, quantiles of their time in seconds, outliers.

    ``outliers`` counts those beyond three times the median.
    """
    time = pl.col("time_s")
    return (
        iterations.filter(time.is_not_null())
        .group_by("name", maintain_order=True)
        .agg(
            pl.len().alias("count"),
            time.min().alias("min"),
            *(time.quantile(at, "linear").alias(f"q{at * 100:g}") for at in (0.01, 0.25, 0.5, 0.75, 0.99)),
            time.max().alias("max"),
            (time > 3 * time.median()).sum().alias("outliers"),
        )
    )


def iteration_times(completions: pl.DataFrame) -> pl.DataFrame:
    """The completions, in order, with the time of each iteration, ``time_s``; null for a job's first one.

    It is the mean time of an iteration since the row before, or that of the timed part where a job's iterations have
    one.
    """
    step = [pl.col(name).cast(pl.Float64).diff().over("name") for name in ("at_ps", "iteration")]
    elapsed = pl.when(step[0].is_not_null()).then(pl.col("elapsed_ps"))
    time = pl.when(pl.col("timed").any().over("name")).then(elapsed).otherwise(step[0] / step[1])
    return completions.sort("job", "iteration").with_columns(time_s=time * PS)


def has_timed_parts(completions: pl.DataFrame, job: str) -> bool:
    """Whether the iterations of a job have a timed part."""
    return bool(completions.filter(pl.col("name") == job)["timed"].any())


def spread_of_iterations(completions: pl.DataFrame) -> pl.DataFrame:
    """By job name the median and the range of its times per iteration, s, without the first one."""
    time = pl.col("time_s")
    aggregates = {"median": time.median(), "min": time.min(), "max": time.max()}
    return (
        iteration_times(completions)
        .drop_nulls("time_s")
        .group_by("name")
        .agg(**{f"seconds_per_iteration_{name}": value for name, value in aggregates.items()})
    )


@dataclass(frozen=True)
class Interference:
    """The interference matrix: queueing delay by victim and aggressor, jobs or groups of jobs with the same workload.

    Packets queue concurrently, so a cell's share of the victim's time (its ranks times the time from its start to its
    end) can exceed one.
    """

    labels: list[str]
    """Labels of rows and columns: names of jobs or of workloads."""
    others: Floats
    """Queueing delay of the victim's (row's) packets that other jobs' packets (columns) caused, s.

    Between jobs the diagonal is zero; between workloads it is that between jobs of one workload.
    """
    own: Floats
    """Queueing delay caused by packets of the same job, s."""
    time: Floats
    """Rank-seconds of each row: the ranks of its jobs times the time that each was there."""

    @classmethod
    def of(cls, run: Run, by: Literal["job", "workload"] = "job") -> Self:
        """The matrix of ``run``, between its jobs or summed by workload."""
        number = {name: index for index, name in enumerate(run.jobs["name"])}
        cells = run.interference.select(
            pl.col("victim", "aggressor").replace_strict(number, return_dtype=pl.Int64), "queueing_s"
        )
        seconds = np.zeros((len(number), len(number)))
        np.add.at(seconds, (cells["victim"], cells["aggressor"]), cells["queueing_s"].to_numpy())
        within = np.diag(seconds).copy()
        np.fill_diagonal(seconds, 0.0)
        time = run.jobs["ranks"].to_numpy().astype(np.float64) * run.jobs["span_ps"].to_numpy() * PS
        if by == "job":
            return cls(run.jobs["name"].to_list(), seconds, within, time)
        labels = run.jobs["workload"].unique(maintain_order=True).to_list()
        member = np.array([[workload == label for workload in run.jobs["workload"]] for label in labels], np.float64)
        return cls(labels, member @ seconds @ member.T, member @ within, member @ time)

    def unit(self) -> tuple[float, str]:
        """The unit of time, as (seconds, name), in which what jobs do to each other is best written."""
        return time_unit(float(self.others.max(initial=0)) or float(self.own.max(initial=0)))

    def share(self, seconds: Floats) -> Floats:
        """``seconds``, with a row per label, as a share of the row's time."""
        time = self.time.reshape(-1, *[1] * (seconds.ndim - 1))
        return np.divide(seconds, time, out=np.zeros_like(seconds), where=time > 0)
