"""Notes on a run: jobs that failed, new routes after faults, and jobs without a reliable W.

Those have failed, or completed too few iterations or none.

*Runs of one condition with the same results, bit for bit: they are one replicate, whatever seeds and placements say.*
Found by the digests of results, so it does not matter why they are the same.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import ceil, floor, log10
from typing import Any

import polars as pl

from fairlane.core.tables import PS
from fairlane.core.wording import listed, percent, plural, seconds, significant, some, time_unit
from fairlane.results.milestones import FEW_ITERATIONS
from fairlane.results.run import Run

MANY = 5
"""Number of jobs from which on iterations are summarised."""
UNEVEN = 2
"""A rail with more than so many times the bytes of another is noted."""
MOST_LINES = 8
"""Failures, and sweeps, that have a line each."""
MOST_HOSTS = 8
"""Hosts that are named in a line."""


def few(jobs: pl.DataFrame) -> pl.DataFrame:
    """The jobs whose W compares too few iterations."""
    return jobs.filter(pl.col("w").is_not_null() & pl.col("ten_iterations_ps").is_not_null())


def sufficient(jobs: pl.DataFrame) -> str | None:
    """The simulated time in which all of these complete enough iterations, rounded up; None if it is not known."""
    longest = jobs["ten_iterations_ps"].max()
    if not isinstance(longest, int) or not longest:
        return None
    digit = 10 ** max(0, floor(log10(longest)) - 1)
    factor, unit = time_unit(longest * 1e-12)
    return f"{significant(ceil(longest / digit) * digit * 1e-12 / factor, 4)} {unit}"


def stops(jobs: pl.DataFrame) -> str:
    """Name the jobs that are stopped before that, to be added to a sentence: for them a longer run changes nothing."""
    before = jobs.filter(pl.col("stop_ps") < pl.col("ten_iterations_ps"))
    names = before["name"].unique(maintain_order=True).to_list()
    return f", but {listed(names)} {'is' if len(names) == 1 else 'are'} stopped before" if names else ""


def notes(run: Run) -> Iterator[str]:
    """Sentences about jobs that failed, new routes, pauses, and jobs that have no W, or one over too few iterations."""
    yield from _failed(run)
    yield from _swept(run)
    yield from _paused(run)
    yield from _silent(run)
    yield from _uneven_rails(run)
    failed = [] if run.failures is None else run.failures["job"].to_list()
    asked = run.jobs.filter(pl.col("isolated_iterations").is_not_null(), ~pl.col("job").is_in(failed))
    without = asked.filter(pl.col("w").is_null())
    within = seconds(run.meta.simulated_s)
    if without.height:
        known = without.filter(pl.col("ten_iterations_ps").is_not_null())
        note = f"No W for {_those(without, asked)}: no iteration was completed within {within}"
        time = sufficient(known)
        if time is None:
            note += ", nor in the isolated run soon after"
        else:
            whose = "" if known.height == without.height else f" of {listed(known['name'].to_list())}"
            note += f"; {FEW_ITERATIONS} iterations{whose} take at least {time}"
        yield f"{note}{stops(without)}."
    short = few(asked)
    if short.height:
        counts = [f"{name} ({count})" for name, count in short.select("name", "compared_iterations").iter_rows()]
        whose = listed(counts) if short.height < MANY else f"{_those(short, asked)} ({_range(short)})"
        time = f"{FEW_ITERATIONS} take about {sufficient(short)}{stops(short)}"
        yield f"Too few iterations for a reliable W: {whose}; {time}."


def _uneven_rails(run: Run) -> Iterator[str]:
    """A sentence if the adapters of one number sent more than twice the bytes of those of another."""
    sent = run.ports.filter(pl.col("role") == "host", pl.col("from_level") == 0, pl.col("rail").is_not_null())
    several = sent.filter(pl.col("link").n_unique().over("from_name") > 1)
    rails = several.group_by("rail").agg(pl.col("bytes").sum()).filter(pl.col("bytes").sum() > 0).sort("bytes", "rail")
    if rails.height > 1:
        (least, few), (most, many) = rails.row(0), rails.row(-1)
        if many > UNEVEN * few:
            share = "all" if many == rails["bytes"].sum() else f"{percent(many / rails['bytes'].sum())} of all"
            than = (
                f"{many / few:.1f} times the bytes of rail {least}" if few else f"{share} bytes, and rail {least} none"
            )
            yield f"Of what hosts sent, rail {most} carried {than}: see jobs.rails."


def _failed(run: Run) -> Iterator[str]:
    """A sentence for each job that failed, in the co-run and isolated."""
    if run.failures is None:
        return
    isolated = dict(run.failures.filter("isolated").select("job", "time_ps").iter_rows())
    together = run.failures.filter(~pl.col("isolated"))
    for row in together.head(MOST_LINES).iter_rows(named=True):
        also = isolated.get(row["job"])
        more = "" if also is None else f" In its isolated run it failed after {seconds(also * PS)}."
        yield f"{row['name']} failed after {_lost(row)}.{more}"
    if together.height > MOST_LINES:
        yield f"{together.height - MOST_LINES} more jobs failed: see the table failures."
    only = run.failures.filter("isolated", ~pl.col("job").is_in(together["job"].implode()))
    for row in only.head(MOST_LINES).iter_rows(named=True):
        yield f"{row['name']} has no W: its isolated run failed after {_lost(row)}."


def _lost(row: Mapping[str, Any]) -> str:
    """Say when a job failed, and what was lost."""
    ends = f"from {row['from_name']} to {row['to_name']}"
    return f"{seconds(row['time_ps'] * PS)}: a packet {ends} was lost more often than network.retry_count permits"


def _swept(run: Run) -> Iterator[str]:
    """A sentence for each time that routes were recomputed."""
    if run.sweeps is None:
        return
    for row in run.sweeps.head(MOST_LINES).iter_rows(named=True):
        yield f"{sweep_words(row)}."
    if run.sweeps.height > MOST_LINES:
        yield f"Routes were recomputed {run.sweeps.height - MOST_LINES} more times: see the table sweeps."


def _paused(run: Run) -> Iterator[str]:
    """A sentence if priority flow control has paused lanes: how many, which first, which longest, what was dropped."""
    if run.pauses is None:
        return
    nics = run.pauses.filter("nic").height
    first, longest = run.pauses.row(0, named=True), run.pauses.sort("paused_ps", descending=True).row(0, named=True)
    words = f"PAUSE stopped {plural(run.pauses.height, 'lane')}"
    words += f" ({nics} of adapters)" if nics else ""
    words += f", first {first['link_name']} after {seconds(first['first_ps'] * PS)}"
    words += ", by a storm" if first["storm"] else ""
    words += f", longest {longest['link_name']}: {percent(longest['paused_share'])} of the time"
    dropped = int(run.pauses["dropped"].sum())
    yield f"{words}; the watchdog dropped {plural(dropped, 'packet')}." if dropped else f"{words}."


def sweep_words(row: Mapping[str, Any]) -> str:
    """A row of the table ``sweeps`` in words."""
    links = plural(row["links_down"], "link") if row["links_down"] else "no link"
    sentence = f"After {seconds(row['time_ps'] * PS)}, with {links} down, "
    if row["routing"] is None:
        return f"{sentence}no routing fits what is left of the fabric, and routes stay: {row['reason']}"
    sentence += f"routes were recomputed with {row['routing']}"
    if row["reason"] is not None:
        sentence += f", because {row['reason']}"
    hosts = row["cut_off"].split(", ") if row["cut_off"] else []
    return f"{sentence}; hosts that are cut off: {some(hosts, MOST_HOSTS)}" if hosts else sentence


def _those(jobs: pl.DataFrame, every: pl.DataFrame) -> str:
    many = jobs.height == every.height >= MANY
    return f"all {jobs.height} jobs" if many else listed(jobs["name"].to_list())


def _range(jobs: pl.DataFrame) -> str:
    counts: list[int] = jobs["compared_iterations"].to_list()
    low, high = min(counts), max(counts)
    return f"{low}" if low == high else f"{low} to {high}"


def _silent(run: Run) -> Iterator[str]:
    """Jobs that have sent nothing yet: a recording may compute for long before it communicates."""
    sent = run.ranks.group_by("name", maintain_order=True).agg(pl.len().alias("ranks"), pl.col("messages_sent").sum())
    names: Sequence[str] = sent.filter(pl.col("ranks") > 1, pl.col("messages_sent") == 0)["name"].to_list()
    if names:
        verb = "has" if len(names) == 1 else "have"
        yield (
            f"{listed(names)} {verb} not communicated yet within {seconds(run.meta.simulated_s)}: nothing can delay "
            f"{'such a job' if len(names) == 1 else 'such jobs'}; simulate longer."
        )


def distinct(rows: pl.DataFrame, by: Sequence[str]) -> pl.DataFrame:
    """The rows without those that repeat an earlier one in the columns ``by``: a condition and digests of results."""
    return rows.unique([*by], keep="first", maintain_order=True)


def sentence(
    repeats: int,
    count: int,
    varied: Sequence[str],
    *,
    what: str = "run",
    whats: str = "",
    whose: str = "",
    once: bool = True,
) -> str:
    """Say that so many of ``count`` runs repeat another, and which seeds change nothing; ``once``: they count once."""
    verb = "repeats" if repeats == 1 else "repeat"
    repeated = f"{repeats} of {plural(count, what, whats)}{whose} {verb} another of the same condition, bit for bit"
    counted = f", and {'counts' if repeats == 1 else 'count'} once" if once else ""
    return f"{repeated}{counted}{f': {listed(varied)} change nothing there' if varied else ''}."


def by_name(sentences: Iterable[tuple[str, str]]) -> Iterator[str]:
    """Sentences about what has these names; the same one of several once."""
    names: dict[str, list[str]] = {}
    for name, sentence in sentences:
        names.setdefault(sentence, []).append(name)
    yield from (f"{listed(of)}: {sentence}" for sentence, of in names.items())


def repeated(rows: pl.DataFrame, by: Sequence[str], varied: Sequence[str], what: str = "run") -> list[str]:
    """The sentence about all rows that repeat an earlier one, as ``distinct`` has it; nothing if there is none."""
    repeats = rows.height - distinct(rows, by).height
    return [sentence(repeats, rows.height, varied, what=what)] if repeats else []
