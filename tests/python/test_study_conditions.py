"""Cases and parameters of a study are shown apart, in its tables and charts."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from itertools import product
from typing import Any

import polars as pl
import pytest
from rich.console import Console
from scipy import stats

from fairlane.cli.terminal import show
from fairlane.core.wording import number, percent, seconds
from fairlane.results.study import StudyMeta, StudyResults
from fairlane.study.conditions import condition_of, shown, varied, with_condition
from fairlane.study.replicates import EFFECTS, PACE
from fairlane.views.kinds import view_of
from fairlane.views.model import Chart

MS = 1e-3
ENDS = ("_low", "_high")
FABRICS = {"tree": 2.0, "torus": 4.0, "dragonfly": 3.0}


def results(rows: list[dict[str, Any]], treatments: list[str], placements: list[str] | None = None) -> StudyResults:
    """Rows have the condition's columns and ``seconds_per_iteration``; the rest is filled in."""
    filled = [
        {
            "point": at,
            "case": None,
            **{key: it for key, it in row.items() if key in ("case", *PARAMETERS)},
            "placement": row.get("placement", 0),
            "seed": row.get("seed", 1),
            "baseline": "",
            "treatment": row.get("treatment", "default"),
            "job": row.get("job", 0),
            "name": f"job-{row.get('job', 0)}",
            "workload": row.get("workload", "lu"),
            "seconds_per_iteration": row["seconds"],
            "iterations_per_second": 1 / row["seconds"],
            "w": row.get("w", 0.0),
            "improvement": row.get("improvement"),
            **{f"{name}{end}": None for name in (*PACE, *EFFECTS) for end in ENDS},
            "ten_iterations_ps": row.get("ten_iterations_ps"),
            "stop_ps": row.get("stop_ps"),
        }
        for at, row in enumerate(rows)
    ]
    schema = {
        "case": pl.String,
        "w": pl.Float64,
        "improvement": pl.Float64,
        **{f"{name}{end}": pl.Float64 for name in (*PACE, *EFFECTS) for end in ENDS},
        "ten_iterations_ps": pl.UInt64,
        "stop_ps": pl.UInt64,
    }
    work = pl.DataFrame(filled, schema_overrides=schema)
    points = work.select("case", *[name for name in PARAMETERS if name in work.columns], "placement", "seed")
    numbers: dict[tuple[Any, ...], int] = {}
    work = work.with_columns(point=pl.Series([numbers.setdefault(row, len(numbers)) for row in points.iter_rows()]))
    work = work.with_columns(same_as=pl.col("point"))
    meta = StudyMeta(
        version="0",
        study="made-up",
        digest="",
        points=work["point"].n_unique(),
        runs=1,
        simulations=1,
        failures=0,
        treatments=treatments,
        placements=placements or ["random"],
        wall_s=1.0,
        started=datetime(2024, 1, 1, tzinfo=UTC),
        profile={},
    )
    return StudyResults(meta, runs=pl.DataFrame(), work=work, periods=pl.DataFrame(), failures=pl.DataFrame())


PARAMETERS = ("fabric.leaf_up", "jobs[0].placement")


def printed(found: StudyResults, width: int = 200) -> list[str]:
    console = Console(file=io.StringIO(), width=width)
    show([view_of([found])], console)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue().splitlines()


def picture(found: StudyResults, name: str) -> list[Chart]:
    """The charts of a picture; none if there is nothing to show in it."""
    return view_of([found]).pictures.get(name, [])


def rows_of(chart: Chart) -> list[dict[str, Any]]:
    """What a chart shows."""
    return [dict(row) for row in chart.data]


def means(chart: Chart) -> dict[str, dict[str, Any]]:
    """The means of a chart of conditions by label."""
    return {row["label"]: row for row in rows_of(chart) if row["job"] is None}


@pytest.fixture
def fabrics() -> StudyResults:
    """One job on three fabrics with two seeds: nothing is beside it."""
    rows = [
        {"case": case, "seed": seed, "seconds": (ms + 0.2 * seed) * MS}
        for case, ms in FABRICS.items()
        for seed in (1, 2)
    ]
    return results(rows, [])


def test_a_comparison_of_fabrics_shows_each_of_them(fabrics: StudyResults) -> None:
    lines = printed(fabrics)
    # Means of two seeds: 2.3, 4.3, 3.3 ms; with them the iterations in a second.
    for case, ms, rate in [("tree", "2.30", "436"), ("torus", "4.30", "233"), ("dragonfly", "3.30", "303")]:
        row = next(line.split() for line in lines if line.startswith(case))
        assert row == [case, "lu", "2", ms, "ms", rate]
    by_seed = lines[lines.index(next(line for line in lines if line.startswith("By seed"))) :]
    assert [line.split()[-3:] for line in by_seed if line.rstrip().endswith("ms")] == [
        [str(seed), f"{ms + 0.2 * seed:.2f}", "ms"] for ms in FABRICS.values() for seed in (1, 2)
    ]
    assert not any(" W" in line.split("W:")[0] for line in lines[:4]), "one job has nobody to be slowed down by"
    assert any("one job, so there is no W" in line for line in lines)


def test_the_figure_of_a_comparison_of_fabrics_has_them_all(fabrics: StudyResults) -> None:
    assert picture(fabrics, "work") == [], "there is no W, and no treatment"
    (chart,) = picture(fabrics, "conditions")
    assert chart.sentence == "Mean time per iteration from 2.30 ms (tree) to 4.30 ms (torus)."
    assert list(means(chart)) == list(FABRICS)
    dots = sorted(row["value"] for row in rows_of(chart) if row["job"] is not None)
    assert dots == pytest.approx(sorted((ms + 0.2 * seed) * MS for ms in FABRICS.values() for seed in (1, 2)))


def student(values: Sequence[float]) -> tuple[float, float]:
    """The mean of independent values, and half the width of its 95% interval."""
    mean = sum(values) / len(values)
    return mean, float(stats.ttest_1samp(values, 0).confidence_interval().high) - mean


def test_times_and_rates_have_intervals_over_placements() -> None:
    """Three placements with two seeds each: Student's interval of the placements' means, also in the figure."""
    times = {
        ("tree", 0): 2.0,
        ("tree", 1): 2.2,
        ("tree", 2): 2.7,
        ("torus", 0): 4.0,
        ("torus", 1): 4.0,
        ("torus", 2): 4.3,
    }
    rows = [
        {"case": case, "placement": placement, "seed": seed, "seconds": (ms + 0.1 * seed) * MS}
        for (case, placement), ms in times.items()
        for seed in (1, 2)
    ]
    found = results(rows, [], ["a", "b", "c"])
    lines = printed(found)
    expected = {}
    for case in ("tree", "torus"):
        of_case = [ms for (name, _), ms in times.items() if name == case]
        mean, half = student([(ms + 0.15) * MS for ms in of_case])
        rate = student([sum(1 / ((ms + 0.1 * seed) * MS) for seed in (1, 2)) / 2 for ms in of_case])
        expected[case] = (mean, half)
        row = next(line for line in lines if line.startswith(case))
        assert f"{seconds(mean)} ± {seconds(half)}" in row
        assert f"{number(rate[0])} ± {number(rate[1])}" in row
    assert any("95% interval over placements" in line for line in lines)
    (chart,) = picture(found, "conditions")
    for case, (mean, half) in expected.items():
        drawn = means(chart)[case]
        assert (drawn["value_low"], drawn["value_high"]) == pytest.approx((mean - half, mean + half))


def test_intervals_of_single_runs_are_shown_where_there_is_room() -> None:
    rows = [{"seed": seed, "seconds": (1 + seed) * MS} for seed in (1, 2)]
    found = results(rows, [])
    pace = pl.col("seconds_per_iteration")
    work = found.work.with_columns(
        seconds_per_iteration_low=pace - 0.1 * MS, seconds_per_iteration_high=pace + 0.1 * MS
    )
    found = replace(found, work=work)
    assert sum("2.00 ms ± 100 µs" in line for line in printed(found)) == 1
    narrow = printed(found, width=20)
    assert not any("2.00 ms ± 100 µs" in line for line in narrow)
    assert any(line.split() == ["1", "2.00", "ms"] for line in narrow)


def test_runs_with_many_treatments_have_a_row_each_where_there_is_no_room() -> None:
    names = ["default", *(f"treatment-{number}" for number in range(6))]
    rows = [
        {"placement": placement, "job": job, "treatment": name, "seconds": (1 + placement + number) * MS}
        for placement in (0, 1)
        for number, name in enumerate(names)
        for job in (0, 1)
    ]
    lines = [line.split() for line in printed(results(rows, names[1:], ["first", "second"]), width=70)]
    begin = lines.index(["By", "placement"])
    assert ["first", "default", "1.00", "ms", "0.0%"] in lines[begin:]
    assert ["treatment-5", "7.00", "ms", "0.0%"] in lines[begin:]
    assert ["second", "default", "2.00", "ms", "0.0%"] in lines[begin:]


def test_treatments_and_co_running_jobs_are_shown_by_condition() -> None:
    rows = [
        {"fabric.leaf_up": up, "placement": placement, "job": job, "treatment": run, "workload": f"w{job}"}
        | {"seconds": up * MS, "w": -0.1 * up - 0.01 * job, "improvement": 0.02 * up if run != "default" else None}
        for up, placement, job, run in product((1, 2), (0, 1), (0, 1), ("default", "own"))
    ]
    found = results(rows, ["own"], ["random", "packed"])
    lines = printed(found)
    own = [line.split() for line in lines if line.split()[:1] == ["own"]][:4]
    assert [row[-3:] for row in own] == [["+2.0%"] * 3] * 2 + [["+4.0%"] * 3] * 2
    assert [line.split()[:3] for line in lines if "default" in line and "w0" in line] == [
        ["1", "w0", "default"],
        ["2", "w0", "default"],
    ]
    assert sum("packed" in line for line in lines) == 2
    charts = picture(found, "conditions")
    assert [chart.name for chart in charts] == ["conditions_time", "conditions_w", "conditions_improvement"]
    words = "Mean W from −20.5% (2) to −10.5% (1)"
    assert {chart.headline for chart in charts} == {words}
    assert [chart.sentence for chart in charts[1:]] == [
        f"{words}.",
        "Mean improvement from +2.0% (1, own) to +4.0% (2, own).",
    ]
    assert list(means(charts[0])) == ["w0, 1", "w0, 2", "w1, 1", "w1, 2"], "two workloads"


def test_means_of_w_have_intervals_over_their_boxes() -> None:
    changes = {0: -0.1, 1: -0.2, 2: -0.4}
    rows = [
        {"placement": placement, "job": job, "seconds": MS, "w": w + 0.02 * job, "workload": "lu"}
        for placement, w in changes.items()
        for job in (0, 1)
    ]
    found = results(rows, [], ["a", "b", "c"])
    mean, half = student([w + 0.01 for w in changes.values()])
    assert view_of([found]).headline == f"Mean W of co-running jobs: {percent(mean, signed=True)} ± {percent(half)}"
    (boxes,) = picture(found, "work")
    (box,) = rows_of(boxes)
    assert (box["value_low"], box["value_high"]) == pytest.approx((mean - half, mean + half))


def test_many_conditions_are_shown_parameter_by_parameter() -> None:
    kinds = ['{"name": "packed"}', '{"name": "random", "ranks_per_host": 4}']
    rows = [
        {"fabric.leaf_up": up, "jobs[0].placement": kind, "seconds": up * MS} for up in range(1, 10) for kind in kinds
    ]
    found = results(rows, [])
    assert varied(found.work) == list(PARAMETERS)
    assert len(with_condition(found.work)[1]) == 18
    (chart,) = picture(found, "conditions")
    kinds_in_words = ["packed", "random, ranks_per_host 4"]
    labels = [*(f"fabric.leaf_up: {up}" for up in range(1, 10)), *(f"jobs[0].placement: {it}" for it in kinds_in_words)]
    assert list(means(chart)) == labels


def test_conditions_are_said_in_words() -> None:
    assert condition_of({"case": "tree"}) == "tree"
    assert condition_of({"fabric.leaf_up": 4, "network.switch_latency": "1 us"}) == "leaf_up 4, switch_latency 1 us"
    assert condition_of({"case": "tree", "a.x": 1, "b.x": 2}) == "tree, a.x 1, b.x 2"
    assert shown('["115 W", 3.5, true]') == "[115 W, 3.5, true]"
    assert shown("{not json") == "{not json"


def test_there_is_no_mean_time_over_runs_that_were_too_slow_for_one(fabrics: StudyResults) -> None:
    """The mean of those that were fast enough would make the slowest fabric the fastest."""
    slow = pl.col("case") == "torus"
    work = fabrics.work.with_columns(
        pl.when(~slow | (pl.col("seed") == 1)).then(name).alias(name)
        for name in ("seconds_per_iteration", "iterations_per_second")
    )
    found = replace(fabrics, work=work)
    lines = printed(found)
    assert next(line.split() for line in lines if line.startswith("torus"))[:5] == ["torus", "lu", "2", "–", "–"]
    text = " ".join(lines)
    assert "1 of 6 runs of a job has fewer than two iterations" in text
    (chart,) = picture(found, "conditions")
    assert "(torus)" not in chart.sentence
    assert "torus" not in means(chart)
    assert "There is no mean time" in chart.note


def test_rows_with_too_few_iterations_are_named() -> None:
    rows: list[dict[str, Any]] = [
        {"seed": seed, "job": job, "seconds": MS, "w": -0.1} for seed in (1, 2) for job in (0, 1)
    ]
    rows[1]["ten_iterations_ps"] = 12_300_000_000
    rows[2] |= {"w": None, "ten_iterations_ps": 40_000_000_000}
    text = "\n".join(printed(results(rows, [])))
    assert "Too few iterations for a reliable W: job-1, 1 of 4 default runs of a job; 10 take about 13 ms." in text
    assert "No W without a completed iteration: job-0, 1 of 4 default runs of a job; 10 take about 40 ms." in text
