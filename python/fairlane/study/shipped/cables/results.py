"""Results of a survey of failures: a row for each failure, seed and job, and how critical each part is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl
from typing_extensions import override

from fairlane.core.statistics import of_ratios, over_replicates
from fairlane.core.wording import plural, significant
from fairlane.results import notes
from fairlane.results.derive import interval
from fairlane.results.schemas import Optional, Schema
from fairlane.study.shipped.base import Row, ShippedResults

NOTICEABLE = 1.001
"""The headline leaves lower slowdowns out."""

_NUMBER, _TEXT, _COUNT = Optional(pl.Float64), Optional(pl.String), Optional(pl.Int64)
_RUN: Schema = {"part": pl.String, "seed": pl.UInt64}
_SLOWDOWN: Schema = dict.fromkeys(("slowdown", "slowdown_low", "slowdown_high"), _NUMBER)
_SCHEMAS: Mapping[str, Schema] = {
    "runs": {
        **_RUN,
        "error": _TEXT,
        **dict.fromkeys(("packets_lost", "packets_retransmitted", "packets_given_up"), pl.Int64),
        **dict.fromkeys(("routing", "reason"), _TEXT),
        "hosts_cut_off": _COUNT,
        "cut_off": _TEXT,
        **dict.fromkeys(("digest", "unbroken_digest"), pl.String),
    },
    "jobs": {
        **_RUN,
        **dict.fromkeys(("name", "measure"), pl.String),
        "count": pl.Int64,
        **dict.fromkeys(("unbroken_s", "broken_s", "slowdown"), _NUMBER),
        **dict.fromkeys(("stalled", "failed"), pl.Boolean),
        "failed_at_ps": Optional(pl.UInt64),
    },
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


@dataclass(frozen=True, repr=False, kw_only=True)
class Cables(ShippedResults):
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
    CSV = "ranking"
    SAME = ("part", "digest", "unbroken_digest")

    @classmethod
    @override
    def tables_of(cls, rows: Sequence[Row]) -> dict[str, pl.DataFrame]:
        runs = cls.table("runs", rows)
        jobs = cls.table("jobs", [{**row, **job} for row in rows for job in row["jobs"]])
        once = notes.distinct(runs, cls.SAME)
        of_once = jobs.join(once, on=("part", "seed"), how="semi", maintain_order="left")
        means = [_slowdown(of_job) for _, of_job in of_once.group_by("part", "name", maintain_order=True)]
        slowdowns = cls.table("slowdowns", means)
        ranking = cls.table("ranking", _ranking(once, of_once, slowdowns))
        return {"runs": runs, "jobs": jobs, "slowdowns": slowdowns, "ranking": ranking}

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
        """Kind of part that fails, in the plural."""
        return self._of(2)

    def _of(self, count: int) -> str:
        name, names = ("switch", "switches") if self.meta["kind"] == "switch_down" else ("cable", "cables")
        if self.meta["together"] > 1:
            return f"{plural(count, 'pair', count=False)} of {names}"
        return plural(count, name, names, count=False)

    def headline(self) -> str:
        """The most critical part, in a line."""
        if not self.ranking.height:
            return "No failure was simulated"
        first = self.ranking.row(0, named=True)
        effects = ["a simulation that cannot continue"] if first["errors"] else []
        effects += [f"{plural(_whole(first[name]), 'job')} {state}" for name, state in _STATES.items() if first[name]]
        effects += [f"{plural(_whole(first['hosts_cut_off']), 'host')} cut off"] if first["hosts_cut_off"] else []
        if first["slowdown"] is not None and first["slowdown"] >= NOTICEABLE:
            effects.append(f"slowdown {significant(first['slowdown'], 3)}")
        return f"Most critical {self.what}: {first['part']} ({', '.join(effects) or 'no effect'})"


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


def _ranking(runs: pl.DataFrame, jobs: pl.DataFrame, slowdowns: pl.DataFrame) -> list[Row]:
    """The parts, most critical first: jobs that failed count most, then hosts cut off, stalled jobs, the slowdown."""
    rows, slowest = list[dict[str, Any]](), dict[str, dict[int, float]]()
    for (part,), of_part in runs.group_by(["part"], maintain_order=True):
        of_jobs = jobs.filter(pl.col("part") == part)
        by_seed = of_jobs.group_by("seed", maintain_order=True).agg(
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
    return rows
