"""Measurements on a testbed beside predictions: W of each job, and the effects of treatments, agent and controller."""

from collections.abc import Iterator
from typing import Any

import altair
import polars as pl

from fairlane.core.statistics import COVERAGE
from fairlane.core.wording import plural, seconds, with_half_width
from fairlane.lab.testbed.results import Results
from fairlane.views.charts import Axis, Layer, colour, ends_of, layers, legend_of, rule, whiskers, with_tooltip
from fairlane.views.model import Chart, View
from fairlane.views.rows import Rows
from fairlane.views.tables import Column, Row, Table, change, columns, with_change

_KINDS = ("measured", "predicted")
_LEAST = 0.05
"""The smallest ratio that is drawn: an interval may reach below zero."""
_CHANGES = [Column(name, with_change(name)) for name in (*_KINDS, "difference")]
_JOB = Column("job", "job", left=True)


def view(results: Results) -> View:
    """Measured and predicted, as charts and as tables."""
    model, name = results.fit.model, results.file.name
    verdict = results.verdict
    fitted = f"{model.efficiency:.3f} of each rate, {seconds(model.overhead_s)} for each send and receive"
    return View(
        title=f"{name}: measured on a real network, and predicted",
        headline=f"W differs by {100 * verdict.most_difference:.1f} points at most ({verdict.most_different})",
        facts=[f"{name}: host model fitted on isolated runs only: {fitted}"],
        parts=[*_charts(results), *_tables(results)],
        remarks=[
            f"±: {COVERAGE:.0%} interval over repetitions (measured) and replicates (predicted).",
            *results.decisions,
            *results.costs,
            *verdict.lines(),
        ],
    )


def _charts(results: Results) -> Iterator[Chart]:
    yield _chart("w", "W: co-run against isolated", results.w, ratio=False)
    effects = results.effects
    for at, name in enumerate([] if effects is None else effects["treatment"].unique(maintain_order=True)):
        assert effects is not None, "invariant: it has names"
        yield _chart(f"treatment{at}", f"{name}: throughput over that without levels", effects.filter(treatment=name))
    others = {"agent": results.control, "controller": results.steered}
    for name, table in others.items():
        if table is not None:
            yield _chart(name, f"Levels of the {name}: throughput over that without levels", table)


def _chart(name: str, title: str, table: pl.DataFrame, *, ratio: bool = True) -> Chart:
    rows = table.to_dicts()
    places = Rows([row["job"] for row in rows], 2)
    worst = max(rows, key=lambda row: abs(row["difference"]))
    values = (change(worst[kind]) for kind in _KINDS)
    return Chart(
        name,
        title,
        layers(places.height, *_layers(rows, places, ratio=ratio), zoom=("x",)),
        f"The largest difference is that of {worst['job']}: {' measured, '.join(values)} predicted.",
        f"Circles: measured, means over repetitions; diamonds: predicted, over seeds. Bars: {COVERAGE:.0%} intervals.",
        rows,
        picture="testbed",
        wide=True,
    )


def _layers(rows: list[dict[str, Any]], places: Rows, *, ratio: bool) -> Iterator[Layer]:
    """Changes; as ratios on a logarithmic axis where effects of levels differ by orders of magnitude."""
    long = []
    for row in rows:
        for series, kind in enumerate(_KINDS):
            ends = {end: row[f"{kind}{end}"] for end in ("", "_low", "_high")}
            value = {f"value{end}": None if known is None else ratio + known for end, known in ends.items()}
            low = value["value_low"]
            value["value_low"] = max(low, _LEAST) if ratio and low is not None else low
            text = with_half_width(ends[""], ends["_low"], ends["_high"], change)
            long.append(places.place({"job": row["job"], "kind": kind, "shown": text, **value}, row["job"], series))
    values = ends_of(long)
    axis = (
        Axis.of([0.8, 1.25, *values], "Times the throughput", scale="log")
        if ratio
        else Axis.of([0.0, *values], "Change of throughput", "change", scale="linear")
    )
    base, tooltip = with_tooltip(long, [_JOB, Column("", "kind"), Column("change", "shown")])
    base = base.encode(y=places.y("at"), color=colour("kind", _KINDS))
    yield rule(float(ratio), axis, vertical=True)
    yield whiskers(base, axis, vertical=False)
    shape = altair.Shape(
        "kind:N", scale=altair.Scale(domain=list(_KINDS), range=["circle", "diamond"]), legend=legend_of(_KINDS)
    )
    yield base.mark_point().encode(x=axis.x("value"), shape=shape, tooltip=tooltip)


def _tables(results: Results) -> Iterator[Table]:
    def beyond(row: Row) -> str:
        return "" if not row["beyond_noise"] else "right" if row["sign_right"] else "wrong"

    fit = results.fit
    rows = [{"job": job, "measured": time, "simulated": fit.simulated_s[job]} for job, time in fit.measured_s.items()]
    times = columns(seconds, measured="measured", simulated="simulated")
    jobs = plural(len(rows), "job")
    yield Table(
        [_JOB, *times], rows, "Isolated: time per iteration", sentence=f"{jobs}, which the host model is fitted to."
    )
    title = "W: throughput change against the isolated run"
    yield Table([_JOB, *_CHANGES], results.w.to_dicts(), title, sentence=f"{jobs} together.")
    sign = Column("sign", beyond, left=True)
    note = "Sign: whether the predicted one is right, where the measured effect is beyond noise."
    level, treatment = Column("level", "level"), Column("treatment", "treatment", left=True)
    for table, source, first in (
        (results.effects, "service levels", [treatment, _JOB]),
        (results.control, "the agent", [_JOB]),
        (results.steered, "the controller", [_JOB]),
    ):
        if table is not None:
            shown = [*first, *_CHANGES, *([level] if "level" in table.columns else []), sign]
            noisy = table.filter(pl.col("beyond_noise").fill_null(value=False))
            said = f"{int(noisy['sign_right'].sum())} of {noisy.height} signs of effects beyond noise are right."
            yield Table(shown, table.to_dicts(), f"Improvement by {source}", note, sentence=said)
