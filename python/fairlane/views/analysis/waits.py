"""Waits of ranks: their lengths, neighbours, causes, and the two-sided inference of them.

The longest wait of every rank is that of Smith et al. 2018, Figure 5, and the first exchange their Table I; waits
against flits are Figure 8, and flits on links Figure 9. Beside the waits is what only a simulator knows: how long the
message was in flight, whether somebody waited for it or not.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import polars as pl

from fairlane.core.tables import PS
from fairlane.core.wording import percent, plural, seconds
from fairlane.sim.analysis.delays import by_neighbour, confusion, table_one
from fairlane.sim.analysis.links import FLIT_BYTES
from fairlane.sim.analysis.result import Analysis, apart_from_collectives
from fairlane.views.analysis.ranks import DELAYS, stretch
from fairlane.views.charts import Axis, Layer, chart, colour, described, drawing, rule
from fairlane.views.model import Chart
from fairlane.views.rows import Rows, bars, boxes, dots, stacked_rows, strips, whisker_words, whiskers_of
from fairlane.views.tables import Column, Row, Table, columns, count, time_ps


def parts(analysis: Analysis) -> Iterator[Table | Chart]:
    """Waits by rank and by neighbour, delays, and the inference."""
    yield from _longest_waits(analysis)
    yield from _by_neighbour(analysis)
    yield from _first_exchange(analysis)
    yield from _inference(analysis)


def _longest_waits(analysis: Analysis) -> Iterator[Chart]:
    """A dot for each rank and stretch."""
    longest = [
        apart_from_collectives(part.delays)
        .group_by("rank")
        .agg(stretch=pl.lit(part.span.name), wait=pl.col("wait_ps").max() * PS)
        .sort("rank")
        for part in analysis.stretches
    ]
    rows = pl.concat(longest).to_dicts()
    if not rows:
        return
    mine = [row for row in rows if row["stretch"] == analysis.stretches[-1].span.name]
    worst = max(mine, key=lambda row: row["wait"], default=None)
    said = f"Rank {worst['rank']} waits longest, {seconds(worst['wait'])}." if worst else "No rank waits."
    note = f"Dashed: {seconds(analysis.threshold_ps * PS)}; longer waits are counted as delays."
    yield Chart("waits", "Longest wait of each rank", drawing(240, _waits(analysis, rows)), said, note, rows)


def _waits(analysis: Analysis, rows: Sequence[Row]) -> Iterator[Layer]:
    threshold = analysis.threshold_ps * PS
    rank = Axis.over(rows, "rank", "Rank", "count", scale="linear", zero=False)
    wait = Axis.of([threshold or None, *(row["wait"] or None for row in rows)], "Longest wait", "time")
    shown, tooltip = described(rows, [*columns(rank="rank", stretch="run"), Column("wait", "wait", seconds)])
    if threshold:
        yield chart([{"at": threshold}]).mark_rule(style="ink", strokeDash=[4, 3]).encode(y=wait.y("at"))
    dots = chart(shown).mark_point(size=30 if len(rows) <= 1024 else 12)
    names = [part.span.name for part in analysis.stretches]
    yield dots.encode(x=rank.x("rank"), y=wait.y("wait"), color=colour("stretch", names), tooltip=tooltip)


def _by_neighbour(analysis: Analysis) -> Iterator[Table | Chart]:
    delays = analysis.point_to_point
    known = by_neighbour(delays).filter(pl.col("neighbour").is_not_null()).to_dicts()
    if known:
        whose = "messages of collectives" if bool(delays["collective"].all()) else "point-to-point messages"
        note = f"Waits on {whose}, {stretch(analysis)}."
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
    every = by_neighbour(analysis.chosen.delays).to_dicts()
    if every:
        yield _neighbours(analysis, every)


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


def _neighbours(analysis: Analysis, rows: Sequence[Row]) -> Table:
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
    return Table(shown, rows, f"Waits by neighbour, {stretch(analysis)}", sentence=said)


def _first_exchange(analysis: Analysis) -> Iterator[Table]:
    """Table I of the paper, by the inference and in truth."""
    chosen = analysis.chosen.pairs.filter(~pl.col("eager"))
    if chosen.is_empty():
        return
    exact = table_one(chosen, analysis.threshold_ps, by="truth")
    rows = table_one(chosen, analysis.threshold_ps).join(exact, on=["neighbour", "delay"], suffix="_exact")
    shown = [*columns(neighbour="neighbour", pairs="pairs"), Column("because of", "delay", left=True)]
    for whose, suffix in (("inferred", ""), ("in truth", "_exact")):
        shown += [Column(whose, f"delayed_pairs{suffix}", str), Column("longest", f"greatest_ps{suffix}", time_ps)]
    title = f"Delays over {time_ps(analysis.threshold_ps)} at the first exchange of each ordered pair of ranks"
    sums = [int(rows[key].sum()) for key in ("delayed_pairs", "delayed_pairs_exact")]
    yield Table(shown, rows.to_dicts(), title, sentence=f"{sums[0]} delays as inferred, {sums[1]} in truth.")


def _inference(analysis: Analysis) -> Iterator[Table | Chart]:
    table = confusion(analysis.point_to_point)
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


def remarks(analysis: Analysis) -> Iterator[str]:
    """Waits and messages against flits, and the flits of all links, in words."""
    against = analysis.chosen.against
    for word, trend in (("waits last", against.waits), ("messages take", against.under_way)):
        if trend.low_p95 is not None and trend.high_p95 is not None:
            r = "" if trend.pearson is None else f"; Pearson's r {trend.pearson:.2f}"
            few, many = time_ps(trend.low_p95), time_ps(trend.high_p95)
            pairs = f"Of {against.points.height} pairs, by flits on the link between their switches"
            yield f"{pairs}: 95% of {word} at most {few} in the lowest quarter, {many} in the highest{r}."
    for part in analysis.stretches:
        flits = part.flits["flits"]
        quantiles = ", ".join(
            f"{name} {int(flits.quantile(at) or 0):,}" for name, at in (("median", 0.5), ("99%", 0.99))
        )
        total = f"{int(flits.sum()):,} ({quantiles}, max {int(flits.quantile(1) or 0):,})"
        yield f"Flits on all {plural(flits.len(), 'link')}, {part.span.name}: {total}."


def flits(analysis: Analysis) -> Iterator[Chart]:
    """Waits against flits, where pairs of ranks share a link of their group; the flits of all links by class."""
    yield from _against(analysis)
    classes = analysis.chosen.flits["class"].unique(maintain_order=True).to_list()
    places = Rows(classes, len(analysis.stretches))
    runs, flits = [part.span.name for part in analysis.stretches], pl.col("flits").cast(pl.Float64)
    every = pl.concat(
        [part.flits.select(pl.lit(part.span.name).alias("run"), "class", flits) for part in analysis.stretches]
    )
    groups = [
        ({"run": run, "class": name, "links": values.len()}, values.to_numpy(), name, series)
        for series, run in enumerate(runs)
        for name in classes
        for values in [every.filter(pl.col("run") == run, pl.col("class") == name)["flits"]]
    ]
    whiskers = whiskers_of(max(len(values) for _, values, *_ in groups))
    boxed, beyond = strips(groups, places, whiskers, field="flits", reach=0.0, beyond=True)
    axis = Axis.of(
        (float(values.max()) for _, values, *_ in groups), f"Flits of {FLIT_BYTES} bytes on a link", scale="linear"
    )
    made = drawing(places.height, _boxes(boxed, beyond, runs, axis, places), zoom=("x",))
    note = f"All jobs. Boxes: quartiles and median; whiskers: {whisker_words(whiskers)}; dots: links beyond."
    yield Chart("flits", "Flits on the links", made, _load(analysis), note, every.to_dicts())


def _boxes(
    boxed: Sequence[Row], beyond: Sequence[Row], runs: Sequence[str], axis: Axis, places: Rows
) -> Iterator[Layer]:
    who = columns(run="run", **{"class": "class"})
    numbers = columns(_whole, low="whisker", q1="25%", median="median", q3="75%", high="whisker")
    shown, tooltip = described(boxed, [*who, Column("links", "links"), *numbers])
    yield boxes(shown, axis, places, color=colour("run", runs), tooltip=tooltip)
    if beyond:
        outer, tooltip = described(beyond, [*who, Column("flits", "flits", _whole)])
        yield dots(outer, axis, places, "flits", color=colour("run", runs), tooltip=tooltip)


def _whole(value: float) -> str:
    return count(round(value))


def _load(analysis: Analysis) -> str:
    totals = [int(part.flits["flits"].sum()) for part in analysis.stretches]
    if analysis.isolated is None:
        return f"The links carry {totals[0]:,} flits, {analysis.chosen.span.name}."
    ratio = totals[1] / max(totals[0], 1)
    return f"In the co-run the links carry {ratio:.2f} times the flits of the isolated run."


def _against(analysis: Analysis) -> Iterator[Chart]:
    against = analysis.chosen.against
    if against.waits.low_p95 is None:
        return
    measures = [
        ("flits-waits", "Waits against flits", "wait_ps", "Receiver's wait", "waits last", against.waits),
        ("flits-in-flight", "Messages against flits", "under_way_ps", "Message in flight", "messages take",
         against.under_way),
    ]  # fmt: skip
    pairs = f"{against.points.height} pairs of ranks, {stretch(analysis)}, without late partners"
    for name, title, key, label, word, trend in sorted(measures, key=lambda measure: not measure[-1].high_p95):
        if not against.points[key].max():
            continue  # as where no receiver waited
        few, many = time_ps(trend.low_p95), time_ps(trend.high_p95)
        said = f"95% of {word} at most {few} where flits are few, {many} where they are many."
        known = against.points.drop_nulls(key).with_columns(pl.col("neighbour").cast(pl.String), time=pl.col(key) * PS)
        rows = known.to_dicts()
        note = f"{pairs}. Lines: quarters of the pairs by flits."
        made = drawing(260, _scatter(rows, against.points["flits"].to_numpy(), label))
        yield Chart(name, title, made, said, note, rows, picture="flits-waits")


def _scatter(rows: Sequence[Row], flits: np.ndarray[Any, Any], label: str) -> Iterator[Layer]:
    x = Axis.of(map(float, flits), "Flits on the link between the two switches", scale="linear")
    y = Axis.over(rows, "time", label, "time", scale="linear", also=[0.0])
    told = [*columns(from_rank="from rank", to_rank="to rank", neighbour="neighbour"), Column("flits", "flits", _whole)]
    shown, tooltip = described(rows, [*told, Column(label.lower(), "time", seconds)])
    for bound in np.quantile(flits, [0.25, 0.75]):
        yield rule(float(bound), x, vertical=True, style="muted")
    names = list(dict.fromkeys(row["neighbour"] for row in rows))
    mark = chart(shown).mark_point(size=26 if len(rows) <= 1000 else 10, opacity=0.55)
    yield mark.encode(x=x.x("flits"), y=y.y("time"), color=colour("neighbour", names), tooltip=tooltip)
