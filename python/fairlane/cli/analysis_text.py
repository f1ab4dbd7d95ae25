"""An analysis on the terminal: tables, and the walk in words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import polars as pl
from rich.box import SIMPLE_HEAD
from rich.console import Console, Group
from rich.table import Table
from rich.text import Text

from fairlane.analysis import Analysis, Period, Walk, by_neighbour, confusion, dominant_share, spread
from fairlane.analysis.delays import table_one
from fairlane.analysis.packets import NO_ROOM
from fairlane.cli.run_text import console_for_tables
from fairlane.results.text import percent, plural, seconds

__all__ = ["analysis_facts", "print_analysis", "walk_lines"]

MOST_STEPS = 12
"""Of longer walks the last steps before the cause are told, and how many are left out."""
MOST_CALLS = 6
"""How many calls are listed."""
MOST_LINKS = 5
"""How many links of the slow message are listed."""


def print_analysis(found: Analysis, console: Console | None = None) -> None:
    """Prints everything that was found, to standard output unless a ``console`` is given."""
    console = console or console_for_tables()
    for part in (_head(found), _ranks(found), _calls(found), _neighbours(found), _table_one(found), _inference(found)):
        if part is not None:
            console.print(part)
    for line in (*_flit_lines(found), "", *walk_lines(found)):
        console.print(line, soft_wrap=True, highlight=False)


def analysis_facts(found: Analysis) -> dict[str, Any]:
    """What was found, for JSON: times of ranks, calls and iterations, and the walk to the cause in words."""
    return {
        "scenario": found.run.meta.scenario,
        "job": found.job,
        "ranks": found.breakdown,
        "calls": found.calls,
        "iterations": found.periods,
        "compared": [stretch.period for stretch in found.stretches],
        "threshold_ps": found.threshold_ps,
        "walk": [str(line) for line in walk_lines(found)],
    }


def _head(found: Analysis) -> Text:
    text = Text.assemble(
        (found.job, "bold"), f" in {found.run.meta.scenario}: {plural(found.breakdown.height, 'rank')}"
    )
    period = found.chosen.period
    if period.iteration is not None:
        text.append(f", {plural(found.periods.height + 1, 'iteration')}")
    if found.isolated is not None:
        alone = found.isolated.period.seconds
        text.append(f"; {period.name}: {_which(period)}, {seconds(period.seconds)}")
        text.append(f", {period.seconds / alone:.2f} times that of the isolated run, {seconds(alone)}")
    else:
        text.append(f"; {'analysed' if period.iteration is None else period.name}: {_which(period)}")
        text.append(f", {seconds(period.seconds)}; no isolated run to compare with")
    return text


def _new_table(title: str, first: str, *others: str) -> tuple[Group, Table]:
    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0), show_edge=False)
    table.add_column(first, no_wrap=True)
    for heading in others:
        table.add_column(heading, justify="right", no_wrap=True)
    return Group(Text(f"\n{title}", style="bold"), table), table


def _ranks(found: Analysis) -> Group:
    shown, table = _new_table("Time of a rank, whole run", "spent on", "min", "mean", "max", "deviation")
    for row in spread(found.breakdown).iter_rows(named=True):
        inner = row["part"] not in ("compute", "communication")
        name = f"  {row['part']}" if inner else row["part"]
        table.add_row(name, *(seconds(row[key]) for key in ("least", "mean", "greatest", "deviation")))
    return shown


def _calls(found: Analysis) -> Group | None:
    if found.calls.is_empty():
        return None
    title = f"MPI calls: waits and allreduce take {percent(dominant_share(found.calls))} of the time in MPI"
    shown, table = _new_table(title, "call", "calls", "time", "share")
    for row in found.calls.head(MOST_CALLS).iter_rows(named=True):
        table.add_row(row["call"], f"{row['count']:,}", seconds(row["seconds"]), percent(row["share"]))
    return shown


def _neighbours(found: Analysis) -> Group | None:
    table = by_neighbour(found.chosen.delays)
    if table.is_empty():
        return None
    title = f"Waits by neighbour, {_stretch(found)}"
    headings = ("waits", "late\npartner", "network", "median", "99%", "longest\nlate", "longest\nnetwork")
    shown, text = _new_table(title, "neighbour", *headings)
    for row in table.iter_rows(named=True):
        name = row["neighbour"] or "unknown"
        times = ("late_ps", "network_ps", "median_ps", "p99_ps", "greatest_late_ps", "greatest_network_ps")
        text.add_row(
            f"{name}, collective" if row["collective"] else name, f"{row['waits']:,}", *(_ps(row[key]) for key in times)
        )
    return shown


def _table_one(found: Analysis) -> Group | None:
    """Table I of the paper, of the first exchange, by the inference and in truth."""
    chosen = found.chosen.pairs.filter(~pl.col("eager"))
    if chosen.is_empty():
        return None
    title = f"Delays over {_ps(found.threshold_ps)} at the first exchange of each ordered pair of ranks"
    shown, text = _new_table(title, "neighbour", "pairs", "because of", "inferred", "longest", "in truth", "longest")
    exact = table_one(chosen, found.threshold_ps, by="truth")
    rows = table_one(chosen, found.threshold_ps).join(exact, on=["neighbour", "delay"], suffix="_exact")
    for row in rows.iter_rows(named=True):
        last = [str(row["delayed_pairs_exact"]), _ps(row["greatest_ps_exact"])]
        text.add_row(
            row["neighbour"],
            f"{row['pairs']:,}",
            row["delay"],
            str(row["delayed_pairs"]),
            _ps(row["greatest_ps"]),
            *last,
        )
    return shown


def _inference(found: Analysis) -> Group | None:
    table = confusion(found.point_to_point)
    total, time = int(table["count"].sum()), int(table["time_ps"].sum())
    if not total:
        return None
    right = table.filter("right")
    shares = percent(int(right["count"].sum()) / total), percent(int(right["time_ps"].sum()) / max(time, 1))
    title = f"Two-sided inference: right for {shares[0]} of the delays, {shares[1]} of their time"
    shown, text = _new_table(title, "inferred", "in truth", "delays", "time")
    for row in table.iter_rows(named=True):
        text.add_row(row["inferred"], row["truth"], f"{row['count']:,}", _ps(row["time_ps"]))
    return shown


def _flit_lines(found: Analysis) -> Iterator[str]:
    against = found.chosen.against
    if against.points.height:
        yield f"\nFlits on the link between a pair's switches, {against.points.height} pairs:"
    for word, trend in (("waits last", against.waits), ("messages take", against.under_way)):
        if trend.low_p95 is not None and trend.high_p95 is not None:
            r = "" if trend.pearson is None else f"; Pearson's r {trend.pearson:.2f}"
            few, many = _ps(trend.low_p95), _ps(trend.high_p95)
            yield f"  95% of {word} at most {few} in the lowest quarter of flits, {many} in the highest{r}"
    for stretch in found.stretches:
        flits = stretch.flits["flits"]
        quantiles = ", ".join(
            f"{name} {int(flits.quantile(at) or 0):,}" for name, at in (("median", 0.5), ("99%", 0.99))
        )
        total = f"{int(flits.sum()):,} ({quantiles}, max {int(flits.quantile(1) or 0):,})"
        yield f"Flits on all {plural(flits.len(), 'link')}, {stretch.period.name}: {total}."


def walk_lines(found: Analysis) -> Iterator[str]:
    """The walk in words."""
    walk = found.walk
    if walk is None:
        yield "No rank waited."
        return
    steps = walk.steps.to_dicts()
    yield f"Why the longest wait, {_stretch(found)}:"
    first = max(1, len(steps) - MOST_STEPS)
    for number, step in enumerate(steps):
        if number == 1 and first > 1:
            yield f"  ... {first - 1} steps ..."
        if number == 0 or number >= first:
            yield f"  {_told(step, found.view.host_names(found.job))}"
    yield from _cause(walk, found.view.host_names(found.job))


def _told(step: Mapping[str, Any], hosts: Sequence[str]) -> str:
    long, call = _ps(step["end_ps"] - step["since_ps"]), step["call"]
    begin = (
        f"rank {step['rank']} on {hosts[step['rank']]} waited {long} in {call} from {seconds(step['since_ps'] * 1e-12)}"
    )
    if step["message"] is None:
        return f"{begin}; what it waited for is not in the record"
    other = step["from_rank"] if step["to_rank"] == step["rank"] else step["to_rank"]
    whose = "its message from" if step["to_rank"] == step["rank"] else "its message to"
    late = f", which was late by {_ps(step['late_ps'])}" if step["late_ps"] else ", which was not late"
    return f"{begin}: {whose} {_rank(other, hosts)}{late}; {_ps(step['network_ps'])} network"


def _rank(rank: int, hosts: Sequence[str]) -> str:
    return f"rank {rank} on {hosts[rank]}"


def _cause(walk: Walk, hosts: Sequence[str]) -> Iterator[str]:
    if walk.cause == "computing":
        rank = walk.steps.row(-1, named=True)["origin_rank"]
        long = _ps(walk.worked_ps)
        yield f"Cause: {_rank(rank, hosts)} computed {long} longer before its call than the rank that waited for it."
        return
    if walk.cause == "beginning":
        yield "No single message or rank explains half of it: it is a sum of smaller delays, or lies before the record."
        yield _shares(walk)
    if walk.slow is None:
        return
    step = walk.steps.row(walk.slow, named=True)
    word = "Cause" if walk.cause == "slow message" else "The slowest on the way"
    ends = " to ".join(_rank(step[key], hosts) for key in ("from_rank", "to_rank"))
    yield (
        f"{word}: the message of {step['bytes']:,} B from {ends} was in flight for {_ps(step['under_way_ps'])}, "
        f"{_ps(step['excess_ps'])} more than its bytes take."
    )
    yield from _link_lines(walk)


def _shares(walk: Walk) -> str:
    """What the way consisted of, as far as it is known."""
    known = walk.steps.drop_nulls("origin_ps")
    if known.is_empty():
        return "What ended the wait is not in the record."
    end, begin, under_way = known["end_ps"][0], known["origin_ps"][-1], int(known["under_way_ps"].sum())
    own = _ps(end - begin - under_way)
    return f"Of the last {_ps(end - begin)} messages were in flight for {_ps(under_way)}; ranks computed for {own}."


def _link_lines(walk: Walk) -> Iterator[str]:
    if walk.links.is_empty():
        yield "  It went through the host's memory."
    waited = walk.links.filter(pl.col("waited_ps") > 0)
    for row in waited.sort("waited_ps", "link", descending=[True, False]).head(MOST_LINKS).iter_rows(named=True):
        where = f"{row['link_name']} ({row['class']})"
        yield f"  {where}: its packets waited {_ps(row['waited_ps'])}{_whose(walk, row['link'])}"
    if waited.height > MOST_LINKS:
        yield f"  and less at {waited.height - MOST_LINKS} other links"
    if walk.jobs.height:
        shares = ", ".join(f"{row['by']} {percent(row['share'])}" for row in walk.jobs.head(5).iter_rows(named=True))
        yield f"  In all its packets waited for: {shares}"


def _whose(walk: Walk, link: int) -> str:
    """For whom they waited at a link, and how much of it because the link had no credits."""
    waiting = pl.col("waiting_ps")
    rows = walk.delayers.filter(pl.col("link") == link)
    total = int(rows["waiting_ps"].sum())
    if not total:
        return ", before the record began"
    no_room = int(rows.filter(pl.col("how") == NO_ROOM)["waiting_ps"].sum()) / total
    by_job = rows.group_by("by").agg(waiting.sum()).sort("waiting_ps", "by", descending=[True, False])
    names = [f"{row['by']} {percent(row['waiting_ps'] / total)}" for row in by_job.head(4).iter_rows(named=True)]
    room = f" ({percent(no_room)} of it stalled for credits)" if no_room else ""
    return f"{room}, for {', '.join(names)}"


def _stretch(found: Analysis) -> str:
    period = found.chosen.period
    return _which(period) if period.iteration is None else f"{_which(period)} ({period.name})"


def _which(period: Period) -> str:
    """The iteration, or what else it is, and the round of it."""
    what = period.name if period.iteration is None else f"iteration {period.iteration}"
    return what if period.round is None else f"{what}, round {period.round}"


def _ps(picoseconds: float | None) -> str:
    return seconds(None if picoseconds is None else picoseconds * 1e-12)
