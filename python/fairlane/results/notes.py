"""Which jobs of a run cannot be compared reliably with their isolated runs: those with too few iterations, or none."""

from collections.abc import Iterator, Sequence
from math import ceil, floor, log10

import polars as pl

from fairlane.results.milestones import FEW_ITERATIONS
from fairlane.results.run import Run
from fairlane.wording import listed, seconds, significant, time_unit

MANY = 5
"""From this number of jobs on, iterations are summarised."""


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
    """Which of these jobs are stopped before that, to be added to a sentence: for them a longer run changes nothing."""
    before = jobs.filter(pl.col("stop_ps") < pl.col("ten_iterations_ps"))
    names = before["name"].unique(maintain_order=True).to_list()
    return f", but {listed(names)} {'is' if len(names) == 1 else 'are'} stopped before" if names else ""


def notes(run: Run) -> Iterator[str]:
    """Sentences about jobs that have no W, or one over too few iterations."""
    yield from _silent(run)
    asked = run.jobs.filter(pl.col("isolated_iterations").is_not_null())
    without = asked.filter(pl.col("w").is_null())
    within = seconds(run.meta.simulated_s)
    if without.height:
        known = without.filter(pl.col("ten_iterations_ps").is_not_null())
        words = f"No W for {_those(without, asked)}: no iteration was completed within {within}"
        time = sufficient(known)
        if time is None:
            words += ", nor in the isolated run soon after"
        else:
            whose = "" if known.height == without.height else f" of {listed(known['name'].to_list())}"
            words += f"; {FEW_ITERATIONS} iterations{whose} take at least {time}"
        yield f"{words}{stops(without)}."
    short = few(asked)
    if short.height:
        counts = [f"{name} ({count})" for name, count in short.select("name", "compared_iterations").iter_rows()]
        whose = listed(counts) if short.height < MANY else f"{_those(short, asked)} ({_range(short)})"
        time = f"{FEW_ITERATIONS} take about {sufficient(short)}{stops(short)}"
        yield f"Too few iterations for a reliable W: {whose}; {time}."


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
