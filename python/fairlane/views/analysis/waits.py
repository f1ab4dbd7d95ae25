"""How long ranks waited, for which neighbours, because of what, and what the two-sided inference makes of it.

The longest wait of every rank is that of Smith et al. 2018, Figure 5, and the first exchange their Table I.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import altair
import polars as pl

from fairlane.analysis import LATE, SLOW, Analysis, by_neighbour, confusion, table_one
from fairlane.analysis.result import apart_from_collectives
from fairlane.engine.tables import PS
from fairlane.views.analysis.spans import DELAYS, stretch
from fairlane.views.charts import Axis, Layer, chart, colour, described, layers
from fairlane.views.model import Chart
from fairlane.views.rows import Rows, bars
from fairlane.views.tables import Column, Row, Table, columns, time_ps
from fairlane.wording import percent, plural, seconds

_PARTS = (("late_ps", LATE), ("network_ps", SLOW))


def parts(found: Analysis) -> Iterator[Table | Chart]:
    """Waits by rank and by neighbour, delays, and the inference."""
    yield from _longest_waits(found)
    yield from _by_neighbour(found)
    yield from _first_exchange(found)
    yield from _inference(found)


def _longest_waits(found: Analysis) -> Iterator[Chart]:
    """A dot for each rank and stretch."""
    rows = [
        {"rank": rank, "stretch": one.span.name, "wait": wait * PS}
        for one in found.stretches
        for rank, wait in _longest(apart_from_collectives(one.delays)).iter_rows()
    ]
    if not rows:
        return
    names = [one.span.name for one in found.stretches]
    threshold = found.threshold_ps * PS
    mine = [row for row in rows if row["stretch"] == names[-1]]
    worst = max(mine, key=lambda row: row["wait"], default=None)
    said = f"Rank {worst['rank']} waits longest, {seconds(worst['wait'])}." if worst else "No rank waits."
    rank = Axis.of((row["rank"] for row in rows), "Rank", "count", scale="linear", zero=False)
    wait = Axis.of([threshold or None, *(row["wait"] or None for row in rows)], "Longest wait", "time")
    shown, tooltip = described(
        rows, [Column("rank", "rank"), Column("run", "stretch"), Column("wait", "wait", seconds)]
    )
    size = 30 if len(rows) <= 1024 else 12
    dots = (
        chart(shown)
        .mark_point(size=size)
        .encode(x=rank.x("rank"), y=wait.y("wait"), color=colour("stretch", names), tooltip=tooltip)
    )
    limit = chart([{"at": threshold}]).mark_rule(style="ink", strokeDash=[4, 3]).encode(y=wait.y("at"))
    note = f"Dashed: {seconds(threshold)}; longer waits are counted as delays."
    yield Chart(
        "waits", "Longest wait of each rank", layers(240, *([limit] if threshold else []), dots), said, note, rows
    )


def _longest(delays: pl.DataFrame) -> pl.DataFrame:
    return delays.group_by("rank").agg(pl.col("wait_ps").max()).sort("rank")


def _by_neighbour(found: Analysis) -> Iterator[Table | Chart]:
    delays = found.point_to_point
    known = by_neighbour(delays).filter(pl.col("neighbour").is_not_null()).to_dicts()
    if known:
        whose = "messages of collectives" if bool(delays["collective"].all()) else "point-to-point messages"
        note = f"Waits on {whose}, {stretch(found)}."
        rows = [
            {
                "neighbour": str(row["neighbour"]),
                "part": part,
                "begin": begin,
                "end": begin + row[key] * PS,
                "time": row[key] * PS,
                "longest": row[f"greatest_{key}"] * PS,
                "zero": 0.0,
            }
            for row in known
            for key, part, begin in zip(("late_ps", "network_ps"), DELAYS, (0.0, row["late_ps"] * PS), strict=True)
        ]
        worst = max(known, key=lambda row: row["greatest_network_ps"])
        slowest = time_ps(worst["greatest_network_ps"])
        said = f"The slowest message, {slowest}, is between neighbours: {worst['neighbour']}."
        names = [str(row["neighbour"]) for row in known]
        height = Rows(names, 2).height
        yield Chart(
            "delays", "Waiting by neighbour", layers(height, *_sums(names, rows), zoom=("x",)), said, note, rows
        )
        sizes = ", ".join(
            f"{part} {seconds(max(row['longest'] for row in rows if row['part'] == part))}" for part in DELAYS
        )
        longest = layers(height, *_greatest(names, rows), zoom=("x",))
        yield Chart(
            "longest", "Longest of a wait by neighbour", longest, f"Longest: {sizes}.", "", rows, picture="delays"
        )
    rows = by_neighbour(found.chosen.delays).to_dicts()
    if rows:
        yield _neighbours(found, rows)


def _tooltip(rows: Sequence[Row]) -> tuple[list[dict[str, Any]], list[altair.Tooltip]]:
    times = columns(seconds, time="of all ranks", longest="longest of a wait")
    return described(rows, [Column("neighbour", "neighbour"), Column("because of", "part"), *times])


def _sums(names: Sequence[str], rows: Sequence[Row]) -> Iterator[Layer]:
    places = Rows(names, 1)
    axis = Axis.of([0.0, *(row["end"] for row in rows)], "Waiting of all ranks", "time", scale="linear")
    shown, tooltip = _tooltip(rows)
    placed = [places.place(row, row["neighbour"]) for row in shown]
    yield bars(placed, axis, places, "begin", "end", color=colour("part", DELAYS), tooltip=tooltip)


def _greatest(names: Sequence[str], rows: Sequence[Row]) -> Iterator[Layer]:
    places = Rows(names, 2)
    axis = Axis.of([0.0, *(row["longest"] for row in rows)], "Longest of a wait", "time", scale="linear")
    shown, tooltip = _tooltip(rows)
    placed = [places.place(row, row["neighbour"], DELAYS.index(row["part"])) for row in shown]
    base = chart(placed).encode(y=places.y("at"), color=colour("part", DELAYS), tooltip=tooltip)
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
    shown = [
        *columns(neighbour="neighbour", pairs="pairs"),
        Column("because of", "delay", left=True),
        *(Column("inferred", "delayed_pairs", str), Column("longest", "greatest_ps", time_ps)),
        *(Column("in truth", "delayed_pairs_exact", str), Column("longest", "greatest_ps_exact", time_ps)),
    ]
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
    drawn = layers(90, *_judged(rows), zoom=("x",))
    note = "Inference: colours are what the delays are."
    yield Chart("inference", "Delays as inferred", drawn, f"{said}.", note, rows, picture="delays")
    shown = [Column("inferred", "inferred"), Column("in truth", "truth", left=True), Column("delays", "count")]
    yield Table([*shown, Column("time", "time_ps", time_ps)], rows, said, sentence=f"{plural(total, 'delay')} judged.")


def _judged(rows: Sequence[Row]) -> Iterator[Layer]:
    """The delays by what the inference takes them for, in the colours of what they are."""
    places = Rows(DELAYS, labels=[["inferred:", kind] for kind in DELAYS])
    told = [
        Column("inferred", "inferred"),
        Column("in truth", "truth"),
        Column("delays", "count"),
        Column("time", "time_ps", time_ps),
    ]
    shown, tooltip = described(rows, told)
    placed, ends = [], dict.fromkeys(DELAYS, 0)
    for row in shown:
        begin = ends[row["inferred"]]
        ends[row["inferred"]] += row["count"]
        placed.append(places.place({**row, "begin": begin, "end": ends[row["inferred"]]}, row["inferred"]))
    axis = Axis.of([0, *(1.1 * end for end in ends.values())], "Delays", "count", scale="linear")
    yield bars(placed, axis, places, "begin", "end", color=colour("truth", DELAYS), tooltip=tooltip)
    totals = [places.place({"end": end, "text": f"{end:,}"}, kind) for kind, end in ends.items()]
    label = chart(totals).mark_text(style="text", align="left", dx=6)
    yield label.encode(x=axis.x("end"), y=places.y("at"), text="text:N")
