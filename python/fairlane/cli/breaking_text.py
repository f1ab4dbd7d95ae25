"""What the terminal shows of a survey of failures: the most critical cables, and how much each job suffers."""

from collections.abc import Iterator
from functools import partial

import polars as pl
from rich.text import Text

from fairlane.cables.results import Cables
from fairlane.cli.options import stored
from fairlane.cli.tables import Column, Part, Row, Table, fixed, long, time_ps, with_ratio
from fairlane.statistics import COVERAGE
from fairlane.wording import plural, some

MOST_JOBS = 6
"""With more jobs the table has the one with the greatest slowdown."""
FEW = 10
"""Iterations or messages below which a slowdown is rough."""


def cables_parts(found: Cables, top: int) -> Iterator[Part]:
    """A row for each of the most critical parts, and what the columns are."""
    meta, ranking = found.meta, found.ranking
    after = f"fails after {time_ps(meta['at_ps'])} of {time_ps(meta['duration_ps'])}"
    yield f"{found.headline()}\n"
    yield f"Each of {meta['parts']} {found.whats} {after}, on {plural(len(meta['seeds']), 'seed')}\n"
    names = found.slowdowns["name"].unique(maintain_order=True).to_list()
    several = len(names) > MOST_JOBS
    rows = [_row(found, row) for row in ranking.head(top).iter_rows(named=True)]
    of_jobs = (
        [Column("job", "worst_job", left=True), Column("greatest\nslowdown", with_ratio("slowdown", fixed(3)))]
        if several
        else [Column(name, partial(_of_job, name)) for name in names]
    )
    counts = {"jobs_failed": "jobs\nfailed", "jobs_stalled": "jobs\nstalled", "hosts_cut_off": "hosts\ncut off"}
    shown = [
        Column("", "rank", str, left=False),
        Column(found.what, "part", left=True),
        *of_jobs,
        *(Column(heading, key, lambda value: f"{value:.3g}") for key, heading in counts.items()),
    ]
    yield Table(shown, rows)
    yield from (long(line, "dim") for line in _remarks(found, top))
    yield from stored(found.folder)


def _row(found: Cables, row: Row) -> Row:
    """A row of the ranking with the slowdowns of all jobs."""
    own = found.slowdowns.filter(pl.col("part") == row["part"])
    return {**row, "of_jobs": {job["name"]: job for job in own.iter_rows(named=True)}}


def _of_job(name: str, row: Row) -> str | Text | None:
    """The slowdown of a job; in red whether it failed or stalled, on any seed."""
    job = row["of_jobs"].get(name)
    if job is None:
        return None
    states = [state for state in ("failed", "stalled") if job[state]]
    if job["slowdown"] is None:
        return Text(states[0], style="red") if states else None
    value = with_ratio("slowdown", fixed(3))(job)
    return Text(f"{value}, {states[0]} in {job[states[0]]:.0%}", style="red") if states else value


def _remarks(found: Cables, top: int) -> Iterator[str]:
    """What the columns are, and what is weak about the figures."""
    meta, ranking, jobs = found.meta, found.ranking, found.jobs
    if ranking.height > top:
        yield f'{ranking.height - top} more in the table ranking: fairlane query FOLDER "from ranking".'
    kinds = set(jobs["measure"])
    what = ["time per iteration"] if "iteration" in kinds else []
    what += ["mean latency of messages"] if "message" in kinds else []
    yield (
        f"Columns of jobs: {' or '.join(what)} after the failure, over that of the unbroken fork of the seed. "
        f"In brackets: {COVERAGE:.0%} interval over seeds. "
        "Failed: a packet was lost for good; stalled: completed nothing afterwards."
    )
    yield from found.repeated()
    if found.alike:
        words = "the difference of the greatest slowdowns, paired by seed, is 0, or its interval contains 0"
        yield f"{found.alike} of {ranking.height - 1} others cannot be distinguished from the first: {words}."
    routings = found.runs["routing"].drop_nulls().unique().sort().to_list()
    if routings:
        yield f"Routes afterwards: {', '.join(routings)}."
    if found.runs["routing"].null_count():
        yield "Some forks end before routes are recomputed: fail earlier (--at), or set network.sweep_time."
    if len(meta["seeds"]) < 3:
        yield "Fewer than three seeds give no confidence interval: use --replicates 3 or more."
    few = jobs.filter((pl.col("count") < FEW) & ~pl.col("failed") & ~pl.col("stalled"))["name"].unique().sort()
    if few.len():
        yield f"Fewer than {FEW} iterations or messages compared: {some(few.to_list(), 6)}. Use a longer --duration."
    errors = found.runs.drop_nulls("error")
    if errors.height:
        one = errors.row(0, named=True)
        which = f"{one['part']}, seed {one['seed']}"
        yield f"{plural(errors.height, 'fork')} cannot continue; {which}: {one['error']}"
    if meta["partial"]:
        yield "Interrupted: what is not complete is left out."
