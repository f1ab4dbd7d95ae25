"""The view of studies: charts and tables agree with the table ``work``; several studies; what cannot be compared."""

from __future__ import annotations

from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from rich.console import Console

import fairlane
from fairlane.cli.main import execute
from fairlane.cli.terminal import show
from fairlane.results.schemas import STUDY, types
from fairlane.results.study import StudyResults
from fairlane.study.replicates import over_points
from fairlane.views.kinds import view_of
from fairlane.views.model import Chart, View
from fairlane.views.study.tables import usual
from report_kinds import CONTROLLED, study

TREATMENTS = ("default", "pairs-first", "total-first")


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> StudyResults:
    return study(tmp_path_factory.mktemp("studies") / "small")


@pytest.fixture(scope="module")
def view(found: StudyResults) -> View:
    return view_of([found])


def chart(view: View, name: str) -> Chart:
    return next(one for one in view.charts if one.name == name)


def rows_of(view: View, name: str) -> list[dict[str, Any]]:
    return [dict(row) for row in chart(view, name).data]


def test_effects_are_means_over_the_table(found: StudyResults, view: View) -> None:
    effects = pl.DataFrame(rows_of(view, "effects"), infer_schema_length=None)
    assert effects["run"].unique(maintain_order=True).to_list() == list(TREATMENTS)
    for row in effects.filter(level="by treatment").iter_rows(named=True):
        of = found.work.filter(treatment=row["run"])
        # Every placement has the same number of jobs and conditions, so the mean over placements is that of all rows.
        assert row["w"] == pytest.approx(of["w"].mean())
        assert row["improvement"] == pytest.approx(of["improvement"].mean())
        assert row["units"] == 3
        assert row["w_low"] < row["w"] < row["w_high"]
    (job,) = effects.filter(level="by job", run="pairs-first", name="total").rows(named=True)
    assert job["w"] == pytest.approx(found.work.filter(treatment="pairs-first", name="total")["w"].mean())
    assert set(effects.filter(level="by condition")["condition"]) == {"5 us", "20 us"}


def test_jobs_of_extremes_are_named(found: StudyResults, view: View) -> None:
    means = found.work.group_by("treatment", "name").agg(pl.col("improvement").mean()).drop_nulls()
    table = next(one for one in view.tables if one.title.startswith("Jobs by treatment"))
    for row in filter(None, table.rows):
        own = means.filter(treatment=row["run"]).sort("improvement")["name"].to_list()
        assert [row["worst"]["name"], row["best"]["name"]] == [own[0], own[-1]]
    worst = means.sort("improvement").row(0, named=True)
    assert chart(view, "extremes").sentence.startswith(f"{worst['treatment']} costs {worst['name']} most")


def test_cells_are_rows_of_the_table(found: StudyResults, view: View) -> None:
    cells = pl.DataFrame(rows_of(view, "cells"))
    assert cells.height == found.work.height
    assert cells["w"].sort().to_list() == found.work["w"].sort().to_list()
    worse = found.work.filter(pl.col("improvement") < 0).height
    of = found.work["improvement"].count()
    words = f"2 jobs at 6 points: {worse} of {of} cells have less throughput than the default run."
    assert chart(view, "cells").sentence == words
    drawn = chart(view, "cells").spec.to_dict()["datasets"].values()
    assert "5 us, placement: seed 1" in {row["column"] for rows in drawn for row in rows if "column" in row}


def test_a_parameter_has_a_line_for_each_treatment(found: StudyResults, view: View) -> None:
    rows = pl.DataFrame(rows_of(view, "sweeps"), infer_schema_length=None)
    assert rows.filter(measure="w").height == 3 * 2 * 2  # treatments, workloads, values
    for measure in ("w", "seconds_per_iteration"):
        first = rows.filter(measure=measure).row(0, named=True)
        of = found.work.filter(treatment=first["run"], workload=first["workload"])
        of = of.filter(pl.col("jobs[0].workload.compute") == first["label"])
        mean = over_points(of, ["workload"], [measure]).row(0, named=True)
        assert [first[f"value{end}"] for end in ("", "_low", "_high")] == [
            mean[f"{measure}{end}"] for end in ("", "_low", "_high")
        ]


def test_a_study_against_itself_has_no_differences(found: StudyResults) -> None:
    both = view_of([found, found], ["one", "other"])
    assert {row["change"] for row in rows_of(both, "comparison")} == {0.0}
    assert chart(both, "comparison").sentence.startswith("Against other: 0 of 12 differences are beyond noise")
    assert {row["run"] for row in rows_of(both, "replicates")} == {
        f"{name}: {run}" for name in ("one", "other") for run in TREATMENTS
    }
    apart = replace(found, work=found.work.with_columns(name=pl.lit("other ") + pl.col("name")))
    alone = view_of([found, apart], ["one", "other"])
    assert not [one for one in alone.charts if one.name == "comparison"]
    assert any(line.startswith("one is not compared with other: ") for line in alone.remarks)


def test_what_controllers_did_is_shown_by_period(tmp_path: Path) -> None:
    small = study(tmp_path / "controlled", CONTROLLED)
    sums = small.periods.group_by("treatment", "point", "period").agg(pl.col("iterations").sum())
    expected = sums.group_by("treatment", "period").agg(pl.col("iterations").mean()).sort("treatment", "period")
    shown = [(row["run"], row["period"], row["iterations"]) for row in rows_of(view_of([small]), "periods")]
    assert shown == expected.rows()


def test_failures_stand_on_the_terminal_and_on_the_page(found: StudyResults) -> None:
    point = found.work.row(0, named=True)
    row: dict[str, Any] = {name: point[name] for name in found.failures.columns if name in point}
    row |= {"treatment": "default", "job": "pairs", "error": "no route", "scenario": "failed/1.toml"}
    failures = pl.DataFrame([row] * 7, schema=found.failures.schema)
    failed = view_of([replace(found, failures=failures, meta=found.meta.model_copy(update={"failures": 7}))])
    written = StringIO()
    show([failed], Console(width=200, file=written))
    assert written.getvalue().count("failed twice: point 0, default run of pairs: no route; see failed/1.toml") == 5
    assert "... and 2 others" in written.getvalue()
    assert failed.tables[-1].sentence == "7 runs failed twice; fairlane run accepts their scenarios."
    assert "7 failed" in failed.facts[0]


def test_tables_that_a_study_measures_are_charts_and_rows(found: StudyResults) -> None:
    rows = [
        {"point": at, "case": case, "placement": at % 3, "seed": 1, "p50_us": 1.0, "p99_us": 1.0 + 50 * at}
        for at, case in enumerate(["a"] * 3 + ["b"] * 3)
    ]
    table = pl.DataFrame(rows)
    empty: dict[str, Any] = {name: pl.DataFrame(schema=types(STUDY[name])) for name in ("work", "periods")}
    meta = found.meta.model_copy(update={"measured": ["latency"]})
    measured = view_of([replace(found, meta=meta, measured={"latency": table}, **empty)])
    assert usual(table, ["point", "placement", "seed", "p50_us", "p99_us"]) == ("case", "p99_us", "placement")
    (only,) = measured.charts
    assert (only.name, only.sentence) == ("measured", "p99_us from 1 to 251 in 6 rows.")
    (shown,) = measured.tables
    assert [column.header for column in shown.columns] == ["case", "placement", "p50_us", "p99_us"]
    assert measured.drawn == {}


def test_several_studies_are_drawn_in_one_figure(
    found: StudyResults, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    other = study(tmp_path / "other")
    assert execute(["plot", str(found.folder), str(other.folder), "--format", "svg"]) == 0
    assert {Path(line).name for line in capsys.readouterr().out.split()} == {"work.svg", "conditions.svg"}
    assert "small: total-first" in Path("work.svg").read_text()
    assert "other: total-first" in Path("work.svg").read_text()
    assert execute(["plot", str(found.folder), "--figure", "cells", "--out", "one"]) == 0
    assert Path("one/cells.png").is_file()


def test_notebooks_show_a_study(found: StudyResults) -> None:
    shown = found._repr_html_()
    assert shown is not None
    assert shown.count("<svg") == 2
    assert "total-first" in shown
    for name in (None, "conditions", "extremes"):
        assert found.plot(name).to_dict()["title"]["text"]
    with pytest.raises(fairlane.ScenarioError, match="there is nothing to show in it"):
        found.plot("design")
