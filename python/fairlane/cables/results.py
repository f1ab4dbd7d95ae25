"""Results of a survey of failures: a row for each failure, seed and job, how critical each part is, and its folder."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import polars as pl
from pydantic import TypeAdapter

from fairlane.cables.measure import Failure, Trunks
from fairlane.cables.plan import Plan
from fairlane.results import notes
from fairlane.results.derive import interval
from fairlane.results.schemas import Optional, Schema, types
from fairlane.statistics import of_ratios, over_replicates
from fairlane.tasks.measuring import Measured, StoredMeta, measure_all, provenance
from fairlane.tasks.store import Store
from fairlane.tasks.task import Answer
from fairlane.wording import plural, significant

NOTICEABLE = 1.001
"""The headline leaves lower slowdowns out."""

_NUMBER, _TEXT, _COUNT = Optional(pl.Float64), Optional(pl.String), Optional(pl.Int64)
_SLOWDOWN: Schema = dict.fromkeys(("slowdown", "slowdown_low", "slowdown_high"), _NUMBER)
_OF_RUN: Schema = {
    "error": _TEXT,
    **dict.fromkeys(("packets_lost", "packets_retransmitted", "packets_given_up"), pl.Int64),
    "routing": _TEXT,
    "reason": _TEXT,
    "hosts_cut_off": _COUNT,
    "cut_off": _TEXT,
    "digest": pl.String,
    "unbroken_digest": pl.String,
}
_SAME = ("part", "digest", "unbroken_digest")
"""Columns that are equal in runs of one replicate."""
_OF_JOB: Schema = {
    "name": pl.String,
    "measure": pl.String,
    "count": pl.Int64,
    "unbroken_s": _NUMBER,
    "broken_s": _NUMBER,
    "slowdown": _NUMBER,
    "stalled": pl.Boolean,
    "failed": pl.Boolean,
    "failed_at_ps": Optional(pl.UInt64),
}
_SCHEMAS: Mapping[str, Schema] = {
    "runs": {"part": pl.String, "seed": pl.UInt64, **_OF_RUN},
    "jobs": {"part": pl.String, "seed": pl.UInt64, **_OF_JOB},
    "slowdowns": {
        **dict.fromkeys(("part", "name", "measure"), pl.String),
        "replicates": pl.Int64,
        **_SLOWDOWN,
        "unbroken_s": _NUMBER,
        **dict.fromkeys(("failed", "stalled"), pl.Float64),
    },
    "ranking": {
        "rank": pl.Int64,
        "part": pl.String,
        "replicates": pl.Int64,
        "worst_job": _TEXT,
        **_SLOWDOWN,
        **dict.fromkeys(("jobs_failed", "jobs_stalled"), pl.Float64),
        "hosts_cut_off": _NUMBER,
        "errors": pl.Int64,
        **dict.fromkeys(("behind", "behind_low", "behind_high"), _NUMBER),
    },
}


class _Stored(StoredMeta):
    """Content of ``cables.json``."""

    at_ps: int
    kind: str
    parts: int
    together: int


@dataclass(frozen=True, repr=False, kw_only=True)
class Cables(Measured):
    """Slowdowns of jobs when each cable or switch fails."""

    runs: pl.DataFrame
    """One row per part and seed: packets lost, the routing afterwards, hosts that are cut off."""
    jobs: pl.DataFrame
    """One row per part, seed and job: its slowdown against the unbroken fork, whether it failed or stalled."""
    slowdowns: pl.DataFrame
    """One row per part and job: the mean slowdown over seeds with its interval, shares of seeds with a failed job."""
    ranking: pl.DataFrame
    """One row per part, most critical first: the greatest slowdown of any job, failed jobs, hosts cut off; means.

    ``behind`` is by how much the greatest slowdown is less than that of the first part, paired by seed."""

    TABLES = ("runs", "jobs", "slowdowns", "ranking")
    KIND = "cables"
    SCHEMA_VERSION = 1
    SCHEMAS = _SCHEMAS
    META = TypeAdapter(_Stored)
    CSV = ("ranking", "ranking.csv")

    @classmethod
    def of(cls, answers: Iterable[tuple[Failure, Answer]], meta: Mapping[str, Any]) -> Cables:
        """The tables of what was measured."""
        runs, jobs = list[dict[str, Any]](), list[dict[str, Any]]()
        for task, answer in answers:
            key = {"part": task.part.name, "seed": task.seed}
            runs.append({**key, **{name: answer[name] for name in _OF_RUN}})
            jobs += [{**key, **job} for job in answer["jobs"]]
        of_runs = pl.DataFrame(runs, schema=types(_SCHEMAS["runs"]))
        of_jobs = pl.DataFrame(jobs, schema=types(_SCHEMAS["jobs"]))
        once = notes.distinct(of_runs, _SAME)
        of_once = of_jobs.join(once, on=("part", "seed"), how="semi", maintain_order="left")
        means = [_slowdown(rows) for _, rows in of_once.group_by(["part", "name"], maintain_order=True)]
        slowdowns = pl.DataFrame(means, schema=types(_SCHEMAS["slowdowns"]))
        ranking = _ranking(once, of_once, slowdowns)
        return cls(runs=of_runs, jobs=of_jobs, slowdowns=slowdowns, ranking=ranking, meta=meta)

    def repeated(self) -> list[str]:
        """Say which runs repeat another one of the same part; nothing if none does."""
        return notes.repeated(self.runs, _SAME, ["seeds"])

    @property
    def alike(self) -> int:
        """Number of others that cannot be distinguished from the first, where the slowdown decides the order."""
        ranking = self.ranking
        if not ranking.height or any(ranking.row(0, named=True)[name] for name in (*_STATES, "hosts_cut_off")):
            return 0
        within = (pl.col("behind_low") <= 0) & (pl.col("behind_high") >= 0)
        return ranking.filter(within | (pl.col("behind") == 0), pl.col("rank") > 1).height

    @property
    def what(self) -> str:
        """Kind of part that fails, in the singular: a cable, a switch, a pair of them."""
        return self._of(1)

    @property
    def whats(self) -> str:
        """The same in the plural."""
        return self._of(2)

    def _of(self, count: int) -> str:
        one, more = ("switch", "switches") if self.meta["kind"] == "switch_down" else ("cable", "cables")
        if self.meta["together"] > 1:
            return f"{plural(count, 'pair', count=False)} of {more}"
        return plural(count, one, more, count=False)

    def headline(self) -> str:
        """The most critical part, in a line."""
        if not self.ranking.height:
            return "No failure was simulated"
        first = self.ranking.row(0, named=True)
        found = ["a simulation that cannot continue"] if first["errors"] else []
        found += [f"{plural(_whole(first[name]), 'job')} {words}" for name, words in _STATES.items() if first[name]]
        found += [f"{plural(_whole(first['hosts_cut_off']), 'host')} cut off"] if first["hosts_cut_off"] else []
        if first["slowdown"] is not None and first["slowdown"] >= NOTICEABLE:
            found.append(f"slowdown {significant(first['slowdown'], 3)}")
        return f"Most critical {self.what}: {first['part']} ({', '.join(found) or 'no effect'})"


_STATES = {"jobs_failed": "failed", "jobs_stalled": "stalled"}


def _whole(number: float) -> int:
    """A mean over seeds as a count: rounded up, as what happens on any seed counts."""
    return -int(-number // 1)


def _slowdown(rows: pl.DataFrame) -> dict[str, Any]:
    """The row of a part and a job, over the seeds on which it has a slowdown."""
    values = rows["slowdown"].drop_nulls().to_list()
    return {
        **rows.row(0, named=True),
        "replicates": len(values),
        **interval("slowdown", of_ratios(values)),
        "unbroken_s": rows["unbroken_s"].mean(),
        "failed": rows["failed"].mean(),
        "stalled": rows["stalled"].mean(),
    }


def _ranking(runs: pl.DataFrame, jobs: pl.DataFrame, slowdowns: pl.DataFrame) -> pl.DataFrame:
    """The parts, most critical first: jobs that failed count most, then hosts cut off, stalled jobs, the slowdown."""
    rows, slowest = list[dict[str, Any]](), dict[str, dict[int, float]]()
    for (part,), of_part in runs.group_by(["part"], maintain_order=True):
        own = jobs.filter(pl.col("part") == part)
        by_seed = own.group_by("seed", maintain_order=True).agg(
            pl.col("slowdown").max(), pl.col("failed", "stalled").sum()
        )
        worst = by_seed["slowdown"].drop_nulls().to_list()
        slowest[str(part)] = dict(by_seed.drop_nulls("slowdown").select("seed", "slowdown").iter_rows())
        means = slowdowns.filter(pl.col("part") == part).drop_nulls("slowdown").sort("slowdown", descending=True)
        row = {
            "part": part,
            "replicates": of_part.height,
            "worst_job": means["name"][0] if means.height else None,
            **interval("slowdown", of_ratios(worst)),
            "jobs_failed": by_seed["failed"].mean() or 0.0,
            "jobs_stalled": by_seed["stalled"].mean() or 0.0,
            "hosts_cut_off": of_part["hosts_cut_off"].mean(),
            "errors": of_part["error"].count(),
        }
        rows.append(row)
    order = ("errors", "jobs_failed", "hosts_cut_off", "jobs_stalled", "slowdown")
    rows.sort(key=lambda row: tuple(-(row[name] or 0.0) for name in order))
    for rank, row in enumerate(rows, 1):
        most, less = slowest[rows[0]["part"]], slowest[row["part"]]
        differences = [[most[seed] - less[seed]] for seed in most if seed in less]
        row |= {"rank": rank, **interval("behind", over_replicates(differences))}
    return pl.DataFrame(rows, schema=types(_SCHEMAS["ranking"]))


def opened(plan: Plan, started: datetime, out: Path | None, *, resume: bool) -> Store:
    """The folder of a survey: a new one, or with ``resume`` one that is there, by default the latest unfinished one.

    Raises ``ScenarioError`` or ``BuildError`` if the plan cannot be simulated, ``ResultsError`` if the folder is of
    something else.
    """
    plan.check()
    return Cables.opened("survey", plan, started, out, code="fairlane.cables.measure", resume=resume)


def survey(plan: Plan, *, store: Store | None = None, progress: bool = False) -> Cables:
    """Lets every part fail on every seed; ``progress`` is shown on standard error.

    A seed is simulated once up to the failure; each failure continues from a fork of it. Workers are threads, so that
    all have the same forks. What ``store`` has answers of is not simulated, and new answers go there. Ctrl-C ends it;
    what is complete is kept, and ``partial`` is set. Raises ``ScenarioError``, ``BuildError`` or ``RunError``.
    """
    trunks = Trunks(plan)
    tasks = [Failure(plan, trunks, part, seed) for seed in plan.seeds for part in plan.parts]
    found = measure_all(tasks, plan.workers, store, progress=progress)
    partial, first = len(found) < len(tasks), plan.parts[0]
    meta = provenance(plan, store, partial=partial, kind=first.kind, parts=len(plan.parts), together=len(first.names))
    return Cables.of(found, meta)
