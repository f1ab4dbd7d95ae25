"""Views: each kind of results as text, picture and page, alone and with others; axes."""

from __future__ import annotations

from io import StringIO
from pathlib import Path

import polars as pl
import pytest
from rich.console import Console

import fairlane
from fairlane.cli.main import execute
from fairlane.cli.terminal import show
from fairlane.results.base import Results
from fairlane.views import kinds as views
from fairlane.views.charts import Axis, chart, layers
from fairlane.views.model import Chart, View
from fairlane.views.page import page
from fairlane.views.picture import picture
from fairlane.views.style import Look
from fairlane.views.tables import Bad, Column, Table
from report_kinds import EXAMPLES, emptied, failures, impact, sweep_results
from report_runs import EVIL
from view_checks import assert_complete
from view_examples import VIEWS

SCENARIO = """
duration = "60 us"
fabric = { topology = "fat_tree", hosts = 4, levels = 1, radix = 4, bandwidth = "100 Gb/s" }
[[jobs]]
ranks = 2
workload = "flood_pairs"
"""


@pytest.fixture(scope="module", params=list(EXAMPLES))
def results(request: pytest.FixtureRequest) -> Results:
    return EXAMPLES[request.param]()


def test_every_kind_has_an_example() -> None:
    assert set(EXAMPLES) == {kind.module for kind in views.KINDS.values()}


@pytest.mark.parametrize("several", [False, True])
def test_a_view_is_complete_for_every_writer(results: Results, several: bool, tmp_path: Path) -> None:
    view = views.view_of([results, results] if several else [results], [EVIL, "other"] if several else ["one"])
    kind = views.KINDS[type(results)]
    assert {*view.pictures} <= {*kind.pictures} or kind.others
    assert_complete(view, tmp_path, most=1 if several else None)


@pytest.mark.parametrize("name", VIEWS)
def test_a_view_of_no_folder_is_complete_for_every_writer(name: str, tmp_path: Path) -> None:
    assert_complete(VIEWS[name](), tmp_path)


def test_results_without_anything_to_draw_have_a_view(results: Results, tmp_path: Path) -> None:
    empty = emptied(results, tmp_path)
    for every in ([empty], [empty, results]):
        view = views.view_of(every, ["none", "some"][: len(every)])
        assert page(view)
        show([view], Console(file=StringIO()))
        assert bool(view.charts) == (len(every) > 1)
    for name in views.KINDS[type(results)].pictures:
        (tmp_path / f"{name}.png").write_text("of earlier results")
    assert views.draw([empty]) == []
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("look", [Look("dark", transparent=True), Look(format="svg"), Look(format="pdf")], ids=str)
def test_the_first_picture_of_a_kind_is_drawn_in_every_look(results: Results, look: Look) -> None:
    view = views.view_of([results])
    assert picture(view, next(iter(view.pictures.values())), look).startswith((b"\x89PNG", b"<svg", b"%PDF"))


def test_results_of_other_kinds_are_refused() -> None:
    class Other(Results):
        folder = None

    with pytest.raises(fairlane.ScenarioError, match="are a load sweep and Other; allowed: results of one of these"):
        views.view_of([sweep_results(), Other()])


def test_load_sweeps_are_compared_in_one_figure() -> None:
    sweep = sweep_results()
    view = views.view_of([sweep, sweep], ["low", "high"])
    throughput, latency = view.charts
    assert [row["sweep"] for row in throughput.data] == ["low"] * 3 + ["high"] * 3
    assert [row["accepted"] for row in throughput.data] == 2 * sweep.points["accepted"].to_list()
    means = (sweep.points["message_mean_ps"] * 1e-12).to_list()
    assert [row["message_mean"] for row in latency.data] == pytest.approx(2 * means)
    assert view.headline == f"low: {sweep.headline()}\nhigh: {sweep.headline()}"
    (table,) = view.tables
    assert table.data is not None
    assert table.data.height == 2 * sweep.runs.height


def test_panels_that_differ_in_their_data_only_show_their_own() -> None:
    axis = Axis.of([1.0], "x")
    charts = []
    for name in ("first", "second"):
        point = chart([{"x": 0.5, "told": f"told by {name}"}]).mark_text().encode(x=axis.x("x"), text="told:N")
        charts.append(Chart(name, name, layers(20, point), "1.", ""))
    drawn = picture(View("", "", [], charts), charts, Look(format="svg")).decode()
    assert drawn.count(">told by first<") == drawn.count(">told by second<") == 1


def test_factors_of_gpcnet_are_those_of_its_table() -> None:
    found = impact()
    view = views.view_of([found])
    assert [row["impact_p99"] for row in view.charts[0].data] == found.impact["impact_p99"].to_list()
    assert [table.title for table in view.tables] == [
        "Isolated Network Tests",
        "Network Tests running with Congestion Tests",
        "Congestion Impact Factor",
    ]
    assert any(line.startswith(f"{EVIL} is left out") for line in view.remarks)


def test_harm_of_a_survey_is_counted_over_what_fails() -> None:
    found = failures(switches=True)
    harmed = found.ranking.filter((pl.col("jobs_failed") > 0) | (pl.col("jobs_stalled") > 0)).height
    cut = found.ranking.filter(pl.col("hosts_cut_off") > 0).height
    assert harmed >= 1
    view = views.view_of([found])
    ranking, jobs = view.tables
    assert ranking.sentence == f"Of 3 switches, {harmed} make jobs fail or stall, and {cut} cut hosts off."
    assert [row["part"] for row in ranking.rows if row] == found.ranking["part"].to_list()
    assert {(row["part"], row["name"]) for row in jobs.rows if row} == set(
        found.slowdowns.select("part", "name").rows()
    )
    cells = [column.cell(row) for row in ranking.rows if row for column in ranking.columns]
    assert any(isinstance(cell, Bad) for cell in cells), "failed jobs are red"
    whole = views.view_of([failures()]).tables[0].sentence
    assert whole == "Of 8 cables, none makes a job fail or stall or cuts a host off."


def test_the_command_draws_several_results_in_every_format(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("s.toml").write_text(SCENARIO)
    for seed in ("1", "2"):
        assert execute(["saturate", "s.toml", "--load", "0.2", "--seed", seed, "--out", f"sweep{seed}", "--quiet"]) == 0
    capsys.readouterr()
    for kind in ("png", "svg", "pdf"):
        assert execute(["plot", "sweep1", "sweep2", "--format", kind]) == 0
        assert Path(capsys.readouterr().out.strip()).is_file()
    assert "sweep2" in Path("saturation.svg").read_text()
    assert execute(["plot", "sweep1", "--out", "new/folder"]) == 0
    assert Path("new/folder/saturation.png").is_file()
    assert execute(["plot", "sweep1", "sweep2", "--figure", "saturate"]) == 2
    assert 'did you mean "saturation"' in capsys.readouterr().err
    assert execute(["plot", "sweep1", "--figure", "slowdown"]) == 2
    assert "draws a Run, and these results are a Saturation; allowed: saturation" in capsys.readouterr().err
    plotted = fairlane.load("sweep1").plot().to_dict()  # one of Altair, which a notebook shows
    names = [parameter["name"] for parameter in plotted["params"]]
    assert len(names) == len(set(names)) == 3
    assert len(plotted["vconcat"]) == 3


@pytest.mark.parametrize(
    ("values", "kind", "log", "title", "ticks"),
    [
        ([1e-6, 5e-6], "time", False, "T [µs]", None),
        ([1e-6, 5e-5], "time", True, "T [µs]", [1e-6, 2e-6, 5e-6, 1e-5, 2e-5, 5e-5]),
        ([8e-7, 2e-4], "time", True, "T [µs]", [1e-6, 2e-6, 5e-6, 1e-5, 2e-5, 5e-5, 1e-4, 2e-4]),
        ([1.0, 9000.0], "duration", True, "T", [1, 10, 60, 600, 3600]),
        ([9000.0, 4e7], "duration", True, "T", [36000, 86400, 864000, 8640000]),
        ([0.0, 9000.0], "duration", False, "T [h]", [0, 3600, 7200]),
        ([0.5, 4.0], "number", False, "T", None),
        ([0.0, 4000.0], "number", False, "T", None),
        ([0.9, 12.0], "number", True, "T", [1, 2, 5, 10]),
        ([1.0, None, 1e5], "number", True, "T", [1, 10, 100, 1000, 1e4, 1e5]),
    ],
)
def test_axes_have_a_scale_and_a_unit(
    values: list[float | None], kind: str, log: bool, title: str, ticks: list[float] | None
) -> None:
    axis = Axis.of(values, "T", kind)  # type: ignore[arg-type]
    assert (axis.log, axis.title) == (log, title)
    assert all(axis.low <= value <= axis.high for value in values if value is not None)
    assert axis.low == 0 or log
    if ticks is not None:
        assert axis.ticks == pytest.approx(ticks)


def test_columns_of_a_page_are_sorted_by_numbers() -> None:
    table = Table([Column("a", "a"), Column("b", lambda row: row["b"])], [{"a": 1234.5, "b": "x"}])
    assert [column.number(table.rows[0] or {}) for column in table.columns] == [1234.5, None]
    assert isinstance(table.data, pl.DataFrame | None)
