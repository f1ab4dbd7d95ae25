"""An analysis on the terminal: tables, and the walk in words."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import polars as pl
from rich.text import Text

from fairlane.analysis import Analysis, Span, Walk, by_neighbour, confusion, dominant_share, roots, spread
from fairlane.analysis.delays import table_one
from fairlane.analysis.packets import NO_ROOM
from fairlane.cli.terminal import Part
from fairlane.fabric.congestion import shown
from fairlane.views.tables import Column, Row, Table, columns, time_ps
from fairlane.wording import percent, plural, seconds

MOST_STEPS = 12  # of longer walks the last steps before the cause are printed, and how many are left out
MOST_CALLS = 6  # how many calls are listed
MOST_LINKS = 5  # how many links of the slow message are listed
MOST_ROOTS = 6  # how many roots of congestion are listed


def analysis_parts(found: Analysis) -> Iterator[Part]:
    """Everything that was found."""
    yield _head(found)
    yield from filter(None, (_ranks(found), _calls(found), _neighbours(found), _table_one(found), _inference(found)))
    yield from (*_flit_lines(found), "", *walk_lines(found))
    yield from ("", *shown(roots(found.run), MOST_ROOTS), *(f"Note: {note}" for note in found.run.meta.notes))


def analysis_facts(found: Analysis) -> dict[str, Any]:
    """What was found, for JSON: times of ranks, calls and iterations, and the walk to the cause in words."""
    return {
        "scenario": found.run.meta.scenario,
        "job": found.job,
        "ranks": found.breakdown,
        "calls": found.calls,
        "iterations": found.iterations,
        "compared": [stretch.span for stretch in found.stretches],
        "threshold_ps": found.threshold_ps,
        "walk": [str(line) for line in walk_lines(found)],
        "roots": [asdict(root) for root in roots(found.run)],
        "notes": found.run.meta.notes,
    }


def _head(found: Analysis) -> Text:
    text = Text.assemble(
        (found.job, "bold"), f" in {found.run.meta.scenario}: {plural(found.breakdown.height, 'rank')}"
    )
    span = found.chosen.span
    if span.iteration is not None:
        text.append(f", {plural(found.iterations.height + 1, 'iteration')}")
    if found.isolated is not None:
        alone = found.isolated.span.seconds
        text.append(f"; {span.name}: {_which(span)}, {seconds(span.seconds)}")
        text.append(f", {span.seconds / alone:.2f} times that of the isolated run, {seconds(alone)}")
    else:
        text.append(f"; {'analysed' if span.iteration is None else span.name}: {_which(span)}")
        text.append(f", {seconds(span.seconds)}; no isolated run to compare with")
    return text


def _ranks(found: Analysis) -> Table:
    def name(row: Row) -> str:
        inner = row["part"] not in ("compute", "communication")
        return f"  {row['part']}" if inner else row["part"]

    statistics = columns(seconds, min="min", mean="mean", max="max", deviation="deviation")
    rows = spread(found.breakdown).to_dicts()
    return Table([Column("spent on", name), *statistics], rows, "Time of a rank, whole run")


def _calls(found: Analysis) -> Table | None:
    if found.calls.is_empty():
        return None
    title = f"MPI calls: waits and allreduce take {percent(dominant_share(found.calls))} of the time in MPI"
    listed = [
        *columns(call="call", count="calls"),
        Column("time", "time_s", seconds),
        Column("share", "share", percent),
    ]
    return Table(listed, found.calls.head(MOST_CALLS).to_dicts(), title)


def _neighbours(found: Analysis) -> Table | None:
    rows = by_neighbour(found.chosen.delays).to_dicts()
    if not rows:
        return None

    def name(row: Row) -> str:
        known = row["neighbour"] or "unknown"
        return f"{known}, collective" if row["collective"] else known

    times = columns(
        time_ps,
        late_ps="late\npartner",
        network_ps="network",
        median_ps="median",
        p99_ps="99%",
        greatest_late_ps="longest\nlate",
        greatest_network_ps="longest\nnetwork",
    )
    shown = [Column("neighbour", name), Column("waits", "waits"), *times]
    return Table(shown, rows, f"Waits by neighbour, {_stretch(found)}")


def _table_one(found: Analysis) -> Table | None:
    """Table I of the paper, of the first exchange, by the inference and in truth."""
    chosen = found.chosen.pairs.filter(~pl.col("eager"))
    if chosen.is_empty():
        return None
    exact = table_one(chosen, found.threshold_ps, by="truth")
    rows = table_one(chosen, found.threshold_ps).join(exact, on=["neighbour", "delay"], suffix="_exact")
    shown = [
        *columns(neighbour="neighbour", pairs="pairs", delay="because of"),
        *(Column("inferred", "delayed_pairs", str), Column("longest", "greatest_ps", time_ps)),
        *(Column("in truth", "delayed_pairs_exact", str), Column("longest", "greatest_ps_exact", time_ps)),
    ]
    title = f"Delays over {time_ps(found.threshold_ps)} at the first exchange of each ordered pair of ranks"
    return Table(shown, rows.to_dicts(), title)


def _inference(found: Analysis) -> Table | None:
    table = confusion(found.point_to_point)
    total, time = int(table["count"].sum()), int(table["time_ps"].sum())
    if not total:
        return None
    right = table.filter("right")
    shares = percent(int(right["count"].sum()) / total), percent(int(right["time_ps"].sum()) / max(time, 1))
    title = f"Two-sided inference: right for {shares[0]} of the delays, {shares[1]} of their time"
    shown = columns(inferred="inferred", truth="in truth", count="delays")
    return Table([*shown, Column("time", "time_ps", time_ps)], table.to_dicts(), title)


def _flit_lines(found: Analysis) -> Iterator[str]:
    against = found.chosen.against
    if against.points.height:
        yield f"\nFlits on the link between a pair's switches, {against.points.height} pairs:"
    for word, trend in (("waits last", against.waits), ("messages take", against.under_way)):
        if trend.low_p95 is not None and trend.high_p95 is not None:
            r = "" if trend.pearson is None else f"; Pearson's r {trend.pearson:.2f}"
            few, many = time_ps(trend.low_p95), time_ps(trend.high_p95)
            yield f"  95% of {word} at most {few} in the lowest quarter of flits, {many} in the highest{r}"
    for stretch in found.stretches:
        flits = stretch.flits["flits"]
        quantiles = ", ".join(
            f"{name} {int(flits.quantile(at) or 0):,}" for name, at in (("median", 0.5), ("99%", 0.99))
        )
        total = f"{int(flits.sum()):,} ({quantiles}, max {int(flits.quantile(1) or 0):,})"
        yield f"Flits on all {plural(flits.len(), 'link')}, {stretch.span.name}: {total}."


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
            yield f"  {_step_text(step, found.view.host_names(found.job))}"
    yield from _cause(walk, found.view.host_names(found.job))


def _step_text(step: Mapping[str, Any], hosts: Sequence[str]) -> str:
    long, call = time_ps(step["end_ps"] - step["since_ps"]), step["call"]
    begin = (
        f"rank {step['rank']} on {hosts[step['rank']]} waited {long} in {call} from {seconds(step['since_ps'] * 1e-12)}"
    )
    if step["message"] is None:
        return f"{begin}; what it waited for is not in the record"
    other = step["from_rank"] if step["to_rank"] == step["rank"] else step["to_rank"]
    whose = "its message from" if step["to_rank"] == step["rank"] else "its message to"
    late = f", which was late by {time_ps(step['late_ps'])}" if step["late_ps"] else ", which was not late"
    return f"{begin}: {whose} {_rank(other, hosts)}{late}; {time_ps(step['network_ps'])} network"


def _rank(rank: int, hosts: Sequence[str]) -> str:
    return f"rank {rank} on {hosts[rank]}"


def _cause(walk: Walk, hosts: Sequence[str]) -> Iterator[str]:
    if walk.cause == "computing":
        rank = walk.steps.row(-1, named=True)["origin_rank"]
        long = time_ps(walk.worked_ps)
        yield f"Cause: {_rank(rank, hosts)} computed {long} longer before its call than the rank that waited for it."
        return
    if walk.cause == "beginning":
        yield "No single message or rank explains half of it: it is a sum of smaller delays, or lies before the record."
        yield _shares(walk)
    if walk.slow is None:
        return
    step = walk.steps.row(walk.slow, named=True)
    word = "Cause" if walk.cause == "slow message" else "The slowest on the path"
    ends = " to ".join(_rank(step[key], hosts) for key in ("from_rank", "to_rank"))
    yield (
        f"{word}: the message of {step['bytes']:,} B from {ends} was in flight for {time_ps(step['under_way_ps'])}, "
        f"{time_ps(step['excess_ps'])} more than its bytes take."
    )
    yield from _link_lines(walk)


def _shares(walk: Walk) -> str:
    """The shares of transfer and computation in the critical path, as far as recorded."""
    known = walk.steps.drop_nulls("origin_ps")
    if known.is_empty():
        return "What ended the wait is not in the record."
    end, begin, under_way = known["end_ps"][0], known["origin_ps"][-1], int(known["under_way_ps"].sum())
    own = time_ps(end - begin - under_way)
    in_flight = f"messages were in flight for {time_ps(under_way)}"
    return f"Of the last {time_ps(end - begin)} {in_flight}; ranks computed for {own}."


def _link_lines(walk: Walk) -> Iterator[str]:
    if walk.links.is_empty():
        yield "  It went through the host's memory."
    waited = walk.links.filter(pl.col("queueing_ps") > 0)
    for row in waited.sort("queueing_ps", "link", descending=[True, False]).head(MOST_LINKS).iter_rows(named=True):
        where = f"{row['link_name']} ({row['class']})"
        yield f"  {where}: its packets waited {time_ps(row['queueing_ps'])}{_whose(walk, row['link'])}"
    if waited.height > MOST_LINKS:
        yield f"  and less at {waited.height - MOST_LINKS} other links"
    if walk.jobs.height:
        shares = ", ".join(f"{row['by']} {percent(row['share'])}" for row in walk.jobs.head(5).iter_rows(named=True))
        yield f"  In all its packets waited for: {shares}"


def _whose(walk: Walk, link: int) -> str:
    """The jobs that caused the queueing delay at a link, and the share stalled for credits."""
    waiting = pl.col("queueing_ps")
    rows = walk.delayers.filter(pl.col("link") == link)
    total = int(rows["queueing_ps"].sum())
    if not total:
        return ", before the record began"
    no_room = int(rows.filter(pl.col("how") == NO_ROOM)["queueing_ps"].sum()) / total
    by_job = rows.group_by("by").agg(waiting.sum()).sort("queueing_ps", "by", descending=[True, False])
    names = [f"{row['by']} {percent(row['queueing_ps'] / total)}" for row in by_job.head(4).iter_rows(named=True)]
    room = f" ({percent(no_room)} of it stalled for credits)" if no_room else ""
    return f"{room}, for {', '.join(names)}"


def _stretch(found: Analysis) -> str:
    span = found.chosen.span
    return _which(span) if span.iteration is None else f"{_which(span)} ({span.name})"


def _which(span: Span) -> str:
    """The iteration, or what else it is, and the round of it."""
    what = span.name if span.iteration is None else f"iteration {span.iteration}"
    return what if span.round is None else f"{what}, round {span.round}"
