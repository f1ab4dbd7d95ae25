"""Pages of studies: their data agree with the tables; wrong input."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import fairlane
from fairlane.cli.main import execute
from fairlane.report import data_of, page_of
from fairlane.report.packing import unpack
from fairlane.report.page import has_echarts
from fairlane.results import StudyResults
from fairlane.results.base import Results
from fairlane.statistics import SPREAD
from fairlane.study.replication import over_points
from report_kinds import schedule, study
from report_runs import EVIL

needs_echarts = pytest.mark.skipif(not has_echarts(), reason="make build has not fetched ECharts")


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> StudyResults:
    """A small study in a folder."""
    return study(tmp_path_factory.mktemp("studies") / "small")


def test_effects_of_a_study_are_means_over_its_table(found: StudyResults) -> None:
    data = data_of(found)
    names = [run["name"] for run in data["runs"]]
    assert names == ["default", "pairs-first", "total-first"]
    for row in data["effects"]["treatment"]:
        of = found.work.filter(treatment=names[row["run"]])
        # Every placement has the same number of jobs and conditions, so the mean over placements is that of all rows.
        assert row["w"] == pytest.approx(of["w"].mean())
        assert row["improvement"] == pytest.approx(of["improvement"].mean())
        assert row["units"] == 3
        assert row["w_low"] < row["w"] < row["w_high"]
    jobs = {(row["run"], row["name"]): row["w"] for row in data["effects"]["job"]}
    assert jobs[1, "total"] == pytest.approx(found.work.filter(treatment="pairs-first", name="total")["w"].mean())
    assert {row["condition"] for row in data["effects"]["condition"]} == {"5 us", "20 us"}


def test_cells_of_a_study_are_its_rows(found: StudyResults) -> None:
    cells = data_of(found)["cells"]
    values = unpack(cells["w"]).reshape(3, len(cells["rows"]), len(cells["columns"]))
    assert not np.isnan(values).any()
    for row in found.work.sample(5, seed=1).iter_rows(named=True):
        at = ["default", "pairs-first", "total-first"].index(row["treatment"]), cells["rows"].index(row["name"])
        assert values[*at, row["point"]] == pytest.approx(row["w"], abs=1e-6)
    assert "5 us, placement: seed 1" in cells["columns"]


def test_a_parameter_of_a_study_has_a_line_for_each_treatment(found: StudyResults) -> None:
    [sweep] = data_of(found)["sweeps"]
    assert sweep["values"] == ["5 us", "20 us"]
    assert len(sweep["rows"]) == 3 * 2 * 2  # treatments, workloads, values
    first = sweep["rows"][0]
    of = found.work.filter(treatment="default", workload=first["workload"])
    of = of.filter(pl.col("jobs[0].workload.compute") == sweep["values"][first["value"]])
    assert first["w"] == pytest.approx(of["w"].mean())
    time = over_points(of, ["workload"], ["seconds_per_iteration"]).row(0, named=True)
    assert time["seconds_per_iteration"] == pytest.approx(of["seconds_per_iteration"].mean())
    assert time["seconds_per_iteration_low"] < time["seconds_per_iteration_high"], "three placements"
    assert all(first[name] == value for name, value in time.items() if not name.endswith(SPREAD))


def test_a_study_against_itself_has_no_differences(found: StudyResults) -> None:
    compared = data_of(found, found, "itself")["compare"]
    assert {row["change"] for row in compared["jobs"]} == {0.0}
    assert compared["jobs_apart"] == []


def results_of_every_kind(folder: Path) -> list[tuple[Results, dict[str, Any]]]:
    """Results, and what their page contains."""
    every: list[Results] = [
        study(folder / "every"),
    ]
    return [(one, data_of(one, one, "itself")) for one in every]


@needs_echarts
def test_pages_of_every_kind_are_closed_and_small(tmp_path: Path) -> None:
    for results, data in results_of_every_kind(tmp_path):
        page = page_of(results, results, compare_name="itself")
        assert len(page) < 5_000_000
        assert len(re.findall("<script", page)) == len(re.findall("</script", page)) == 4
        text = page.partition('id="data">')[2].partition("</script>")[0]
        assert json.loads(text)["meta"]["title"] == data["meta"]["title"]
        assert EVIL not in page
        assert data["compare"]["meta"]["provenance"]


def test_every_sentence_is_one(tmp_path: Path) -> None:
    for _, data in results_of_every_kind(tmp_path):
        sentences = data["sentences"]
        assert len(sentences) >= 2
        for name, words in sentences.items():
            assert words, name
            assert words.endswith("."), name
            assert re.search(r"\d|No ", words), name


def test_results_of_other_kinds_and_folders_are_refused(
    found: StudyResults, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    stored = schedule().save(tmp_path / "schedules")
    for results, other, words in (
        (found.folder, stored.folder, "are StudyResults and the schedules of a job log; allowed: results of one of"),
        (tmp_path / "none", None, "none: "),
    ):
        arguments = ["report", str(results), *(["--compare", str(other)] if other else [])]
        assert execute(arguments) == 2
        assert words in capsys.readouterr().err
    assert not (found.folder or tmp_path).joinpath("report.html").exists()
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / "claims.csv").write_text("claim\n")
    assert execute(["report", str(tmp_path / "old")]) == 2
    assert "reproduction.json: is missing: an earlier version of fairlane" in capsys.readouterr().err
    renamed = found.work.with_columns(name=pl.lit("other ") + pl.col("name"))
    with pytest.raises(fairlane.ScenarioError, match=r"--compare = \"x\": has no job at a point of the study"):
        data_of(found, replace(found, work=renamed), "x")
