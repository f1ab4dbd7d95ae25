"""What a reproduction writes besides verdicts: figures, tables and texts, and what cannot be written."""

import json
from dataclasses import replace
from pathlib import Path
from runpy import run_path
from typing import Any

import numpy as np
import polars as pl
import pytest

from fairlane import ScenarioError
from fairlane.cli.main import execute
from fairlane.papers.figures import MOST_ROWS, data_of
from fairlane.papers.folder import Figure
from fairlane.results.manifest import examine
from fairlane.results.reproduction import ReproductionResults
from fairlane.study.sql import Database
from fairlane.views.bands import LOWER, UPPER, place, unit_of
from fairlane.views.kinds import view_of
from fairlane.views.rows import box_numbers
from fairlane.views.vegalite import completed, problems_of
from pages import ROOT
from pictures import assert_drawn, draw
from report_kinds import reproduction
from small_paper import run, written
from small_study import Here


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return written(tmp_path / "paper")


def test_figures_and_texts_that_cannot_be_written_cost_no_verdict(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fairlane.papers.reproduce.open_pool", Here)
    figures = (folder / "figures.toml").read_text()
    for file, row in (("{size}", "a/b"), ("c", "-"), ("{size}", "c")):
        each = f"""file = "{file}"\neach = "SELECT '{row}' AS size\""""
        with (folder / "figures.toml").open("a") as several:
            several.write(figures.replace('file = "times"', each))
    text = (folder / "figures.toml").read_text()
    (folder / "figures.toml").write_text(text.replace('field = "seconds"', 'field = "second"', 1))
    with (folder / "paper.toml").open("a") as paper:
        paper.write('[[text]]\nfile = "note.md"\ntext = "{rows} rows"\nsql = "SELECT 1 AS row"\n')
    out = tmp_path / "out"
    assert execute(["reproduce", str(folder), "--out", str(out)]) == 1
    shown = capsys.readouterr()
    assert "holds (one replicate)" in shown.out
    for words in (
        "paper.toml: text note.md: cannot be written: its query has no column 'rows'",
        'figure times.chart[0].spec.encoding.y.field = "second": unknown column of the query; allowed: size, seconds',
        'figures.toml: figure {size}.file = "a/b": is no name of a file',
        'figures.toml: figure {size}.file = "c.png": another file has this name',
    ):
        assert words in shown.err
    assert_drawn(out / "c.png")
    assert not (tmp_path / "a").exists()
    assert "**holds, one replicate**" in (out / "report.md").read_text(encoding="utf-8")
    assert examine(out).problems == ()


def test_no_name_with_a_value_in_it_leaves_the_folder(folder: Path, tmp_path: Path) -> None:
    text = (folder / "paper.toml").read_text()
    (folder / "paper.toml").write_text(text.replace("SELECT size, seed", "SELECT '../' || size AS size, seed"))
    with pytest.raises(ScenarioError, match=r'table medians: csv = "\.\./(small|large)": is no name of a file'):
        run(folder, tmp_path / "out", only="large-is-slow")
    assert not list(tmp_path.glob("*.csv"))


def test_many_rows_are_thinned_but_for_the_extremes() -> None:
    rows = pl.select(place=pl.int_range(MOST_ROWS + 1), value=pl.int_range(MOST_ROWS + 1) * 7919 % MOST_ROWS)
    spec = {"mark": "point", "encoding": {"x": {"field": "place"}, "y": {"field": "value"}}}
    for mark, most in (("point", MOST_ROWS), ("boxplot", 2 * MOST_ROWS)):
        drawn = {"sql": "SELECT * FROM rows", "spec": {**spec, "mark": mark}}
        figure = Figure.model_validate({"file": "a", "title": "a", "chart": [drawn]})
        (found,) = data_of(figure, Database({"rows": rows}))
        (chart,) = found.charts
        values = chart.columns["value"]
        assert (chart.rows, len(values) <= most) == (rows.height, True)
        assert ({min(values), max(values)}, len(values) < rows.height) == ({0, MOST_ROWS - 1}, mark == "point")


ROWS = pl.DataFrame(
    {
        "size": [1, 2, 1, 2, 1, 2],
        "name": ["b", "b", "a", "a", "b", "b"],
        "of": ["late", "late", "early", "early", "early", "early"],
        "time": [1.0, 100.0, 2.0, 3.0, None, 4.0],
    }
)


def panels(encoding: dict[str, Any], rows: pl.DataFrame = ROWS, **spec: Any) -> dict[str, Any]:
    """The specification of a chart of these rows."""
    found, _ = completed([({"mark": "point", **spec, "encoding": encoding}, rows)])
    return found.to_dict(validate=True)


def test_types_and_orders_are_those_of_the_columns_unless_a_figure_says_otherwise() -> None:
    spec = panels({"x": {"field": "name"}, "y": {"field": "time"}, "color": {"field": "of"}})
    (unit,) = spec["concat"]
    x, y, colour = (unit["encoding"][channel] for channel in ("x", "y", "color"))
    assert (x["type"], y["type"], colour["type"]) == ("nominal", "quantitative", "nominal")
    assert (x["sort"], colour["scale"]["domain"]) == (["b", "a"], ["late", "early"])
    assert [of["field"] for of in unit["encoding"]["tooltip"]] == ["name", "time", "of"]
    scale = {"domain": ["early", "never", "late"], "range": ["red", "green", "blue"]}
    spec = panels({"x": {"field": "size", "type": "ordinal"}, "color": {"field": "of", "scale": scale}})
    encoding = spec["concat"][0]["encoding"]
    assert "sort" not in encoding["x"]
    assert encoding["color"]["scale"] == {"domain": ["early", "late"], "range": ["red", "blue"]}


def test_facets_are_panels_with_their_rows_and_scales() -> None:
    encoding = {"x": {"field": "size"}, "y": {"field": "time"}}
    free = {"scale": {"x": "independent", "y": "independent"}}
    spec = panels({**encoding, "facet": {"field": "of"}}, resolve=free)
    assert [panel["title"]["text"] for panel in spec["concat"]] == ["late", "early"]
    assert [len(spec["datasets"][panel["data"]["name"]]) for panel in spec["concat"]] == [2, 4]
    assert {*spec["resolve"]["scale"]} == set()
    assert [one["views"] for one in spec["params"] if "views" in one] == [["panel0"], ["panel1"]]
    shared = panels({**encoding, "row": {"field": "of"}, "column": {"field": "name"}})
    assert [panel["title"]["text"] for panel in shared["concat"]] == ["late, b", "early, a", "early, b"]
    assert (shared["columns"], shared["resolve"]["scale"]) == (2, {"x": "shared", "y": "shared"})
    inner = {"mark": "point", "encoding": encoding}
    outer = completed([({"facet": {"field": "of"}, "columns": 1, "spec": inner, "resolve": free}, ROWS)])[0].to_dict()
    assert outer["columns"] == 1
    assert outer["concat"] == spec["concat"]


@pytest.mark.parametrize(("count", "words"), [(9, "within 1.5 interquartile ranges"), (120, "1% and 99%")])
def test_boxes_are_computed_from_all_rows(count: int, words: str) -> None:
    values = [*np.linspace(1.0, 2.0, count - 1).tolist(), 50.0]
    rows = pl.DataFrame({"x": ["a"] * count + ["b"], "y": [*values, 3.0]})
    found, note = completed([({"mark": "boxplot", "encoding": {"x": {"field": "x"}, "y": {"field": "y"}}}, rows)])
    assert words in note
    data = found.content["datasets"]
    (first, second), dots = data["rows0_0_0_boxes"], data["rows0_0_0_dots"]
    whiskers = 1.5 if count < 100 else (1, 99)
    assert {key: first[key] for key in ("low", "q1", "median", "q3", "high")} == box_numbers(np.array(values), whiskers)
    assert second["low"] == second["high"] == 3.0
    assert 50.0 in [dot["value"] for dot in dots]
    assert "rows0_0" not in data, "a page need not hold every value"


def test_boxes_of_a_query_are_drawn_as_they_are() -> None:
    box = {"low": 2.0, "q1": 3.0, "median": 4.0, "q3": 5.0, "high": 6.0, "values": 500}
    rows = pl.DataFrame([{"x": "a", "least": 1.0, "most": 900.0, **box}])
    found, note = completed([({"mark": "boxplot", "encoding": {"x": {"field": "x"}, "y": {"field": "median"}}}, rows)])
    data = found.content["datasets"]
    assert {key: data["rows0_0_0_boxes"][0][key] for key in box} == box
    assert [dot["value"] for dot in data["rows0_0_0_dots"]] == [1.0, 900.0]
    low, high = found.content["concat"][0]["layer"][0]["encoding"]["y"]["scale"]["domain"]
    assert low < 1.0, "the axis has room for the extremes"
    assert high > 900.0
    assert "whiskers" not in note, "the query knows what they are"


def test_a_line_at_a_value_leaves_the_grid() -> None:
    layers = [
        {"mark": "rule", "encoding": {"y": {"datum": 2}}},
        {"mark": "point", "encoding": {"y": {"field": "time"}}},
    ]
    first, _ = completed([({"layer": layers}, ROWS)])[0].to_dict()["concat"][0]["layer"]
    assert first["encoding"]["y"] == {"datum": 2, "axis": {"grid": True}}


def test_charts_of_the_same_colours_have_one_legend() -> None:
    x, y, color = ({"field": field} for field in ("size", "time", "name"))
    line = {"mark": "line", "encoding": {"x": x, "y": y, "color": color}}
    twice = {
        "encoding": {"x": x, "y": y},
        "layer": [{"mark": of, "encoding": {"color": color}} for of in ("line", "point")],
    }
    assert completed([(line, ROWS), (twice, ROWS)])[0].to_dict()["resolve"]["scale"] == {}


@pytest.mark.parametrize(("far", "log"), [(3, True), (1, False)])
def test_boxes_are_on_a_logarithmic_axis_where_many_values_are_far_from_the_others(far: int, *, log: bool) -> None:
    """Of 40 values ``far`` are a hundred times the others."""
    values = [*np.linspace(1.0, 2.0, 40 - far).tolist(), *[150.0] * far]
    rows = pl.DataFrame({"x": "a", "y": values})
    for scale, expected in (({}, log), ({"type": "linear"}, False)):
        spec = panels({"x": {"field": "x"}, "y": {"field": "y", "scale": scale}}, rows, mark="boxplot")
        found = spec["concat"][0]["layer"][0]["encoding"]["y"]["scale"].get("type", "linear")
        assert found == ("log" if expected else "linear")


def test_a_specification_that_is_not_vega_lite_is_explained() -> None:
    for spec, words in (
        (
            {"mark": {"type": "line", "point": "yes"}},
            'mark.point = "yes": is not Vega-Lite; allowed: transparent, true',
        ),
        ({"layer": [{"mark": "barr"}]}, 'layer[0].mark = "barr": is not Vega-Lite; allowed: boxplot, errorbar,'),
        ({"marks": "bar"}, "marks: unknown key of Vega-Lite; allowed: align, bounds, center"),
        ({"mark": "bar", "encoding": {"xx": {}}}, "encoding.xx: unknown key of Vega-Lite; allowed: angle, color"),
        ({"mark": "bar", "encoding": {"x": {"field": 3}}}, "encoding.x.field = 3: is not Vega-Lite; allowed: a string"),
    ):
        assert words in str(problems_of(spec)[0])
    assert problems_of({"mark": "bar", "encoding": {"x": {"field": "a"}}}) == []


def test_a_specification_may_be_json_and_use_any_mark_and_transform(folder: Path, tmp_path: Path) -> None:
    spec = {
        "transform": [{"calculate": "datum.seconds * 1000", "as": "ms"}, {"density": "ms", "groupby": ["size"]}],
        "mark": {"type": "area", "opacity": 0.5},
        "encoding": {
            "x": {"field": "value", "type": "quantitative", "axis": None},
            "y": {"field": "density", "type": "quantitative"},
            "color": {"field": "size"},
        },
    }
    text = (folder / "figures.toml").read_text().partition("[figure.chart.spec]")[0]
    (folder / "figures.toml").write_text(f"{text}spec = '''{json.dumps(spec)}'''\n")
    found = run(folder, tmp_path / "out", only="large-is-slow")
    assert found.not_written == []
    assert_drawn(tmp_path / "out" / "times.png")
    stored = ReproductionResults.load(tmp_path / "out")
    assert stored.figures[0].charts[0].spec == spec
    assert "times" in view_of([stored]).pictures


def test_edges_of_bands_are_at_fixed_places_on_any_scale() -> None:
    def places(values: list[float | None], low: float | None = None, high: float | None = None) -> list[float]:
        number = [{"value": value, "low": low, "high": high} for value in values]
        return [place(value, low, high, unit_of(number)) for value in values if value]

    assert places([10.0, 15.0, 20.0, 25.0], 10.0, 20.0) == [LOWER, 0.5, UPPER, 1.5]
    assert places([4.0, 1.0], 2.0) == [1.0, -0.5]
    assert places([3.0], 2.0) == [0.5], "half of the edge away"
    assert places([4.0, 1.0, None], 0.0) == [1.0, 0.25]
    assert places([4.0, 2.0], None, 2.0) == [2.0, UPPER]
    assert places([3.0], 3.0, 3.0) == [0.5]


def test_verdicts_and_numbers_are_counted_and_compared() -> None:
    here, there = reproduction(), reproduction(holds=False)
    view = view_of([here])
    assert view.headline == "A paper: 2 claims: 1 holds and 1 not run"
    claims, numbers, *_ = view.tables
    assert {"robustness", "claims", "rates", "strip"} <= {*view.pictures}, "with the map of the same folder"
    assert [row["verdict one"] for row in view_of([here], ["one"]).tables[0].rows if row] == [
        "holds, 3 replicates",
        "not run",
    ]
    assert numbers.sentence == "0 of 2 numbers are in their bands in every replicate, 0 in none."
    assert claims.sentence.startswith("A paper: 2 claims")
    both = view_of([here, there], ["here", "there"])
    assert both.tables[0].sentence == "1 of 2 claims differ: a.throughput."
    rows = both.charts[0].data
    assert isinstance(rows, list)
    assert [row["result"] for row in rows].count("there") == 6
    same = view_of([here, replace(here)], ["here", "there"])
    assert same.tables[0].sentence == "0 of 2 claims differ."


def test_what_vega_cannot_draw_is_reported_and_horizontal_boxes_are_those_of_vega_lite(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("vl_convert.vegalite_to_png", draw)
    text = (folder / "figures.toml").read_text()
    turned = (
        text.replace("encoding.x", "encoding.z").replace("encoding.y", "encoding.x").replace("encoding.z", "encoding.y")
    )
    wrong = text.replace('file = "times"', 'file = "wrong"').replace(
        'mark = "boxplot"', 'mark = "point"\ntransform = [{ filter = "datum.(" }]'
    )
    (folder / "figures.toml").write_text(f"{turned}\n{wrong}")
    found = run(folder, tmp_path / "out", only="large-is-slow")
    (problem,) = found.not_written
    assert "figures.toml: figure wrong: cannot be drawn: " in str(problem)
    assert_drawn(tmp_path / "out" / "times.png")
    assert "wrong.png" not in (tmp_path / "out" / "report.md").read_text(encoding="utf-8")


def test_stored_tables_have_what_the_figures_of_the_documentation_show() -> None:
    tool = run_path(str(ROOT / "tools" / "draw_figures.py"))
    found = {f"docs/images/{one.file}.png" for one in tool["of_documentation"]()}
    papers = {"wilke2020": ["fft", "pingpong"], "cures": ["jobs", "ranking"], "smith2018": ["figure-9"]}
    for paper, files in papers.items():
        drawn = {one.file for one in tool["of_paper"](paper)}
        assert drawn.issuperset(files)
        found |= {f"docs/reproduction/{paper}/{file}.png" for file in drawn}
    assert [path for path in sorted(found) if not (ROOT / path).is_file()] == []
    assert "docs/images/htsim.png" in found
