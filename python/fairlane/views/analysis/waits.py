"""How long ranks waited, for which neighbours, because of what, and what the two-sided inference makes of it.

The longest wait of every rank is that of Smith et al. 2018, Figure 5, and the first exchange their Table I.
"""

from collections.abc import Iterator, Sequence

import polars as pl

from fairlane.analysis import Analysis, by_neighbour, confusion, table_one
from fairlane.analysis.result import apart_from_collectives
from fairlane.engine.tables import PS
from fairlane.views.analysis.ranks import DELAYS, stretch
from fairlane.views.charts import Axis, Layer, chart, colour, described, drawing
from fairlane.views.model import Chart
from fairlane.views.rows import Rows, bars, stacked_rows
from fairlane.views.tables import Column, Row, Table, columns, time_ps
from fairlane.wording import percent, plural, seconds


def parts(found: Analysis) -> Iterator[Table | Chart]:
    """Waits by rank and by neighbour, delays, and the inference."""
    yield from _longest_waits(found)
    yield from _by_neighbour(found)
    yield from _first_exchange(found)
    yield from _inference(found)


def _longest_waits(found: Analysis) -> Iterator[Chart]:
    """A dot for each rank and stretch."""
    longest = [
        apart_from_collectives(one.delays)
        .group_by("rank")
        .agg(stretch=pl.lit(one.span.name), wait=pl.col("wait_ps").max() * PS)
        .sort("rank")
        for one in found.stretches
    ]
    rows = pl.concat(longest).to_dicts()
    if not rows:
        return
    mine = [row for row in rows if row["stretch"] == found.stretches[-1].span.name]
    worst = max(mine, key=lambda row: row["wait"], default=None)
    said = f"Rank {worst['rank']} waits longest, {seconds(worst['wait'])}." if worst else "No rank waits."
    note = f"Dashed: {seconds(found.threshold_ps * PS)}; longer waits are counted as delays."
    yield Chart("waits", "Longest wait of each rank", drawing(240, _waits(found, rows)), said, note, rows)


def _waits(found: Analysis, rows: Sequence[Row]) -> Iterator[Layer]:
    threshold = found.threshold_ps * PS
    rank = Axis.over(rows, "rank", "Rank", "count", scale="linear", zero=False)
    wait = Axis.of([threshold or None, *(row["wait"] or None for row in rows)], "Longest wait", "time")
    shown, tooltip = described(rows, [*columns(rank="rank", stretch="run"), Column("wait", "wait", seconds)])
    if threshold:
        yield chart([{"at": threshold}]).mark_rule(style="ink", strokeDash=[4, 3]).encode(y=wait.y("at"))
    dots = chart(shown).mark_point(size=30 if len(rows) <= 1024 else 12)
    names = [one.span.name for one in found.stretches]
    yield dots.encode(x=rank.x("rank"), y=wait.y("wait"), color=colour("stretch", names), tooltip=tooltip)


def _by_neighbour(found: Analysis) -> Iterator[Table | Chart]:
    delays = found.point_to_point
    known = by_neighbour(delays).filter(pl.col("neighbour").is_not_null()).to_dicts()
    if known:
        whose = "messages of collectives" if bool(delays["collective"].all()) else "point-to-point messages"
        note = f"Waits on {whose}, {stretch(found)}."
        times = [
            {
                "neighbour": str(row["neighbour"]),
                "part": part,
                "time": row[key] * PS,
                "longest": row[f"greatest_{key}"] * PS,
                "zero": 0.0,
            }
            for row in known
            for key, part in zip(("late_ps", "network_ps"), DELAYS, strict=True)
        ]
        rows = stacked_rows(times, "neighbour", "time")
        worst = max(known, key=lambda row: row["greatest_network_ps"])
        slowest = time_ps(worst["greatest_network_ps"])
        said = f"The slowest message, {slowest}, is between neighbours: {worst['neighbour']}."
        names = [str(row["neighbour"]) for row in known]
        height = Rows(names, 2).height
        sums, longest = (drawing(height, layers(names, rows), zoom=("x",)) for layers in (_sums, _greatest))
        yield Chart("delays", "Waiting by neighbour", sums, said, note, rows)
        sizes = ", ".join(
            f"{part} {seconds(max(row['longest'] for row in rows if row['part'] == part))}" for part in DELAYS
        )
        title = "Longest of a wait by neighbour"
        yield Chart("longest", title, longest, f"Longest: {sizes}.", "", rows, picture="delays")
    every = by_neighbour(found.chosen.delays).to_dicts()
    if every:
        yield _neighbours(found, every)


_TOLD = [
    *columns(neighbour="neighbour", part="because of"),
    *columns(seconds, time="of all ranks", longest="longest of a wait"),
]


def _sums(names: Sequence[str], rows: Sequence[Row]) -> Iterator[Layer]:
    places = Rows(names, 1)
    axis = Axis.over(rows, "end", "Waiting of all ranks", "time", scale="linear", also=[0.0])
    shown, tooltip = described([places.place(row, row["neighbour"]) for row in rows], _TOLD)
    yield bars(shown, axis, places, "begin", "end", color=colour("part", DELAYS), tooltip=tooltip)


def _greatest(names: Sequence[str], rows: Sequence[Row]) -> Iterator[Layer]:
    places = Rows(names, 2)
    axis = Axis.over(rows, "longest", "Longest of a wait", "time", scale="linear", also=[0.0])
    placed = [places.place(row, row["neighbour"], DELAYS.index(row["part"])) for row in rows]
    shown, tooltip = described(placed, _TOLD)
    base = chart(shown).encode(y=places.y("at"), color=colour("part", DELAYS), tooltip=tooltip)
    yield base.mark_rule(strokeWidth=2.5).encode(x=axis.x("zero"), x2="longest:Q")
    yield base.mark_point(size=70).encode(x=axis.x("longest"))


def _neighbours(found: Analysis, rows: Sequence[Row]) -> Table:
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
    said = f"{plural(sum(row['waits'] for row in rows), 'wait')} in all."
    return Table(shown, rows, f"Waits by neighbour, {stretch(found)}", sentence=said)


def _first_exchange(found: Analysis) -> Iterator[Table]:
    """Table I of the paper, by the inference and in truth."""
    chosen = found.chosen.pairs.filter(~pl.col("eager"))
    if chosen.is_empty():
        return
    exact = table_one(chosen, found.threshold_ps, by="truth")
    rows = table_one(chosen, found.threshold_ps).join(exact, on=["neighbour", "delay"], suffix="_exact")
    shown = [*columns(neighbour="neighbour", pairs="pairs"), Column("because of", "delay", left=True)]
    for whose, suffix in (("inferred", ""), ("in truth", "_exact")):
        shown += [Column(whose, f"delayed_pairs{suffix}", str), Column("longest", f"greatest_ps{suffix}", time_ps)]
    title = f"Delays over {time_ps(found.threshold_ps)} at the first exchange of each ordered pair of ranks"
    sums = [int(rows[key].sum()) for key in ("delayed_pairs", "delayed_pairs_exact")]
    yield Table(shown, rows.to_dicts(), title, sentence=f"{sums[0]} delays as inferred, {sums[1]} in truth.")


def _inference(found: Analysis) -> Iterator[Table | Chart]:
    table = confusion(found.point_to_point)
    total, time = int(table["count"].sum()), int(table["time_ps"].sum())
    if not total:
        return
    right = table.filter("right")
    shares = percent(int(right["count"].sum()) / total), percent(int(right["time_ps"].sum()) / max(time, 1))
    said = f"Two-sided inference: right for {shares[0]} of the delays, {shares[1]} of their time"
    rows = table.to_dicts()
    note = "Inference: colours are what the delays are."
    made = drawing(90, _judged(rows), zoom=("x",))
    yield Chart("inference", "Delays as inferred", made, f"{said}.", note, rows, picture="delays")
    shown = [Column("inferred", "inferred"), Column("in truth", "truth", left=True), Column("delays", "count")]
    yield Table([*shown, Column("time", "time_ps", time_ps)], rows, said, sentence=f"{plural(total, 'delay')} judged.")


def _judged(rows: Sequence[Row]) -> Iterator[Layer]:
    """The delays by what the inference takes them for, in the colours of what they are."""
    places = Rows(DELAYS, labels=[["inferred:", kind] for kind in DELAYS])
    placed = stacked_rows([places.place(row, row["inferred"]) for row in rows], "inferred", "count")
    told = [*columns(inferred="inferred", truth="in truth", count="delays"), Column("time", "time_ps", time_ps)]
    shown, tooltip = described(placed, told)
    ends = {kind: max((row["end"] for row in placed if row["inferred"] == kind), default=0) for kind in DELAYS}
    axis = Axis.of([0, *(1.1 * end for end in ends.values())], "Delays", "count", scale="linear")
    yield bars(shown, axis, places, "begin", "end", color=colour("truth", DELAYS), tooltip=tooltip)
    totals = [places.place({"end": end, "text": f"{end:,}"}, kind) for kind, end in ends.items()]
    label = chart(totals).mark_text(style="text", align="left", dx=6)
    yield label.encode(x=axis.x("end"), y=places.y("at"), text="text:N")
