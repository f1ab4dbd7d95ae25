"""A sentence for each figure of a page, which says what the data in it show."""

import polars as pl

from fairlane.engine.tables import PS
from fairlane.plot import slowdown, utilisation
from fairlane.results.culprit import HINT, LostTime, headline
from fairlane.results.run import Run
from fairlane.results.views import Interference, by_link, iteration_times
from fairlane.wording import percent, plural, seconds


def sentences(run: Run) -> dict[str, str]:
    """The sentences, by the figures' names: of those that the run has data for."""
    made = {
        "fabric": _links(run),
        "lost": _lost(run),
        "matrix": _matrix(run),
        "slowdown": _slowdown(run),
        "latency": _latency(run),
        "histogram": _histogram(run),
        "iterations": _iterations(run),
        "calls": _calls(run),
        "power": _power(run),
    }
    return {name: words for name, words in made.items() if words is not None}


def _links(run: Run) -> str | None:
    if not run.ports["packets"].sum():
        return None
    links = by_link(run.ports)
    stalled = int((links["port_stalled_share"] > 0.1).sum())
    return f"{utilisation.title(links)}. {plural(stalled, 'port')} stalled for more than 10% of the time."


def _matrix(run: Run) -> str | None:
    if run.interference.is_empty():
        return None
    matrix = Interference.of(run)
    total = float(matrix.others.sum() + matrix.own.sum())
    if not total:
        return "No packet was queued."
    share = percent(matrix.others.sum() / total)
    of_all = f"Other jobs cause {share} of all queueing delay."
    return of_all if LostTime.of(run) else f"{headline(run)}. {of_all} {HINT}"


def _lost(run: Run) -> str | None:
    return f"{headline(run)}." if LostTime.of(run) else None


def _slowdown(run: Run) -> str | None:
    compared = run.jobs.filter(pl.col("w").is_not_null())
    return None if compared.is_empty() else f"{slowdown.title(compared)}."


def _latency(run: Run) -> str | None:
    if run.latency is None:
        return None
    rows = run.latency.filter(of="message")
    if rows.is_empty():
        return None
    worst = rows.sort("p99_ps", "name", "kind").row(-1, named=True)
    median = rows["p99_ps"].median()
    assert isinstance(median, float), "a column of numbers with rows"
    kinds = "" if rows["kind"].n_unique() == 1 else f" ({worst['kind']})"
    return (
        f"{worst['name']}{kinds} has the highest 99% quantile of message latency: {seconds(worst['p99_ps'] * PS)}, "
        f"{worst['p99_ps'] / median:.1f} times the median over jobs."
    )


def _histogram(run: Run) -> str | None:
    if run.latency_histogram is None:
        return None
    counts = run.latency_histogram.filter(of="message").group_by("high_ps").agg(pl.col("count").sum()).sort("high_ps")
    if counts.is_empty():
        return None
    total = int(counts["count"].sum())
    shares = counts.with_columns(share=pl.col("count").cum_sum() / total)
    half, most = (shares.filter(pl.col("share") >= at)["high_ps"][0] * PS for at in (0.5, 0.99))
    return f"Of {plural(total, 'message')}, half take at most {seconds(half)} and 99% at most {seconds(most)}."


def _iterations(run: Run) -> str | None:
    rows = run.jobs.filter(pl.col("seconds_per_iteration").is_not_null())
    if rows.is_empty():
        return None
    spread = (
        iteration_times(run.completions)
        .drop_nulls("time_s")
        .group_by("name")
        .agg(pl.len(), low=pl.col("time_s").min(), high=pl.col("time_s").max())
        .filter(pl.col("len") > 1)
        .sort((pl.col("high") / pl.col("low")), "name")
    )
    if spread.is_empty():
        return "No job completed more than two iterations."
    most = spread.row(-1, named=True)
    low, high = seconds(most["low"]), seconds(most["high"])
    return f"The time per iteration of {most['name']} varies most: from {low} to {high}."


def _calls(run: Run) -> str | None:
    time = run.jobs["ranks"].cast(pl.Float64) * run.jobs["span_ps"].cast(pl.Float64) * PS
    total = float(time.sum())
    if not total or run.calls.is_empty():
        return None
    compute = float((run.jobs["compute_share"].fill_null(0.0) * time).sum()) / total
    calls = run.calls.group_by("call").agg(pl.col("time_s").sum()).sort("time_s", "call")
    most = calls.row(-1, named=True)
    return (
        f"Ranks compute for {percent(compute)} of their time; the MPI call with most time is {most['call']}: "
        f"{percent(most['time_s'] / total)}."
    )


def _power(run: Run) -> str | None:
    if run.power is None or run.power.is_empty():
        return None
    total, sockets = float(run.power["mean_w"].sum()), run.power.height
    slowest = run.power.sort("frequency_share", "name").row(0, named=True)
    words = f"{plural(sockets, 'socket')} take {total:,.0f} W together."
    if slowest["frequency_share"] >= 1:
        return f"{words} None is slowed down by its cap."
    share = percent(slowest["frequency_share"])
    return f"{words} The slowest, of {slowest['name']}, runs at {share} of the full frequency."
