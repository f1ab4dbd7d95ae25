"""Pages of studies, sweeps, schedules, reproductions and maps: their data agree with the tables; wrong input."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from matplotlib.figure import Figure

import fairlane
from fairlane.cli.main import execute
from fairlane.plot.boxes import draw_boxes, whiskers_of
from fairlane.report import data_of, page_of
from fairlane.report.page import has_echarts
from fairlane.report.reproduction.figures import figures_of
from fairlane.report.schedule.load import load_of
from fairlane.reproduce.figures import _scales
from fairlane.reproduce.folder import Panel
from fairlane.results import ResultsError
from fairlane.results.base import Results
from fairlane.results.reproduction import PanelData
from fairlane.results.schedule import hosts_as_text, hosts_of_text
from fairlane.views.packing import unpack
from report_kinds import map_results, reproduction, schedule
from report_runs import EVIL

needs_echarts = pytest.mark.skipif(not has_echarts(), reason="make build has not fetched ECharts")


def test_bars_of_a_schedule_cover_the_hosts_of_its_jobs() -> None:
    found = schedule()
    data = data_of(found)
    for at, name in enumerate(found.allocators["allocator"]):
        jobs = data["jobs"]["by_allocator"][at]
        size = unpack(jobs["bar_high"]).astype(int) - unpack(jobs["bar_low"])
        hosts = np.bincount(unpack(jobs["bar_job"]), size)
        rows = found.placed.filter(allocator=name).sort("start", "job")
        assert hosts.tolist() == rows["hosts"].to_list()
        assert unpack(jobs["start"]).tolist() == pytest.approx(rows["start"].to_list())
        assert jobs["left_out"] == 0
    assert data["jobs"]["patterns"] == ["hybrid", "unclear"]


def test_utilisation_over_time_sums_to_the_hosts_time_of_jobs() -> None:
    found = schedule()
    for line in load_of(found):
        of = found.placed.filter(allocator=line["allocator"])
        begin = found.placed["submit"].to_numpy().min()
        lengths = np.diff([begin, *line["at_s"]])
        busy = float(np.dot(line["utilisation"], lengths)) * found.meta.hosts
        assert busy == pytest.approx(((of["end"] - of["start"]) * of["hosts"]).sum(), rel=1e-3)
        waited = float(np.dot(line["waiting"], lengths))
        assert waited == pytest.approx((of["start"] - of["submit"]).sum(), rel=1e-3)


def test_distributions_of_a_schedule_are_those_of_its_jobs() -> None:
    found = schedule()
    lines = data_of(found)["distributions"]["wait"]
    waits = found.placed.filter(allocator="linear").select(wait=pl.col("start") - pl.col("submit"))["wait"].to_numpy()
    for value, above in zip(lines[0]["value"], lines[0]["above"], strict=True):
        assert above == pytest.approx((waits > value).mean(), abs=1 / len(waits) + 1e-3)


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


def test_verdicts_of_claims_are_counted_and_compared() -> None:
    here, there = reproduction(), reproduction(holds=False)
    data = data_of(here, there, "there")
    assert data["sentences"]["claims"] == "2 claims: 1 holds and 1 not run."
    assert data["sentences"]["numbers"] == "0 of 2 numbers are in their bands in every replicate, 0 in none."
    assert "a.throughput (does not hold there, holds here)" in data["compare"]["sentence"]
    assert data_of(here, here, "x")["compare"]["sentence"] == "All 2 claims that both have got the same verdict."
    assert data["map"]["clauses"][0]["decided_by"] == "buffer"


def test_figures_of_a_paper_have_their_rows_and_boxes_their_quantiles() -> None:
    figures = {one["id"]: one["panels"][0] for one in data_of(reproduction())["figures"]}
    assert figures["lines"]["columns"]["rate"] == [0.1, 0.4, 0.5, 0.1, 0.5, 0.8] * 2
    box = figures["box"]["columns"]
    assert len(box["q2"]) == 3 * 2 * 2  # loads, routings, kinds of traffic
    assert box["q0"][0] == box["q2"][0] == box["q4"][0] == 0.1


def results_of_every_kind() -> list[tuple[Results, dict[str, Any]]]:
    """Results, and what their page contains."""
    every: list[Results] = [
        schedule(),
        reproduction(),
        map_results(),
    ]
    return [(one, data_of(one, one, "itself")) for one in every]


@needs_echarts
def test_pages_of_every_kind_are_closed_and_small() -> None:
    for results, data in results_of_every_kind():
        page = page_of(results, results, compare_name="itself")
        assert len(page) < 5_000_000
        assert len(re.findall("<script", page)) == len(re.findall("</script", page)) == 4
        text = page.partition('id="data">')[2].partition("</script>")[0]
        assert json.loads(text)["meta"]["title"] == data["meta"]["title"]
        assert EVIL not in page
        assert data["compare"]["meta"]["provenance"]


def test_every_sentence_is_one() -> None:
    for _, data in results_of_every_kind():
        sentences = data["map"]["sentences"] if "sentences" not in data else data["sentences"]
        assert len(sentences) >= 2
        for name, words in sentences.items():
            assert words, name
            assert words.endswith("."), name
            assert re.search(r"\d|No ", words), name


def test_results_of_other_kinds_and_folders_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert execute(["report", str(tmp_path / "none")]) == 2
    assert "none: " in capsys.readouterr().err
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / "claims.csv").write_text("claim\n")
    assert execute(["report", str(tmp_path / "old")]) == 2
    assert "reproduction.json: is missing: an earlier version of fairlane" in capsys.readouterr().err
    claimless = replace(reproduction(), meta=reproduction().meta.model_copy(update={"claims": []}))
    with pytest.raises(fairlane.ScenarioError, match=r"--compare = \"x\": has no claim of a; allowed: "):
        data_of(reproduction(), claimless, "x")


@pytest.mark.parametrize(("count", "words"), [(9, "within 1.5 interquartile ranges"), (120, "1% and 99%")])
def test_boxes_of_a_page_are_those_of_the_picture(count: int, words: str) -> None:
    """Both take their whiskers from ``whiskers_of``: a value far out is beyond the whisker of few values, too."""
    [figure] = [one for one in reproduction().figures if one.file == "box"]
    [panel] = figure.panels
    values = [*np.linspace(1.0, 2.0, count - 1).tolist(), 50.0]
    look = {**panel.look, "column": None, "row": None, "series": None, "x": "x", "y": "y", "lines": [], "x_lines": []}
    columns = {"x": ["a"] * count, "y": values}
    [shown] = figures_of([figure.model_copy(update={"panels": [PanelData(look=look, columns=columns)]})])
    found = {name: column[0] for name, column in shown["panels"][0]["columns"].items()}
    assert words in found["whiskers"]
    figure_ = Figure()
    axes = figure_.subplots()
    draw_boxes(axes, [np.array(values)], ["red"], whiskers=whiskers_of(count))
    ends = np.sort(np.concatenate([np.asarray(line.get_ydata(), float) for line in axes.lines]))
    assert [ends[0], ends[-1]] == pytest.approx([found["q0"], found["q4"]], rel=1e-4)
    assert found["q4"] < 50.0


@pytest.mark.parametrize(("scale", "far"), [("auto", 3), ("auto", 30), ("auto", 1), ("log", 1), ("zero", 30)])
def test_axes_of_a_page_are_logarithmic_where_those_of_the_picture_are(scale: str, far: int) -> None:
    """Of twenty values ``far`` are a hundred times the others: the quartiles of the box say nothing of them."""
    [figure] = [one for one in reproduction().figures if one.file == "box"]
    look = figure.panels[0].look | {"series": None, "x": "x", "y": "y", "lines": [], "x_lines": [], "y_scale": scale}
    wide = [*np.linspace(1.0, 2.0, 40 - far).tolist(), *[150.0] * far]
    values = {"wide": wide, "narrow": np.linspace(1.0, 2.0, 40).tolist()}
    columns = {"of": ["wide"] * 40 + ["narrow"] * 40, "x": ["a"] * 80, "y": [*values["wide"], *values["narrow"]]}
    panel = PanelData(look=look | {"column": "of", "row": None}, columns=columns)
    [shown] = figures_of([figure.model_copy(update={"panels": [panel]})])
    drawn = []
    for name, of in values.items():
        axes = Figure().subplots()
        _scales(axes, Panel.model_construct(**look), pl.Series(of))
        drawn += [[None, name]] if axes.get_yscale() == "log" else []
    assert shown["panels"][0]["logarithmic"] == drawn
    assert ([name for _, name in drawn] == ["wide"]) == (scale == "auto" and far > 2)
