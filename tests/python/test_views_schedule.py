"""Views of schedules: bars, loads and distributions agree with the tables; jobs are found in every panel; folders."""

from __future__ import annotations

import csv
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import fairlane
from fairlane.cli.main import execute
from fairlane.core.errors import ResultsError
from fairlane.learn.scheduler.compare import BOUND_S
from fairlane.results.schedule import hosts_as_text, hosts_of_text
from fairlane.views.kinds import view_of
from fairlane.views.schedule import gantt
from fairlane.views.schedule.jobs import above, by_size, jobs_of, load_of
from report_kinds import schedule
from report_runs import EVIL


def tables(*every: Any, **options: Any) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The bars of the chart, and what it says of jobs, as its browser reads them."""
    [chart] = [one for one in view_of(every, ["a", "b"][: len(every)], **options).charts if one.name == "gantt"]
    texts = [one for one in chart.spec.to_dict(validate=False)["datasets"].values() if isinstance(one, str)]
    found = {text.split(",")[1]: pl.DataFrame([*csv.DictReader(StringIO(text))]) for text in texts}
    return found["low"], found["label"]


def test_bars_cover_the_hosts_of_jobs_while_they_run() -> None:
    found = schedule()
    bars, jobs = tables(found)
    numbers = ("low", "high", "begin", "end")
    bars = bars.with_columns(pl.col(numbers).cast(pl.Float64)).with_columns(hosts=pl.col("high") - pl.col("low"))
    per_job = bars.group_by("id").agg(pl.col("hosts").sum() * 16 / gantt.PANEL, pl.col("begin", "end").first())
    drawn = per_job.join(jobs.select("id", "label"), on="id").join(bars.select("id", "job").unique(), on="id")
    assert drawn.height == found.placed.height
    rows = {(row["allocator"], str(row["job"])): row for row in found.placed.iter_rows(named=True)}
    for row in drawn.iter_rows(named=True):
        placed = rows[row["label"], row["job"]]
        assert row["hosts"] == pytest.approx(placed["hosts"])
        assert [row["begin"] * 3600, row["end"] * 3600] == pytest.approx([placed["start"], placed["end"]], abs=0.2)
    for name, panel in (("linear", 1), (EVIL, 0)):
        of = bars.filter(pl.col("id").is_in(jobs.filter(label=name)["id"].implode()))
        bottom = panel * (gantt.PANEL + gantt.GAP)
        assert of.select(pl.col("low").min(), pl.col("high").max()).row(0) == (bottom, bottom + gantt.PANEL)


def test_of_many_jobs_the_longest_have_bars(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gantt, "MOST_BARS", 20)
    found = schedule()
    bars, _ = tables(found)
    assert 10 < bars.height <= 20
    left = 24 - bars["id"].n_unique()
    [chart] = [one for one in view_of([found]).charts if one.name == "gantt"]
    assert f" {left} jobs of at most " in chart.note
    shortest = min(float(row["end"]) - float(row["begin"]) for row in bars.to_dicts()) * 3600
    lasts = (found.placed["end"] - found.placed["start"]).sort()
    assert shortest == pytest.approx(lasts[left], abs=1)


def test_several_schedules_have_panels_in_one_chart() -> None:
    _, jobs = tables(schedule(), schedule(late=50))
    assert jobs["label"].unique(maintain_order=True).to_list() == [
        f"{name}: {allocator}" for name in "ab" for allocator in ("linear", EVIL)
    ]
    names = {one.name: one for one in view_of([schedule(), schedule(late=50)], ["a", "b"]).charts}
    assert names["wait"].frame is not None
    assert {*names["wait"].frame["schedules"]} == {"a", "b"}


@pytest.mark.parametrize(
    ("window", "shown"), [(None, (0.0, 6180.0)), ((600.0, 1800.0), (600.0, 1800.0)), ((600.0, 9e5), (600.0, 9e5))]
)
def test_hours_are_those_that_are_asked_for(window: tuple[float, float] | None, shown: tuple[float, float]) -> None:
    found = schedule()
    [chart] = [one for one in view_of([found], window=window).charts if one.name == "gantt"]
    values = {one["name"]: one.get("value") for one in chart.spec.to_dict(validate=False)["params"]}
    assert values["gantt_begin"] * 3600 == pytest.approx(shown[0])
    assert (values["gantt_begin"] + values["gantt_span"]) * 3600 == pytest.approx(shown[1])


def test_the_busiest_hours_of_a_long_schedule_are_shown_first() -> None:
    found = schedule()
    late = found.placed.with_columns(pl.col("submit", "start", "end") + 200 * 3600.0)
    alone = found.placed.head(1)
    quiet = replace(found, placed=pl.concat([alone, late.filter(pl.col("job") > 1)]))
    begin, end = gantt._busiest(quiet.placed.filter(allocator="linear"))
    assert end - begin == gantt.WINDOW_H
    assert begin <= 200
    assert end >= 201.7


def test_utilisation_over_time_sums_to_the_hosts_time_of_jobs() -> None:
    found = schedule()
    rows = load_of(found)
    for name in found.allocators["allocator"]:
        of, line = found.placed.filter(allocator=name), rows.filter(allocator=name)
        begin = found.placed["submit"].to_numpy().min() / 3600
        lengths = np.diff([begin, *line["until_h"]]) * 3600
        busy = float(np.dot(line["utilisation"], lengths)) * found.meta.hosts
        assert busy == pytest.approx(((of["end"] - of["start"]) * of["hosts"]).sum(), rel=1e-3)
        waited = float(np.dot(line["waiting"], lengths))
        assert waited == pytest.approx((of["start"] - of["submit"]).sum(), rel=1e-3)


def test_distributions_are_those_of_jobs() -> None:
    found = schedule()
    lines = above(jobs_of({"": found}), "wait").filter(allocator="linear")
    waits = found.placed.filter(allocator="linear").select(wait=pl.col("start") - pl.col("submit"))["wait"].to_numpy()
    for value, share in lines.select("value", "above").iter_rows():
        assert share == pytest.approx((waits > value).mean(), abs=1 / len(waits) + 1e-3)


def test_means_by_size_are_those_of_the_metrics() -> None:
    found = schedule()
    rows = by_size(jobs_of({"": found}))
    assert rows.filter(allocator="linear")["size"].to_list() == ["2 to 3", "4 to 7", "8 to 15", "16 to 31"]
    for name, wait, slowed in found.allocators.select("allocator", "mean_wait", "mean_bounded_slowdown").iter_rows():
        of = rows.filter(allocator=name)
        assert np.average(of["wait"], weights=of["jobs"]) == pytest.approx(wait)
        assert np.average(of["bounded_slowdown"], weights=of["jobs"]) == pytest.approx(slowed)
    assert found.placed["run"].to_numpy().min() > BOUND_S


def test_the_jobs_that_wait_longest_are_rows_and_a_chosen_one_is_found_in_the_bars(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("fairlane.views.schedule.MOST_JOBS", 5)
    view = view_of([schedule()])
    table = view.tables[-1]
    waits = [row["wait"] for row in table.rows if row]
    assert (len(waits), table.title) == (5, "The 5 longest waits")
    assert waits == sorted(waits, reverse=True)
    csv_of = {one.name: one.frame for one in view.charts}["gantt"]
    assert csv_of is not None
    for chart in view.charts:
        rows = chart.spec.to_dict().get("usermeta", {}).get("rows")
        assert rows in (None, {"chart": "gantt", "field": "job"})
        assert rows or chart.name in ("gantt", "allocators")


def test_a_schedule_is_stored_and_read_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = Path(__file__).parents[1] / "data" / "jobs" / "nasa-ipsc-1993-first-400.swf.gz"
    folder = tmp_path / "schedules"
    arguments = ["schedule", str(log), "--set", "sides=[8,16]", "--jobs", "30", "--allocator", "linear", "--quiet"]
    assert execute([*arguments, "--results", str(folder)]) == 0
    found = fairlane.load(folder)
    assert found.query("SELECT count(*) AS n FROM placed")["n"].item() == 30
    capsys.readouterr()
    assert execute([*arguments, "--results", str(folder)]) == 2
    assert '--results = "' in capsys.readouterr().err
    assert {file.name for file in folder.iterdir()} == {
        *("allocators.parquet", "placed.parquet", "schedule.json", "manifest.json")
    }
    (folder / "placed.parquet").write_bytes(b"x")
    with pytest.raises(ResultsError, match=r"placed.parquet: has changed since it was written"):
        fairlane.load(folder)


def test_hosts_are_written_as_ranges() -> None:
    assert hosts_as_text([8, 3, 2, 1]) == "1-3,8"
    assert hosts_of_text("1-3,8") == [1, 2, 3, 8]
