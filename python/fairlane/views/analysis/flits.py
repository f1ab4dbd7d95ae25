"""Flits on links, in the co-run and isolated (Smith et al. 2018, Figure 9), and waits against them (Figure 8).

Beside the waits what only a simulator knows: how long the message was in flight, whether somebody waited for it or not.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import polars as pl

from fairlane.analysis import FLIT_BYTES, Analysis
from fairlane.engine.tables import PS
from fairlane.views.analysis.ranks import stretch
from fairlane.views.charts import Axis, Layer, chart, colour, described, drawing, rule
from fairlane.views.model import Chart
from fairlane.views.rows import Rows, boxes, dots, strips, whisker_words, whiskers_of
from fairlane.views.tables import Column, Row, columns, count, time_ps
from fairlane.wording import plural, seconds


def remarks(found: Analysis) -> Iterator[str]:
    """Waits and messages against flits, and the flits of all links, in words."""
    against = found.chosen.against
    for word, trend in (("waits last", against.waits), ("messages take", against.under_way)):
        if trend.low_p95 is not None and trend.high_p95 is not None:
            r = "" if trend.pearson is None else f"; Pearson's r {trend.pearson:.2f}"
            few, many = time_ps(trend.low_p95), time_ps(trend.high_p95)
            pairs = f"Of {against.points.height} pairs, by flits on the link between their switches"
            yield f"{pairs}: 95% of {word} at most {few} in the lowest quarter, {many} in the highest{r}."
    for one in found.stretches:
        flits = one.flits["flits"]
        quantiles = ", ".join(
            f"{name} {int(flits.quantile(at) or 0):,}" for name, at in (("median", 0.5), ("99%", 0.99))
        )
        total = f"{int(flits.sum()):,} ({quantiles}, max {int(flits.quantile(1) or 0):,})"
        yield f"Flits on all {plural(flits.len(), 'link')}, {one.span.name}: {total}."


def parts(found: Analysis) -> Iterator[Chart]:
    """Waits against flits, where pairs of ranks share a link of their group; the flits of all links by class."""
    yield from _against(found)
    classes = found.chosen.flits["class"].unique(maintain_order=True).to_list()
    places = Rows(classes, len(found.stretches))
    runs, flits = [one.span.name for one in found.stretches], pl.col("flits").cast(pl.Float64)
    every = pl.concat([one.flits.select(pl.lit(one.span.name).alias("run"), "class", flits) for one in found.stretches])
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
    yield Chart("flits", "Flits on the links", made, _load(found), note, every.to_dicts())


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


def _load(found: Analysis) -> str:
    totals = [int(one.flits["flits"].sum()) for one in found.stretches]
    if found.isolated is None:
        return f"The links carry {totals[0]:,} flits, {found.chosen.span.name}."
    ratio = totals[1] / max(totals[0], 1)
    return f"In the co-run the links carry {ratio:.2f} times the flits of the isolated run."


def _against(found: Analysis) -> Iterator[Chart]:
    against = found.chosen.against
    if against.waits.low_p95 is None:
        return
    measures = [
        ("flits-waits", "Waits against flits", "wait_ps", "Receiver's wait", "waits last", against.waits),
        ("flits-in-flight", "Messages against flits", "under_way_ps", "Message in flight", "messages take",
         against.under_way),
    ]  # fmt: skip
    pairs = f"{against.points.height} pairs of ranks, {stretch(found)}, without late partners"
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
