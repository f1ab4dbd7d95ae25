"""The interference matrix: rows are victims, columns aggressors.

A cell is the queueing delay of the victim's packets that the aggressor's packets caused. Packets queue concurrently, so
a cell's share of the victim's time (its ranks times the time from its start to its end) can exceed one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from fairlane.engine.measured import PS
from fairlane.results.run import Run
from fairlane.wording import time_unit

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Interference:
    """Queueing delay by victim and aggressor, between jobs or between groups of jobs with the same workload."""

    labels: list[str]
    """What the rows and columns stand for: names of jobs or of workloads."""
    others: Floats
    """Seconds that the row's packets waited behind other jobs' packets of the column; [victim, aggressor].

    Between jobs the diagonal is zero; between workloads it holds what jobs of one workload do to each other.
    """
    own: Floats
    """Queueing delay caused by packets of the same job, s."""
    time: Floats
    """Rank-seconds of each row: the ranks of its jobs times the time that each was there."""

    @classmethod
    def of(cls, run: Run, by: Literal["job", "workload"] = "job") -> Interference:
        """The matrix of ``run``, between its jobs or summed by workload."""
        seconds = _between_jobs(run)
        own = np.diag(seconds).copy()
        np.fill_diagonal(seconds, 0.0)
        time = run.jobs["ranks"].to_numpy().astype(np.float64) * run.jobs["span_ps"].to_numpy() * PS
        if by == "job":
            return cls(run.jobs["name"].to_list(), seconds, own, time)
        labels = run.jobs["workload"].unique(maintain_order=True).to_list()
        member = np.array([[workload == label for workload in run.jobs["workload"]] for label in labels], np.float64)
        return cls(labels, member @ seconds @ member.T, member @ own, member @ time)

    def unit(self) -> tuple[float, str]:
        """The unit of time, as (seconds, name), in which what jobs do to each other is best written."""
        return time_unit(float(self.others.max(initial=0)) or float(self.own.max(initial=0)))

    def share(self, seconds: Floats) -> Floats:
        """``seconds``, with a row per label, as a share of the row's time."""
        time = self.time.reshape(-1, *[1] * (seconds.ndim - 1))
        return np.divide(seconds, time, out=np.zeros_like(seconds), where=time > 0)


def _between_jobs(run: Run) -> Floats:
    number = {name: index for index, name in enumerate(run.jobs["name"])}
    seconds = np.zeros((len(number), len(number)))
    rows = run.interference["victim"].replace_strict(number, return_dtype=run.jobs["job"].dtype).to_numpy()
    columns = run.interference["aggressor"].replace_strict(number, return_dtype=run.jobs["job"].dtype).to_numpy()
    np.add.at(seconds, (rows, columns), run.interference["queueing_s"].to_numpy())
    return seconds
