"""Figures: what is drawn when, and that what is drawn is what was measured."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from matplotlib.axes import Axes
from matplotlib.collections import PathCollection
from matplotlib.container import ErrorbarContainer
from matplotlib.figure import Figure
from matplotlib.image import imread
from matplotlib.patches import Rectangle

from fairlane.colours import THEMES
from fairlane.plot import draw_all, draw_into, interference, iterations, latency, slowdown, utilisation
from fairlane.plot.boxes import draw_boxes
from fairlane.plot.panels import Drawn, figure_of
from fairlane.plot.style import INK, styled
from fairlane.plot.theme import darken
from fairlane.results import ResultsError, Run, RunMeta
from fairlane.results.culprit import HINT
from fairlane.results.run import Source
from fairlane.views.look import Look
from pictures import assert_drawn, assert_texts_fit


def make_run(jobs: int, ports: int = 8) -> Run:
    """Jobs of two workloads; job a waits a + 2 b seconds for job b; ports of four classes, ever busier."""
    names = [f"job-{job}" for job in range(jobs)]
    cells = [(a, b) for a in range(jobs) for b in range(jobs)]
    waits = [float(a + 2 * b) for a, b in cells]
    classes = {"host up": (0, 1), "host down": (1, 0), "leaf up": (1, 2), "leaf down": (2, 1)}
    links = [name for name in classes for _ in range(ports)]
    levels = [classes[name] for name in links]
    share = np.linspace(0, 0.9, len(links))
    return Run(
        source=Source("", "{}"),
        meta=RunMeta(
            version="0",
            scenario="drawn",
            seed=1,
            digest="",
            duration_ps=10**13,
            simulated_ps=10**13,
            packet_hops=1,
            wall_s=1,
            cpu_s=1,
            started=datetime(2024, 1, 1, tzinfo=UTC),
            partial=False,
        ),
        jobs=pl.DataFrame(
            {
                "job": range(jobs),
                "name": names,
                "workload": ["flood" if job % 2 else "pairs" for job in range(jobs)],
                "ranks": [4] * jobs,
                "span_ps": [10**13] * jobs,
                "isolated_iterations": [20] * jobs,
                "compared_iterations": [9 if job == 1 else 20 for job in range(jobs)],
                "ten_iterations_ps": pl.Series(
                    [11 * 10**9 if job == 1 else None for job in range(jobs)], dtype=pl.UInt64
                ),
                "stop_ps": pl.Series([None] * jobs, dtype=pl.UInt64),
                "seconds_per_iteration": [4e-5 + 1e-5 * job for job in range(jobs)],
                "seconds_per_iteration_low": [None if job == 1 else 3e-5 for job in range(jobs)],
                "seconds_per_iteration_high": [None if job == 1 else 6e-5 for job in range(jobs)],
                "w": [-0.01 * job for job in range(jobs)],
                "w_low": [-0.012 * job for job in range(jobs)],
                "w_high": [None if job % 3 == 2 else -0.008 * job for job in range(jobs)],
            }
        ),
        ranks=pl.DataFrame(),
        completions=pl.DataFrame(),
        calls=pl.DataFrame(),
        ports=pl.DataFrame(
            {
                "link": range(len(links)),
                "lane": [0] * len(links),
                "from_vertex": ["host 0"] * len(links),
                "to_vertex": ["switch 0"] * len(links),
                "class": links,
                "role": [name.split()[-1] for name in links],
                "from_level": [level for level, _ in levels],
                "to_level": [level for _, level in levels],
                "bandwidth_bps": [1] * len(links),
                **{name: [1] * len(links) for name in ("latency_ps", "bytes", "packets", "queueing_ps", "stalled_ps")},
                **{name: [1] * len(links) for name in ("port_active_ps", "port_stalled_ps")},
                "max_queue": [1] * len(links),
                "mean_queue": [0.1] * len(links),
                "port_active_share": share,
                "port_stalled_share": share / 10,
                "port_idle_share": 1 - 1.1 * share,
            }
        ),
        interference=pl.DataFrame(
            {
                "victim": [names[a] for a, _ in cells],
                "aggressor": [names[b] for _, b in cells],
                "queueing_s": waits,
                "share_of_time": [wait / 40 for wait in waits],
            },
            schema={"victim": pl.String, "aggressor": pl.String, "queueing_s": pl.Float64, "share_of_time": pl.Float64},
        ),
    )


@pytest.fixture(autouse=True)
def _style() -> Iterator[None]:
    with styled():
        yield


def drawn(axes: Drawn | None) -> Figure:
    assert axes is not None
    figure = figure_of(axes)
    figure.draw_without_rendering()
    return figure


def texts(figure: Figure) -> list[str]:
    return [text.get_text() for axes in figure.axes for text in axes.texts]


@pytest.mark.parametrize(("jobs", "ports"), [(2, 1), (8, 64), (40, 1500), (130, 8)])
def test_every_figure_is_drawn_at_every_size(tmp_path: Path, jobs: int, ports: int) -> None:
    stored = make_run(jobs, ports).save(tmp_path / "run")
    paths = draw_all(stored)
    assert [path.name for path in paths] == ["slowdown.png", "interference.png", "utilisation.png"]
    for path in paths:
        assert_drawn(path)
    for draw in (slowdown.draw, interference.draw, utilisation.draw):
        assert_texts_fit(drawn(draw(stored)))


def test_a_run_in_memory_cannot_be_drawn() -> None:
    with pytest.raises(ResultsError, match="only in memory"):
        draw_all(make_run(2))


def test_bars_are_as_long_as_w_and_grouped_by_workload() -> None:
    figure = drawn(slowdown.draw(make_run(4)))
    axes = figure.axes[0]
    bars = [patch for patch in axes.patches if isinstance(patch, Rectangle)]
    assert [bar.get_width() for bar in bars] == pytest.approx([0, -0.02, -0.01, -0.03])
    assert [label.get_text() for label in axes.get_yticklabels()] == ["job-0", "job-2", "job-1", "job-3"]
    # Job 1 compares nine iterations: it is hatched, named, and not counted.
    assert figure.get_suptitle() == "2 of the 3 jobs with enough iterations are slowed down, job-3 most: −3.0%"
    assert [bool(bar.get_hatch()) for bar in bars] == [False, False, True, False]
    assert "Hatched: fewer than 10 iterations in 1 job; 10 take about 11 ms." in figure.get_supxlabel()


def test_jobs_without_an_iteration_are_named_and_not_slowed_down() -> None:
    """They were drawn as -100 %."""
    run = make_run(3)
    last = pl.col("job") == 2
    jobs = run.jobs.with_columns(
        **{name: pl.when(last).then(None).otherwise(name) for name in ("w", "w_low", "w_high")},
        ten_iterations_ps=pl.when(last).then(pl.lit(77 * 10**9, pl.UInt64)).otherwise("ten_iterations_ps"),
    )
    figure = drawn(slowdown.draw(replace(run, jobs=jobs)))
    assert len([patch for patch in figure.axes[0].patches if isinstance(patch, Rectangle)]) == 2
    assert "Not shown, no iteration completed: job-2; 10 take at least 77 ms." in figure.get_supxlabel()
    few = jobs.filter(~last).with_columns(ten_iterations_ps=pl.lit(10**10, pl.UInt64))
    assert drawn(slowdown.draw(replace(run, jobs=few))).get_suptitle().startswith("Too few iterations")


def test_many_jobs_are_dots_one_for_each() -> None:
    axes = drawn(slowdown.draw(make_run(100))).axes[0]
    dots = [dots for dots in axes.collections if isinstance(dots, PathCollection)]
    assert [len(np.asarray(group.get_offsets())) for group in dots] == [50, 50]


def test_without_isolated_runs_there_is_no_slowdown(tmp_path: Path) -> None:
    run = make_run(3)
    run = replace(run, jobs=run.jobs.with_columns(w=pl.lit(None, pl.Float64)))
    assert slowdown.draw(run) is None
    stored = run.save(tmp_path / "run")
    (tmp_path / "run" / "slowdown.png").write_text("of an earlier run")
    assert [path.name for path in draw_all(stored)] == ["interference.png", "utilisation.png"]
    assert not (tmp_path / "run" / "slowdown.png").exists()


@pytest.mark.parametrize("horizontal", [True, False])
def test_boxes_lie_along_the_axis_of_their_values(horizontal: bool) -> None:
    axes = Figure().subplots()
    draw_boxes(axes, [np.arange(1.0, 6.0)], ["red"], positions=[7], width=0.6, horizontal=horizontal)
    (box,) = axes.patches
    extents = box.get_path().get_extents()
    along, across = (extents.intervalx, extents.intervaly)[:: 1 if horizontal else -1]
    assert along.tolist() == [2, 4], "the quartiles of 1, 2, 3, 4, 5"
    assert across.tolist() == pytest.approx([6.7, 7.3])


def test_cells_say_percent_and_seconds() -> None:
    figure = drawn(interference.draw(make_run(3)))
    # Job a waits a + 2 b s for job b and has 4 ranks x 10 s; the diagonal 3 a stands apart.
    numbers = texts(figure)
    expected = [(a, b) for a in range(3) for b in range(3) if a != b]
    for a, b in expected:
        assert f"{100 * (a + 2 * b) / 40:.1f}%" in numbers
        assert f"{a + 2 * b}.00" in numbers
    assert len(numbers) == 2 * len(expected) + 2 * 2 + 1, "job-0 does not wait for itself"
    title = figure.get_suptitle()
    behind = "Its largest queueing delay is behind job-1: 4.00 s, 10.0% of its rank time"
    assert title == f"job-2 loses most to other jobs: W −2.0%. {behind}"
    assert HINT in figure.get_supxlabel().replace("\n", " ")


def test_cells_say_milliseconds_where_seconds_are_few() -> None:
    run = make_run(3)
    short = replace(run, interference=run.interference.with_columns(pl.col("queueing_s") / 1000))
    numbers = texts(drawn(interference.draw(short)))
    assert {"1.00", "2.00", "4.00", "5.00"} <= set(numbers), "a + 2 b thousandths of a second"
    assert not {"0.00", "0.01"} & set(numbers)


def test_a_large_matrix_has_percentages_and_a_huge_one_says_where_they_are() -> None:
    figure = drawn(interference.draw(make_run(13)))
    assert len(texts(figure)) == 13 * 13, "percentages alone, also of a job's own packets"
    assert "12.5" in texts(figure), "job 1 waits 1 + 2 x 2 = 5 s for job 2, in 40 s of rank time"
    assert "Queueing delays in seconds: table interference" in figure.get_supxlabel()
    larger = drawn(interference.draw(make_run(31)))
    assert texts(larger) == []
    assert "Numbers: table interference of the run" in larger.get_supxlabel()
    huge = drawn(interference.draw(make_run(80)))
    assert [label.get_text() for label in huge.axes[0].get_yticklabels()] == ["pairs", "flood"]


@pytest.mark.parametrize(("factor", "scale"), [(3, "linear"), (300, "log")])
def test_iterations_that_differ_much_are_on_a_logarithmic_axis(factor: int, scale: str) -> None:
    times = pl.DataFrame({"name": "job-0", "time_s": np.geomspace(1e-5, factor * 1e-5, 50)})
    table = times.with_columns(job=0, rank=0, iteration=pl.int_range(50))
    figure = drawn(iterations.draw(replace(make_run(2), iterations=table)))
    assert figure.axes[0].get_xscale() == scale
    assert ("logarithmic" in figure.axes[0].get_xlabel()) == (scale == "log")
    assert_texts_fit(figure)


def whiskers(axes: Axes) -> list[list[list[float]]]:
    """The whiskers of each series of points, as their ends [x, y]; a point without an interval has one of no length."""
    found = [bars.lines[2] for bars in axes.containers if isinstance(bars, ErrorbarContainer)]
    return [np.asarray([line.tolist() for line in of[0].get_segments()]).reshape(-1, 4).tolist() for of in found]


def test_the_mean_time_of_a_job_has_its_interval_in_the_figure() -> None:
    times = pl.DataFrame({"name": ["job-0", "job-1"] * 20, "time_s": np.linspace(2e-5, 8e-5, 40)})
    table = times.with_columns(job=0, rank=0, iteration=pl.int_range(40))
    figure = drawn(iterations.draw(replace(make_run(2), iterations=table)))
    assert "[µs]" in figure.axes[0].get_xlabel()
    (first,), (second,) = whiskers(figure.axes[0])
    assert first == pytest.approx([30, 0, 60, 0])
    assert second == pytest.approx([50, 1, 50, 1]), "no interval"


NAMES = ("mean", "p50", "p99", "p999")


def latencies(jobs: int, factor: float = 4) -> pl.DataFrame:
    """Messages of jobs whose 99% quantile is 10 us and more; the last job has no intervals."""
    rows: list[dict[str, Any]] = [
        {"of": of, "level": level, "label": f"{level}-{number}", "count": 1000, "min_ps": 1, "max_ps": 10**9}
        | {f"{name}_ps": at * (1000 if of == "packet" else 1) for name, at in zip(NAMES, places, strict=True)}
        | {f"{name}_low_ps": None if number == jobs - 1 else at * 0.9 for name, at in zip(NAMES, places, strict=True)}
        | {f"{name}_high_ps": None if number == jobs - 1 else at * 1.2 for name, at in zip(NAMES, places, strict=True)}
        for of in ("message", "packet")
        for level in ("job", "workload")
        for number in range(jobs)
        for places in [[10**6 * (1 + number) * 10 * share for share in (2 / factor, 1 / factor, 1.0, 1.0)]]
    ]
    return pl.DataFrame(rows, infer_schema_length=None)


def test_latencies_have_whiskers_by_job() -> None:
    figure = drawn(latency.draw(replace(make_run(3), latency_merged=latencies(3))))
    (axes,) = figure.axes
    assert [label.get_text() for label in axes.get_yticklabels()] == ["job-0", "job-1", "job-2"]
    assert figure.get_suptitle() == "job-2 has the longest tail: 99% within 30.0 µs"
    assert axes.get_xscale() == "log"
    ends = [[row[::2] for row in series] for series in whiskers(axes)]
    for series, middle in zip(ends, (5, 2.5, 10, 10), strict=True):
        assert series == [
            pytest.approx([middle * 0.9, middle * 1.2]),
            pytest.approx([2 * middle * 0.9, 2 * middle * 1.2]),
            pytest.approx([3 * middle] * 2),
        ]
    assert_texts_fit(figure)
    close = drawn(latency.draw(replace(make_run(1), latency_merged=latencies(1))))
    assert close.axes[0].get_xscale() == "linear"
    many = drawn(latency.draw(replace(make_run(50), latency_merged=latencies(50))))
    assert [label.get_text() for label in many.axes[0].get_yticklabels()] == [f"workload-{at}" for at in range(10, 50)]
    assert "The 10 workloads with the shortest tails" in many.get_supxlabel().replace("\n", " ")


def test_a_run_without_messages_has_no_figure_of_latencies() -> None:
    assert latency.draw(make_run(2)) is None
    silent = latencies(2).filter(of="packet")
    assert latency.draw(replace(make_run(2), latency_merged=silent)) is None


def test_a_matrix_that_was_not_observed_is_not_drawn() -> None:
    run = make_run(3)
    assert interference.draw(replace(run, interference=run.interference.clear())) is None


def test_a_dot_for_every_port_in_order_of_level() -> None:
    figure = drawn(utilisation.draw(make_run(2, 16)))
    labels = [label.get_text() for label in figure.axes[0].get_yticklabels()]
    assert labels == ["host up\n16 ports", "host down\n16 ports", "leaf up\n16 ports", "leaf down\n16 ports"]
    busy = [np.asarray(dots.get_offsets())[:, 0] for dots in figure.axes[0].collections]
    np.testing.assert_allclose(np.concatenate(busy), np.linspace(0, 0.9, 64))
    stalled = [np.asarray(dots.get_offsets())[:, 0] for dots in figure.axes[1].collections]
    np.testing.assert_allclose(np.concatenate(stalled), np.linspace(0, 0.09, 64))


def test_a_dark_figure_has_light_ink_and_keeps_numbers_on_cells(tmp_path: Path) -> None:
    run = make_run(3)
    for theme in THEMES:
        for transparent in (False, True):
            folder = tmp_path / f"{theme}-{transparent}"
            folder.mkdir()
            path = draw_into(folder, run, "interference", interference.draw, Look(theme, transparent))
            assert path is not None
            corner = imread(path)[0, 0]
            assert (corner[3] == 0) == transparent
            if not transparent:
                assert (corner[:3].mean() < 0.2) == (theme == "dark")
    figure = drawn(interference.draw(run))
    before = [text.get_color() for text in figure.axes[0].texts]
    darken(figure)
    assert [text.get_color() for text in figure.axes[0].texts] == before
    assert figure.axes[0].get_xticklabels()[0].get_color() != INK


def test_the_bar_of_a_mean_whose_interval_reaches_zero_is_the_range() -> None:
    """Microseconds: a mean of 381 with an interval of 422 more and less; half of the messages take at most 50."""
    numbers = {
        "mean": 381.0,
        "mean_low": -41.0,
        "mean_high": 803.0,
        "p50": 50,
        "p99": 900,
        "p999": 950,
        "min": 2,
        "max": 990,
    }
    ends = {f"{name}_{end}": None for name in ("p50", "p99", "p999") for end in ("low", "high")}
    row = {f"{name}_ps": None if value is None else 10**6 * value for name, value in (numbers | ends).items()}
    table = pl.DataFrame([{"of": "message", "level": "job", "label": "job-0", "count": 9, **row}])
    figure = drawn(latency.draw(replace(make_run(1), latency_merged=table)))
    bars = [line.get_xdata() for container in figure.axes[0].containers[:1] for line in container[1]]
    assert np.concatenate([np.asarray(ends, float) for ends in bars]).tolist() == pytest.approx([2.0, 990.0])
