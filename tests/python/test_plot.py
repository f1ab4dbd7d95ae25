"""Figures by Matplotlib: on axes of the caller's, and those of users, also as charts of Altair."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.image import imread
from matplotlib.patches import Rectangle

import fairlane
from fairlane.cli.main import execute
from fairlane.core.errors import ResultsError
from fairlane.views.drawing import draw_into
from fairlane.views.drawing.runs import figure_of, interference, slowdown
from fairlane.views.drawing.style import INK, darken, styled
from fairlane.views.style import THEMES, Look
from made_runs import make_run
from pictures import assert_drawn, assert_texts_fit
from report_runs import simulated


@pytest.fixture(autouse=True)
def _style() -> Iterator[None]:
    with styled():
        yield


def test_a_run_in_memory_cannot_be_drawn() -> None:
    with pytest.raises(ResultsError, match="only in memory"):
        make_run(2).draw()
    with pytest.raises(ResultsError, match="only in memory"):
        draw_into(None, make_run(2), "slowdown", slowdown)


def test_a_run_is_drawn_on_axes_of_the_callers() -> None:
    run = make_run(4)
    left, right = Figure(figsize=(14, 6)).subplots(1, 2)
    assert run.plot("slowdown", ax=left) is left
    bars = [patch for patch in left.patches if isinstance(patch, Rectangle)]
    assert [bar.get_width() for bar in bars] == pytest.approx([0, -0.01, -0.02, -0.03])
    assert [label.get_text() for label in left.get_yticklabels()] == run.jobs["name"].to_list()
    assert [bar.get_alpha() for bar in bars] == [1, 0.5, 1, 1], "job 1 compares nine iterations"
    assert "2 of the 3 jobs with enough iterations are" in left.get_title("left").replace("\n", " ")
    run.plot("interference", ax=right)
    (image,) = right.get_images()
    # Job a waits a + 2 b s for job b and has 4 ranks x 10 s.
    assert image.get_array()[1, 2] == pytest.approx(5 / 40)
    assert_texts_fit(figure_of(left))
    with pytest.raises(ResultsError, match="2 given"):
        run.plot("slowdown", ax=[left, right])
    with pytest.raises(fairlane.ScenarioError, match="latency"):
        run.plot("latency", ax=left)


def test_axes_without_anything_to_show_are_refused() -> None:
    run = make_run(3)
    silent = replace(run, interference=run.interference.clear(), jobs=run.jobs.with_columns(w=pl.lit(None, pl.Float64)))
    for name in ("slowdown", "interference"):
        with pytest.raises(fairlane.ScenarioError, match="nothing to show"):
            silent.plot(name, ax=Figure().subplots())


OWN = """
import altair
from matplotlib.figure import Figure

def chart(run):
    data = altair.InlineData(values=[{"w": w} for w in run.jobs["w"]])
    return altair.Chart(data).mark_point().encode(x="w:Q")

def axes(run, axes=None):
    axes = Figure().subplots() if axes is None else axes
    axes.plot(run.jobs["w"])
    return axes

def nothing(run):
    return None
"""


def test_figures_of_users_are_drawn_beside_those_of_views(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    simulated(tmp_path / "run", isolated=True)
    Path("own.py").write_text(OWN)
    asked = ["plot", "run", "--allow-code", "--out", "drawn"]
    asked += [f"--figure={name}" for name in ("own.py:chart", "slowdown", "own.py:axes")]
    for kind in ("png", "svg"):
        assert execute([*asked, "--format", kind]) == 0
        drawn = [Path("drawn") / f"{name}.{kind}" for name in ("chart", "slowdown", "axes")]
        assert sorted(capsys.readouterr().out.split()) == sorted(map(str, drawn))
        assert all(path.is_file() for path in drawn)
    assert_drawn(Path("drawn/slowdown.png"))
    assert execute([*asked[:3], "--figure=own.py:nothing"]) == 2
    assert "nothing to show" in capsys.readouterr().err


def test_a_dark_figure_has_light_ink(tmp_path: Path) -> None:
    run = make_run(3)
    for theme in THEMES:
        for transparent in (False, True):
            folder = tmp_path / f"{theme}-{transparent}"
            folder.mkdir()
            path = draw_into(folder, run, "interference", interference, Look(theme, transparent))
            assert path is not None
            corner = imread(path)[0, 0]
            assert (corner[3] == 0) == transparent
            if not transparent:
                assert (corner[:3].mean() < 0.2) == (theme == "dark")
    axes = interference(run)
    assert isinstance(axes, Axes)
    darken(figure_of(axes))
    assert axes.get_xticklabels()[0].get_color() != INK
