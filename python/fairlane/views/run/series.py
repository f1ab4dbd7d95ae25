"""The runs of a view: their jobs, and what marks are coloured by, which is the same in every chart."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import altair
import polars as pl

from fairlane.results.run import Run
from fairlane.views.charts import colour
from fairlane.views.rows import Rows
from fairlane.views.tables import Column, Row

CHOSEN = "!length(chosen) || indexof(chosen, datum.job) >= 0"
"""Whether the job of a mark is among those that were chosen in the fabric or the matrix, or none was."""
MOST_LINES = 12
"""Jobs that have a line where none is chosen."""
BY_JOB = [altair.Detail("run:N"), altair.Detail("job:N")]
"""Channels of charts with a line for each job of each run."""
JOB, WORKLOAD = Column("job", "job"), Column("workload", "workload", left=True)


@dataclass(frozen=True)
class Series:
    """One run, or several in the same charts.

    Marks of one run are coloured by the workload of the job, or by job where all have the same; those of several by
    run.
    """

    runs: Mapping[str, Run]

    @cached_property
    def several(self) -> bool:
        """Whether there is more than one run."""
        return len(self.runs) > 1

    @cached_property
    def workloads(self) -> dict[str, str]:
        """The workload of each job, in the order of workloads and then of jobs."""
        every = pl.concat([run.jobs.select("name", "workload") for run in self.runs.values()]).unique(
            "name", maintain_order=True
        )
        order = {name: at for at, name in enumerate(every["workload"].unique(maintain_order=True))}
        return dict(sorted(every.iter_rows(), key=lambda row: order[row[1]]))

    @cached_property
    def by_job(self) -> bool:
        """Whether colours are those of jobs."""
        return not self.several and len(set(self.workloads.values())) == 1

    @cached_property
    def names(self) -> list[str]:
        """Names of colours, in the order of the legend."""
        if self.several:
            return list(self.runs)
        return list(self.workloads) if self.by_job else list(dict.fromkeys(self.workloads.values()))

    def colour(self, shown: Sequence[Row], *, named: bool = False) -> altair.Color:
        """The colour of rows that ``row`` has made; without a legend where the jobs of an axis have the colours."""
        present = () if named and self.by_job else {row["series"] for row in shown}
        return colour("series", self.names, shown=present)

    def row(self, run: str, job: str, **values: Any) -> dict[str, Any]:
        """A row of data of a job."""
        workload = self.workloads.get(job, job)
        series = run if self.several else job if self.by_job else workload
        return {"run": run, "job": job, "workload": workload, "series": series, **values}

    def having(self, wanted: Callable[[Run], object]) -> dict[str, Run]:
        """The runs for which something is true, by name."""
        return {name: run for name, run in self.runs.items() if wanted(run)}

    def jobs(self) -> Iterator[tuple[str, Run, Row]]:
        """The jobs of all runs, with their run."""
        for name, run in self.runs.items():
            yield from ((name, run, row) for row in run.jobs.iter_rows(named=True))

    def places(self, jobs: Sequence[str]) -> Rows:
        """A row for each of these jobs, in the order of ``workloads``, with a mark for each run."""
        wanted = set(jobs)
        return Rows([name for name in self.workloads if name in wanted], len(self.runs))

    def number(self, run: str) -> int:
        """The place of a run among the others."""
        return list(self.runs).index(run)

    @property
    def run_column(self) -> list[Column]:
        """The run in a table or tooltip, where there are several."""
        return [Column("run", "run")] if self.several else []

    def below(self) -> str:
        """Say which run is which in a row, for a note."""
        return f" In each row from top to bottom: {', '.join(self.runs)}." if self.several else ""


def chosen() -> altair.Parameter:
    """The names of jobs that are chosen on a page."""
    return altair.param(name="chosen", value=[])


def highlighted(least: float = 0.3, most: float = 1.0) -> altair.OpacityValue:
    """Paler marks of jobs that are not chosen."""
    return altair.OpacityValue(least, condition={"test": CHOSEN, "value": most})
