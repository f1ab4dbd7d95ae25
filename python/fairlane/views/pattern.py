"""Who sends how much to whom in a job: its pattern with the evidence, its communication matrix, sizes of messages.

Recorded traces: their ranks, calls and bytes, and what a simulation would refuse.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import altair
import numpy as np
import numpy.typing as npt
import polars as pl

from fairlane.core.wording import data_size, percent, plural, seconds, significant
from fairlane.model.pattern import BULK, Pattern, Traffic
from fairlane.model.workload.recorded import unsupported_lines
from fairlane.views.charts import Axis, Layer, chart, colour, described, drawing, layers, legend_of
from fairlane.views.heat import Heat
from fairlane.views.model import Chart, View
from fairlane.views.tables import Column, Row, Table, terms

_CALL_KINDS = ("communicators", "windows", "requests", "collectives", "one-sided operations", "calls", "regions")


def trace_view(trace: Mapping[str, Any], name: str) -> View:
    """A description of a trace; what it has none of is left out."""
    rows = [row for kind in _CALL_KINDS for row in _counted(kind, trace)]
    sections = [part for before, row in zip([None, *rows], rows, strict=False) for part in _after(before, row)]
    unsupported = trace["unsupported"]
    refused = ["Cannot be simulated:", *(f"  {line}" for line in unsupported_lines(trace))]
    refused.append("trace.exclude simulates the rest without the calls that it names.")
    shown = [Column("kind", "kind"), Column("name", "name", left=True), Column("count", "count")]
    said = f"{sum(trace['calls'].values()):,} calls."
    events = f"{plural(trace['ranks'], 'rank')}, {plural(trace['events'], 'event')}"
    return View(
        title=f"{name}: recorded trace",
        headline=f"{trace['format']} {trace['version']}: {events}",
        facts=refused if unsupported else ["Every recorded call can be simulated"],
        parts=[
            terms(dict(_totals(trace)), "Trace", sentence=f"{events}."),
            Table([*shown, Column("note", "note", left=True)], sections, "Calls and what they use", sentence=said),
        ],
    )


def _after(before: Row | None, row: Row) -> list[Row | None]:
    """A row, and before the first of a kind the end of the section above."""
    return [row] if before is None or before["kind"] == row["kind"] else [None, row]


def _totals(trace: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    if trace["duration_seconds"]:
        yield "recorded", seconds(trace["duration_seconds"])
    cpu, in_mpi = trace["cpu_seconds"], trace["cpu_seconds_in_mpi"]
    if cpu is not None:
        yield "CPU time", f"{seconds(cpu)} of all ranks" + (f", {seconds(in_mpi)} of it in MPI" if in_mpi else "")
    yield "messages", f"{trace['p2p_messages']:,} point to point, {data_size(trace['p2p_bytes'])}"
    if trace["wildcard_receives"]:
        yield "wildcards", f"{trace['wildcard_receives']:,} receives from any source"
    if trace["p2p_messages"]:
        near = trace["neighbours"]
        yield "neighbours", f"{near['min']} to {near['max']} of a rank, {near['mean']:.1f} on average"


def _counted(kind: str, trace: Mapping[str, Any]) -> list[Row]:
    """Count by name, the most frequent first, with a note."""
    counts, notes = trace[kind.removesuffix(" operations").replace("-", "_")], {}
    if counts and isinstance(next(iter(counts.values())), Mapping):
        notes = {name: data_size(count["bytes"]) for name, count in counts.items() if count["bytes"]}
        counts = {name: count["calls"] for name, count in counts.items()}
    if kind == "calls":
        refused: Counter[str] = Counter()
        for entry in trace["unsupported"]:
            refused[entry["call"]] += entry["count"]
        notes = {name: f"{count:,} cannot be simulated" for name, count in refused.items()}
        notes |= {name: f"{count:,} found nothing" for name, count in trace["failed_polls"].items()}
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return [{"kind": kind, "name": name, "count": count, "note": notes.get(name, "")} for name, count in ordered]


MOST_CELLS = 128
"""Rows and columns of the matrix that is drawn; of more ranks, a cell is a block of consecutive ones."""
_SIDE = 560
"""Height of the matrix, px."""
_UNITS = ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"), (1, "B"))
Ints = npt.NDArray[np.int64]


def view(pattern: Pattern, title: str) -> View:
    """A pattern, as of a trace or a workload, which ``title`` names."""
    traffic, verdict = pattern.traffic, pattern.verdict
    unit = f", local unit of {plural(verdict.unit, 'rank')}" if verdict.unit else ""
    amount = f"{plural(int(traffic.messages.sum()), 'message')}, {data_size(int(traffic.total.sum()))}"
    return View(
        title=f"{title}: communication pattern",
        headline=f"{title}: {verdict.kind}{unit}",
        facts=[f"{verdict.reason[:1].upper()}{verdict.reason[1:]}"],
        parts=[
            _matrix(traffic, f"{plural(traffic.ranks, 'rank')}, {amount}."),
            _by_rank(traffic),
            _evidence(pattern, amount),
            *([_sizes(traffic)] if any(traffic.sizes.values()) else []),
        ],
    )


def _evidence(pattern: Pattern, amount: str) -> Table:
    lines = {"ranks": str(pattern.traffic.ranks), **_evidence_lines(pattern, amount)}
    said = f"{percent(pattern.traffic.collective_share)} of the bytes are of collectives."
    return terms(lines, "Evidence", sentence=said)


def _evidence_lines(pattern: Pattern, amount: str) -> dict[str, str]:
    traffic, evidence, communities = pattern.traffic, pattern.evidence, pattern.communities
    lines = {"messages": f"{amount}, {percent(traffic.collective_share)} of the bytes in collectives"}
    if evidence is None:
        return lines
    for word, amounts in (("sent", traffic.sent), ("received", traffic.received)):
        least, most, mean = (data_size(int(value)) for value in (amounts.min(), amounts.max(), amounts.mean()))
        lines[word] = f"{least} to {most} by rank, {mean} on average"
    bulk = f"{significant(evidence.bulk_partners)} account for {BULK:.0%} of its bytes"
    sizes = sorted(len(members) for members in communities.members)
    span = f"{sizes[0]}" if sizes[0] == sizes[-1] else f"{sizes[0]} to {sizes[-1]}"
    grid = f"{' x '.join(map(str, evidence.grid))}, {evidence.grid_neighbours}"
    units = f"{evidence.unit} consecutive ranks"
    return {
        **lines,
        "partners": f"{significant(evidence.partners)} of the median rank; {bulk}",
        "best grid": _against_chance(grid, evidence.grid_share, evidence.grid_chance),
        "best units": _against_chance(units, evidence.unit_share, evidence.unit_chance),
        "communities": f"{len(sizes)} of {span} ranks: {percent(communities.inside)} of the bytes, "
        f"modularity {communities.modularity:.2f}",
    }


def _against_chance(what: str, share: float, chance: float) -> str:
    return f"{what}: {percent(share)} of the bytes, by chance {percent(chance)}"


def _sizes(traffic: Traffic) -> Table:
    """Messages and bytes by size, in powers of four."""
    bins: dict[tuple[str, int], tuple[int, int]] = defaultdict(lambda: (0, 0))
    for kind, sizes in traffic.sizes.items():
        for size, count in sorted(sizes.items()):
            at = (kind, 0 if size == 0 else 4 ** -(-(size - 1).bit_length() // 2))
            bins[at] = (bins[at][0] + count, bins[at][1] + size * count)
    rows: list[dict[str, Any]] = [
        {"kind": kind, "limit": limit, "count": number, "bytes": octets}
        for (kind, limit), (number, octets) in bins.items()
    ]
    shown = [Column("messages", "kind"), Column("up to", "limit", data_size), Column("count", "count")]
    most = max(rows, key=lambda row: row["bytes"])
    said = f"Most of the bytes are {most['kind']}, in messages up to {data_size(most['limit'])}."
    return Table([*shown, Column("bytes", "bytes", data_size)], rows, "Messages by size", sentence=said)


def _matrix(traffic: Traffic, said: str) -> Chart:
    side = -(-traffic.ranks // MOST_CELLS)
    total = _blocks(traffic.total, side)
    sender, receiver = np.nonzero(total)
    starts = {"sender": sender * side, "receiver": receiver * side}
    ends = {f"{name}_end": np.minimum(traffic.ranks, at + side) for name, at in starts.items()}
    rows = pl.DataFrame({**starts, "bytes": total[sender, receiver], **ends}).to_dicts()
    block = f" A cell is a block of {side} x {side} ranks." if side > 1 else ""
    return Chart(
        "pattern",
        "Communication matrix",
        drawing(_SIDE, _cells(rows, traffic.ranks)),
        said,
        f"Bytes from sender to receiver; colours are logarithmic; grey: nothing.{block}",
        rows,
        wide=True,
    )


def _blocks(total: Ints, side: int) -> Ints:
    """Sums over blocks of so many rows and columns."""
    if side == 1:
        return total
    padded = np.pad(total, [(0, -len(total) % side)] * 2)
    blocks = len(padded) // side
    sums: Ints = padded.reshape(blocks, side, blocks, side).sum(axis=(1, 3))
    return sums


def _cells(rows: Sequence[Row], ranks: int) -> Iterator[Layer]:
    scale = altair.Scale(domain=[0, ranks], nice=False)
    down = altair.Scale(domain=[0, ranks], nice=False, reverse=True)
    step = altair.Axis(tickMinStep=1, tickCount=8, grid=False)
    ground = chart([{"from": 0, "to": ranks}]).mark_rect(style="band")
    yield ground.encode(
        x=altair.X("from:Q", scale=scale, title="Receiver", axis=step),
        x2="to:Q",
        y=altair.Y("from:Q", scale=down, title="Sender", axis=step),
        y2="to:Q",
    )
    if not rows:
        return

    def ends(name: str) -> Column:
        last = f"{name}_end"
        return Column(name, lambda row: f"{row[name]}" + (f" to {row[last] - 1}" if row[last] - row[name] > 1 else ""))

    shown, tooltip = described(rows, [ends("sender"), ends("receiver"), Column("bytes", "bytes", data_size)])
    least, most = (float(end([row["bytes"] for row in rows])) for end in (min, max))
    heat = Heat(min(least, most / 4), most, log=True)
    shade = heat.colour("bytes", "bytes", share=False)
    ticks = {tick: data_size(tick) for tick in _powers(heat.low, heat.high)}
    label = " : ".join(f"datum.value === {tick:.0f} ? '{text}'" for tick, text in ticks.items())
    shade["legend"] = altair.Legend(
        title=None, orient="top", values=list(ticks), labelExpr=f"{label} : ''", gradientLength=260
    )
    x, y = altair.X("receiver:Q", scale=scale), altair.Y("sender:Q", scale=down)
    cells = chart(shown).mark_rect(stroke=None).encode(color=shade, tooltip=tooltip)
    yield cells.encode(x=x, x2="receiver_end:Q", y=y, y2="sender_end:Q")


def _powers(least: float, most: float) -> list[float]:
    """Up to about five powers of two between two amounts, evenly apart."""
    first, last = int(np.ceil(np.log2(least))), int(np.floor(np.log2(most)))
    step = max(1, -(-(last - first) // 4))
    return [2.0**power for power in range(first, last + 1, step)]


def _by_rank(traffic: Traffic) -> Chart:
    amounts = {"sent": traffic.sent, "received": traffic.received}
    most = max(1, *(int(octets.max()) for octets in amounts.values()))
    unit, name = next((size, name) for size, name in _UNITS if most >= size)
    rows: list[dict[str, Any]] = [
        {"rank": rank, "what": what, "bytes": octets, "amount": octets / unit}
        for what, every in amounts.items()
        for rank, octets in enumerate(every.tolist())
    ]
    rank = Axis.over(rows, "rank", "Rank", "count", scale="linear", zero=False)
    amount = Axis.over(rows, "amount", f"Bytes of a rank [{name}]", scale="linear", also=[0.0])
    told = [Column("rank", "rank", str), Column("", "what"), Column("bytes", "bytes", data_size)]
    shown, tooltip = described(rows, told)
    names = list(amounts)
    dash = altair.StrokeDash(
        "what:N", scale=altair.Scale(domain=names, range=[[1, 0], [4, 3]]), legend=legend_of(names)
    )
    line = chart(shown).mark_line(interpolate="step", strokeWidth=1.6).encode(strokeDash=dash, tooltip=tooltip)
    line = line.encode(x=rank.x("rank"), y=amount.y("amount"), color=colour("what", names))
    ends = [data_size(int(end)) for end in (traffic.sent.min(), traffic.sent.max())]
    said = f"A rank sends {ends[0]} to {ends[1]}."
    return Chart("by-rank", "Bytes of each rank", layers(200, line), said, "", rows, picture="pattern", wide=True)
