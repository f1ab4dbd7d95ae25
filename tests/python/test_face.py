"""What users of Python see: runs in memory, one set of tables, figures on axes, short texts."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from matplotlib import pyplot
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import fairlane
from fairlane.core.errors import ResultsError, ScenarioError
from fairlane.results.run import Run
from fairlane.results.schemas import RUN, types
from pictures import assert_drawn
from samples import TREE

ROOT = Path(__file__).parent.parent.parent
SMALL = {"message_size": "4 KiB", "messages_per_iteration": 1}
JOBS = [
    {"name": "halo", "ranks": 8, "workload": {"name": "nearest_neighbor", "compute": "20 us", **SMALL}},
    {"name": "<load>", "ranks": 8, "workload": {"name": "flood_pairs", "compute": "10 us", **SMALL}},
]
EVERYTHING: dict[str, Any] = {
    "iterations": ["halo"],
    "interference_by_port": True,
    "record": {"job": "halo", "start": "100 us", "stop": "200 us"},
}


def scenario(**tables: Any) -> fairlane.Scenario:
    return fairlane.Scenario(fabric=TREE, jobs=JOBS, duration="300 us", **tables)


@pytest.fixture(scope="module")
def run() -> Run:
    return fairlane.run(scenario(observe=EVERYTHING, power={}))


@pytest.fixture(autouse=True)
def _close() -> Iterator[None]:
    yield
    pyplot.close("all")


def test_a_run_writes_draws_and_prints_nothing_unless_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    before = pyplot.get_fignums()  # of other tests in this process
    found = fairlane.run(scenario())
    assert (found.folder, list(tmp_path.iterdir()), tuple(capfd.readouterr())) == (None, [], ("", ""))
    assert pyplot.get_fignums() == before
    assert found.jobs["w"].null_count() == 0
    stored = found.save("kept")
    assert not list(tmp_path.glob("kept/*.png"))
    assert fairlane.load("kept").tables().keys() == found.tables().keys()
    assert stored.save("copied").query("select * from jobs").equals(found.jobs)
    assert Path("copied/scenario.toml").read_text() == Path("kept/scenario.toml").read_text()
    with pytest.raises(ResultsError, match="exists and is not an empty directory"):
        found.save("kept")
    with pytest.raises(ResultsError, match="give out="):
        fairlane.run(scenario(), figures=True)
    assert (tmp_path / "kept" / "slowdown.png") in [tmp_path / path for path in stored.draw()]


def test_the_example_of_the_page_on_results_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = (ROOT / "docs" / "results.md").read_text(encoding="utf-8")
    [example] = re.findall(r"^```python\n(.*?)^```", page, flags=re.MULTILINE | re.DOTALL)
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    exec(compile(example, "results.md", "exec"), names)
    assert names["left"].get_title() == "my title"
    pictures = list((tmp_path / "runs" / "mine").glob("*.png"))
    assert {picture.stem for picture in pictures} == {
        "calls",
        "interference",
        "iterations",
        "latency",
        "slowdown",
        "utilisation",
    }
    for picture in pictures:
        assert_drawn(picture)


def test_a_simulation_has_the_tables_of_a_run(run: Run) -> None:
    simulation = fairlane.Simulation(scenario(observe=EVERYTHING, power={}))
    simulation.run_for("300 us")
    found = simulation.result()
    assert found.meta.digest == run.meta.digest
    assert found.tables().keys() == run.tables().keys()
    for name, table in run.tables().items():
        same = [column for column in table.columns if name != "jobs" or "isolated" not in column]
        same = [column for column in same if name != "jobs" or not column.startswith(("w", "compared", "ten_"))]
        # Intervals of latencies need looks at a simulation while it runs.
        if name in ("latency", "latency_merged"):
            same = [column for column in same if "_low" not in column and "_high" not in column]
        assert found.tables()[name].schema == table.schema
        assert found.tables()[name].select(same).equals(table.select(same)), name
        assert simulation.table(name).equals(found.tables()[name])
        declared = {column: table.schema[column] for column in types(RUN[name])}
        assert declared == types(RUN[name])
    with pytest.raises(ScenarioError, match='did you mean "ranks"'):
        simulation.table("rank")
    with pytest.raises(ScenarioError, match="does not ask for this table"):
        simulation.table("samples")
    with pytest.raises(ResultsError, match="simulation under way"):
        found.save("anywhere")


def test_queueing_by_port_adds_up_to_that_of_the_jobs(run: Run) -> None:
    sums = "select victim, aggressor, sum(queueing_ps)::ubigint as queueing_ps from {} group by all order by all"
    by_port, in_all = (
        run.query(sums.format(table)).filter(pl.col("queueing_ps") > 0)
        for table in ("port_interference", "interference")
    )
    assert by_port.equals(in_all)
    assert by_port.height > 1


@pytest.mark.parametrize("figure", ["interference", "slowdown", "utilisation", "iterations", "latency", "power"])
def test_figures_are_charts_that_can_be_changed(run: Run, figure: str) -> None:
    made = run.plot(figure)
    assert made.properties(background="red").to_dict()["background"] == "red"


@pytest.mark.parametrize("figure", ["interference", "slowdown"])
def test_figures_are_drawn_on_axes_and_return_them(run: Run, figure: str) -> None:
    pyplot.close("all")  # those of other tests
    own = Figure(figsize=(16, 6), layout="constrained")
    given = own.subplots()
    assert run.plot(figure, ax=given) is given
    assert given.get_title("left")
    assert own.get_suptitle() == "", "the caller's figure is left alone"
    assert pyplot.get_fignums() == []
    with pytest.raises(ResultsError, match="axes: 2 given; the figure needs 1"):
        run.plot(figure, ax=[given, given])


def test_wrong_figures_are_refused(run: Run) -> None:
    assert "rank time" in run.plot().to_json()
    with pytest.raises(ScenarioError, match='did you mean "slowdown"'):
        run.plot("slowdon")
    with pytest.raises(ScenarioError, match="nothing to show"):
        run.plot("timeline")
    with pytest.raises(ScenarioError, match='"work": unknown figure; allowed: interference, slowdown, comparison,'):
        run.plot("work")
    with pytest.raises(ScenarioError, match="latency"):
        run.plot("latency", ax=Figure().subplots())


def test_texts_are_short_and_tables_of_notebooks_escaped(run: Run) -> None:
    made = scenario()
    simulation = fairlane.Simulation(made)
    fabric = simulation.scenario.fabric
    assert repr(fabric) == "<Fabric of 16 hosts, 6 switches, 64 links>"
    assert repr(made) == "<Scenario scenario: 2 jobs on fat_tree for 300 us>"
    assert repr(simulation) == "<Simulation of scenario: 2 jobs, 0 s simulated>"
    assert repr(run) == "<Run: scenario: 300 µs simulated, 2 jobs, seed 1>"
    for thing in (made, simulation, run):
        page = thing._repr_html_()
        assert page.count("<tr>") == 3, "a heading and two jobs"
        assert "&lt;load&gt;" in page
        assert len(page) < 1500
    assert fabric._repr_html_().count("<tr>") == 1 + len(fabric.describe().links)


def test_a_fabric_is_drawn_on_axes() -> None:
    fabric = fairlane.Fabric.build(fairlane.Simulation(scenario()).scenario.tables["fabric"])
    axes = Figure().subplots()
    assert fabric.plot(ax=axes) is axes
    assert [text.get_text() for text in axes.texts if text.get_text() == "hosts"] == ["hosts"]
    assert isinstance(fabric.plot(), Axes)
    assert len(pyplot.get_fignums()) == 1
