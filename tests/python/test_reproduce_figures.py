"""What a reproduction writes besides verdicts: figures of every kind, tables and texts, and what cannot be written."""

from pathlib import Path
from typing import Any

import polars as pl
import pytest
from matplotlib.axes import Axes

from fairlane import ScenarioError
from fairlane.cli.main import execute
from fairlane.results.manifest import examine
from pictures import assert_drawn
from small_paper import run, written
from small_study import Here

KINDS = {
    "strip": "SELECT size AS x, seconds AS y, seed::VARCHAR AS s FROM iterations",
    "scatter": "SELECT iteration AS x, seconds AS y, size AS s FROM iterations",
    "bars": "SELECT size AS x, seconds AS y, seed AS s FROM medians",
    "lines": "SELECT seed AS x, seconds AS y, size AS s, 0 AS l, 1 AS h FROM medians",
    "heatmap": "SELECT size AS x, seed::VARCHAR AS y, seconds AS value, size AS s FROM medians",
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return written(tmp_path / "paper")


def test_figures_and_texts_that_cannot_be_written_cost_no_verdict(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fairlane.reproduce.open_pool", Here)
    figures = (folder / "figures.toml").read_text()
    for file, row in (("{size}", "a/b"), ("c", "-"), ("{size}", "c")):
        each = f"""file = "{file}"\neach = "SELECT '{row}' AS size\""""
        with (folder / "figures.toml").open("a") as several:
            several.write(figures.replace('file = "times"', each))
    text = (folder / "figures.toml").read_text()
    (folder / "figures.toml").write_text(text.replace('y = "seconds"', 'y = "second"', 1))
    with (folder / "paper.toml").open("a") as paper:
        paper.write('[[text]]\nfile = "note.md"\ntext = "{rows} rows"\nsql = "SELECT 1 AS row"\n')
    out = tmp_path / "out"
    assert execute(["reproduce", str(folder), "--out", str(out)]) == 1
    shown = capsys.readouterr()
    assert "large-is-slow (I): holds, one replicate" in shown.out
    for words in (
        "paper.toml: text note.md: cannot be written: its query has no column 'rows'",
        'figure times.panel[0].y = "second": unknown column of the query; allowed: size, seconds; did you mean',
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


def test_bars_have_intervals_and_a_cell_of_zero_has_a_colour(folder: Path, tmp_path: Path) -> None:
    sql = "SELECT * FROM (VALUES ('a', 'c', 1, 0.5, 1.5, 0), ('b', 'd', 2, 1.8, 2.6, 1)) t (x, o, y, lower, upper, v)"
    (folder / "figures.toml").write_text(
        f"""
[[figure]]
file = "bars"
title = "Bars"
[[figure.panel]]
kind = "bars"
sql = "{sql}"
x = "x"
y = "y"
low = "lower"
high = "upper"
[[figure.panel]]
kind = "heatmap"
sql = "{sql}"
x = "x"
y = "o"
value = "v"
y_scale = "linear"
"""
    )
    lines: list[Any] = []
    shown: list[Any] = []

    def vlines(_axes: Axes, *given: Any, **_look: Any) -> None:
        lines.append(given)

    def draw_heat(_axes: Axes, values: Any, *_given: Any, **_look: Any) -> None:
        shown.append(values)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("fairlane.reproduce.figures.draw_heat", draw_heat)
        patch.setattr(Axes, "vlines", vlines)
        assert not run(folder, tmp_path / "out", only="large-is-slow").not_written
    assert [given[1].to_list() for given in lines if isinstance(given[1], pl.Series)] == [[0.5, 1.8]]
    (values,) = shown
    assert values[0, 0] == 0
    assert values.mask.tolist() == [[False, True], [True, False]]


def test_every_kind_of_figure_is_drawn(folder: Path, tmp_path: Path) -> None:
    more = {"scatter": 'column = "s"', "lines": 'low = "l"\nhigh = "h"', "heatmap": ""}
    figures = [
        f'[[figure]]\nfile = "{kind}"\ntitle = "T"\nwidth = 5\nheight = 3\n[[figure.panel]]\nkind = "{kind}"\nx = "x"\n'
        f'y = "y"\nsql = "{sql}"\n{more.get(kind, "")}\n'
        + ('series = "s"\n' if kind not in ("scatter", "heatmap") else "")
        for kind, sql in KINDS.items()
    ]
    (folder / "figures.toml").write_text("".join(figures))
    found = run(folder, tmp_path / "out", only="large-is-slow")
    assert not found.failed
    for kind in KINDS:
        assert_drawn(tmp_path / "out" / f"{kind}.png")
