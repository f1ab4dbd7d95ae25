"""GPCNeT: congestion impact factors by network test and transport, and the tables of the benchmark."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import altair
import polars as pl

from fairlane.core.statistics import COVERAGE, spread
from fairlane.core.tables import PS
from fairlane.core.wording import amount, number, plural, ratio, seconds, some
from fairlane.study.shipped.gpcnet.results import MEASURES, TESTS, Gpcnet
from fairlane.views.charts import Axis, Layer, colour, ends_of, hollow, layers, rule, whiskers, with_tooltip
from fairlane.views.model import Chart, View, lines_of, provenance_of, remarks_of, scenario_of, title_of, together
from fairlane.views.tables import Column, Estimated, Row, Table, interval_of, naming

PICTURES = {"gpcnet": "congestion impact factors by network test and transport"}
"""Its pictures, and what they show."""
_TABLES = {
    "isolated": "Isolated Network Tests",
    "congested": "Network Tests running with Congestion Tests",
    "impact": "Congestion Impact Factor",
}
"""The tables of the benchmark by our columns."""
_MEASURES = {"mean": "impact", "99%": "impact_p99"}
"""Columns of factors."""
_LOWEST = 0.8
"""The lower end of the axis, unless an interval reaches below it."""


def view(benchmarks: Mapping[str, Gpcnet]) -> View:
    """One benchmark, or several against each other."""
    rows = [{"benchmark": name, **row} for name, benchmark in benchmarks.items() for row in _written(benchmark)]
    return View(
        title=title_of(benchmarks, "GPCNeT"),
        headline="\n".join(lines_of(benchmarks, Gpcnet.headline)),
        facts=lines_of(benchmarks, _facts),
        parts=[*_charts(benchmarks, rows), *_tables(benchmarks, rows)],
        remarks=[_EXPLAINED, *remarks_of(benchmarks, _remarks)],
        provenance=provenance_of(benchmarks),
    )


def _written(benchmark: Gpcnet) -> Iterator[dict[str, Any]]:
    """The rows of ``impact`` with ``text``: each measure with its interval."""
    for row in benchmark.impact.iter_rows(named=True):
        of_test = benchmark.trials.filter(transport=row["transport"], test=row["test"])
        text = {}
        for name in MEASURES:
            value, low, high = (row[f"{name}{end}"] for end in ("", "_low", "_high"))
            measure = "p99" if name.endswith("_p99") else "mean"
            values = of_test.filter(pl.col("congested") == name.startswith("congested"))[measure].drop_nulls().to_list()
            if value is None:
                text[name] = "–"
            elif name.startswith("impact"):
                text[name] = ratio(value, low, high, lambda factor: f"{number(factor)}X")
            else:
                text[name] = amount(value, low, high, number, spread(values))
        yield {**row, "text": text}


def _facts(benchmark: Gpcnet) -> str:
    meta = benchmark.meta
    hosts, ranks, tested = meta["hosts"], meta["ranks_per_host"], meta["hosts_of_test"]
    return (
        f"{scenario_of(benchmark)}, {plural(hosts * ranks, 'rank')} on {plural(hosts, 'host')}: {tested} hosts with "
        f"Network Tests, {hosts - tested} with Congestion Tests, {plural(ranks, 'rank')} per host, "
        f"{plural(len(meta['seeds']), 'random assignment')} of hosts"
    )


_EXPLAINED = (
    "Avg, 99%: of the iterations of all ranks; of a bandwidth, 99% of the iterations reach it. Impact factor: "
    "congested over isolated; of a bandwidth, isolated over congested. ±, in brackets after factors: "
    f"{COVERAGE:.0%} interval over random assignments of hosts; none where all values are equal."
)


def _remarks(benchmark: Gpcnet) -> Iterator[str]:
    """Yield what was left out, and the weaknesses of the figures."""
    meta = benchmark.meta
    yield from (f"{transport} is left out: {reason}." for transport, reason in meta["left_out"].items())
    yield from benchmark.repeated()
    if len(meta["seeds"]) < 3:
        yield "Fewer than three replicates give no confidence interval: use --replicates 3 or more."
    wanted = {name: test.iterations(meta["iterations"]) for name, test in TESTS.items()}
    few = benchmark.trials.filter(pl.col("iterations") < pl.col("test").replace_strict(wanted))
    if few.height:
        names = sorted(
            f"{transport} {test}" for transport, test in few.select("transport", "test").unique().iter_rows()
        )
        after = seconds(meta["duration_ps"] * PS)
        yield f"Ended after {after} with fewer iterations: {some(names, 6)}. Use a longer --duration."
    if meta["partial"]:
        yield "Interrupted: replicates without both an isolated and a congested measurement are left out."


def _column(heading: str, key: str) -> Column:
    return Column(heading, Estimated(key, lambda row: str(row["text"][key])))


_NAME = [Column("transport", "transport", left=True), Column("Name", lambda row: TESTS[row["test"]].title, left=True)]


def _tables(benchmarks: Mapping[str, Gpcnet], rows: Sequence[Row]) -> Iterator[Table]:
    """The tables of the benchmark, with its names and units, for all transports."""
    for key, title in _TABLES.items():
        shown = [*naming(benchmarks, "benchmark"), *_NAME, _column("Avg", key), _column("99%", f"{key}_p99")]
        shown += [] if key == "impact" else [Column("Units", "unit", left=True)]
        trials = together(benchmarks, "benchmark", lambda benchmark: benchmark.trials)
        yield Table(shown, rows, title, sentence=_worst(rows, key), data=trials)


def _worst(rows: Sequence[Row], key: str) -> str:
    """The largest 99th percentile: of a factor, or of a latency."""
    known = [row for row in rows if row[f"{key}_p99"] is not None and (key == "impact" or row["test"] == "latency")]
    if not known:
        return "No 99th percentile was measured."
    row = max(known, key=lambda row: row[f"{key}_p99"])
    what = f"{TESTS[row['test']].title}, {row['transport']}"
    measure = "factor" if key == "impact" else "latency"
    return f"The largest {measure} of a 99th percentile: {row['text'][f'{key}_p99']}, {what}."


def _charts(benchmarks: Mapping[str, Gpcnet], rows: Sequence[Row]) -> Iterator[Chart]:
    known = [row for row in rows if row["impact"] is not None and row["impact_p99"] is not None]
    if not known:
        return
    shapes = " Circles, squares, triangles: the benchmarks, in order." if len(benchmarks) > 1 else ""
    yield Chart(
        "gpcnet",
        "Congestion impact factors",
        layers(300, *_impact(benchmarks, known), zoom=("y",)),
        _worst(rows, "impact"),
        f"Filled: mean; hollow: 99th percentile. Bars: {COVERAGE:.0%} intervals over assignments of hosts.{shapes}",
        [{key: value for key, value in row.items() if key != "text"} for row in known],
        wide=True,
    )


def _impact(benchmarks: Mapping[str, Gpcnet], rows: Sequence[Row]) -> Iterator[Layer]:
    marks = [
        {key: value for key, value in row.items() if key != "text"}
        | interval_of(row, key)
        | {"name": TESTS[row["test"]].title, "measure": measure}
        | {"series": f"{row['transport']} {row['benchmark']} {measure}"}
        | {f"text_{of}": row["text"][of] for of in _MEASURES.values()}
        for measure, key in _MEASURES.items()
        for row in rows
    ]
    axis = Axis.of([_LOWEST, 1.0, *ends_of(marks)], "Congestion impact factor", scale="log")
    factors = [Column(measure, f"text_{key}") for measure, key in _MEASURES.items()]
    base, tooltip = with_tooltip(marks, [*naming(benchmarks, "benchmark"), *_NAME, *factors])
    transports = list(dict.fromkeys(row["transport"] for row in rows))
    order = [f"{of} {name} {measure}" for of in transports for name in benchmarks for measure in _MEASURES]
    titles, gaps = [test.title for test in TESTS.values()], altair.Scale(paddingInner=0.3)
    x = altair.X("name:N", sort=titles, title=None, axis=altair.Axis(labelAngle=0), scale=gaps)
    base = base.encode(x=x, xOffset=altair.XOffset("series:N", sort=order, scale=altair.Scale(padding=0.5)))
    coloured = colour("transport", transports)
    yield rule(1.0, axis, vertical=False)
    yield whiskers(base.encode(color=coloured), axis, vertical=True)
    points = base.encode(y=axis.y("value"), shape=altair.Shape("benchmark:N", sort=list(benchmarks), legend=None))
    mean, tail = (points.transform_filter(f"datum.measure === '{measure}'") for measure in _MEASURES)
    yield hollow(tail, color=coloured, tooltip=tooltip)
    yield mean.mark_point().encode(color=coloured, tooltip=tooltip)
