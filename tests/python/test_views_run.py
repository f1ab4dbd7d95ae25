"""The view of runs: that what is shown is what was measured, at every size, alone and compared."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import fairlane.views.run.fabric
from fairlane import Run
from fairlane.core.tables import PS
from fairlane.model.fabric.places import places_of
from fairlane.model.fabric.view import Fabric
from fairlane.results.culprit import HINT
from fairlane.results.views import by_link
from fairlane.views import kinds as views
from fairlane.views.model import Chart, Custom, View
from fairlane.views.page import pack, page, unpack
from fairlane.views.rows import box_numbers
from fairlane.views.run.fabric import order_of
from made_runs import latencies, make_run
from pictures import assert_drawn
from report_runs import simulated


def view_of(*runs: Run) -> View:
    return views.view_of(runs, [f"run{at}" for at in range(len(runs))])


def chart_of(view: View, name: str) -> Chart:
    (found,) = [chart for chart in view.charts if chart.name == name]
    return found


def data_of(view: View, name: str) -> Any:
    (found,) = [part for part in view.parts if isinstance(part, Custom) and part.name == name]
    return found.data()


def drawn(chart: Chart, field: str) -> list[dict[str, Any]]:
    """The rows of the first layer that have a field."""
    spec = chart.spec.to_dict(validate=False)
    for rows in spec["datasets"].values():
        if rows and field in rows[0]:
            return list(rows)
    return []


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A small run in a folder."""
    return simulated(tmp_path_factory.mktemp("runs") / "small")


@pytest.fixture(scope="module")
def view(run: Run) -> View:
    return view_of(run)


@pytest.mark.parametrize(("jobs", "ports"), [(2, 1), (8, 64), (40, 1500), (130, 8)])
def test_every_picture_is_drawn_at_every_size(tmp_path: Path, jobs: int, ports: int) -> None:
    stored = make_run(jobs, ports).save(tmp_path / "run")
    paths = stored.draw()
    assert {path.name for path in paths} == {"slowdown.png", "interference.png", "utilisation.png"}
    for path in paths:
        assert_drawn(path)


def test_bars_are_as_long_as_w_and_grouped_by_workload() -> None:
    chart = chart_of(view_of(make_run(4)), "slowdown")
    rows = {row["job"]: row for row in chart.data}
    assert [rows[f"job-{at}"]["w"] for at in range(4)] == pytest.approx([0, -0.01, -0.02, -0.03])
    bars = [row for rows in chart.spec.to_dict()["datasets"].values() for row in rows if "zero" in row]
    assert [row["job"] for row in sorted(bars, key=lambda row: row["at"])][::1] == sorted(
        (row["job"] for row in bars), key=lambda name: (int(name[-1]) % 2, name)
    )
    # Job 1 compares nine iterations: it is dashed, named, and not counted.
    assert chart.sentence == "2 of the 3 jobs with enough iterations are slowed down, job-3 most: −3.0%."
    assert [rows[f"job-{at}"]["few"] for at in range(4)] == [False, True, False, False]
    assert "Dashed: fewer than 10 iterations in 1 job; 10 take about 11 ms." in chart.note


def test_jobs_without_an_iteration_are_named_and_not_slowed_down() -> None:
    """They were drawn as -100 %."""
    run = make_run(3)
    last = pl.col("job") == 2
    jobs = run.jobs.with_columns(
        **{name: pl.when(last).then(None).otherwise(name) for name in ("w", "w_low", "w_high")},
        ten_iterations_ps=pl.when(last).then(pl.lit(77 * 10**9, pl.UInt64)).otherwise("ten_iterations_ps"),
    )
    chart = chart_of(view_of(replace(run, jobs=jobs)), "slowdown")
    assert [row["job"] for row in chart.data] == ["job-0", "job-1"]
    assert "Not shown, no iteration completed: job-2; 10 take at least 77 ms." in chart.note
    few = jobs.with_columns(ten_iterations_ps=pl.lit(10**10, pl.UInt64))
    sentence = chart_of(view_of(replace(run, jobs=few)), "slowdown").sentence
    assert sentence.startswith("Fewer than 10 iterations: too few")


def test_many_jobs_are_dots_one_for_each() -> None:
    chart = chart_of(view_of(make_run(100)), "slowdown")
    rows = drawn(chart, "text0")
    assert len(rows) == 100
    assert {round(row["at"]) for row in rows} == {0, 1}, "a row for each workload"


def test_without_isolated_runs_there_is_no_slowdown(tmp_path: Path) -> None:
    run = make_run(3)
    run = replace(run, jobs=run.jobs.with_columns(w=pl.lit(None, pl.Float64)))
    stored = run.save(tmp_path / "run")
    (tmp_path / "run" / "slowdown.png").write_text("of an earlier run")
    assert {path.name for path in stored.draw()} == {"interference.png", "utilisation.png"}
    assert not (tmp_path / "run" / "slowdown.png").exists()


def test_colours_of_jobs_are_the_same_in_every_chart(view: View, run: Run) -> None:
    by_job: dict[str, set[str]] = {}
    for chart in view.charts:
        for rows in chart.spec.to_dict(validate=False)["datasets"].values():
            for row in rows:
                if "series" in row and row.get("job") in run.jobs["name"].to_list():
                    by_job.setdefault(row["job"], set()).add(row["series"])
        domains = re.findall(r"'domain': (\[[^]]*pairs'[^]]*\])", str(chart.spec.to_dict(validate=False)["layer"]))
        assert set(domains) <= {"['flood_pairs', 'all_to_all']"}, "all scales have the same order"
    assert by_job == {"pairs-0": {"flood_pairs"}, "pairs-1": {"flood_pairs"}, "total": {"all_to_all"}}


def test_cells_say_percent_and_the_time_in_a_fitting_unit() -> None:
    run = make_run(3)
    for factor, unit in ((1, "s"), (1e-3, "ms")):
        chart = chart_of(
            view_of(replace(run, interference=run.interference.with_columns(pl.col("queueing_s") * factor))),
            "interference",
        )
        cells = {(row["victim"], row["aggressor"]): row for row in drawn(chart, "shade")}
        # Job a waits a + 2 b s for job b and has 4 ranks x 10 s; the diagonal 3 a stands apart.
        for a in range(3):
            for b in range(3):
                cell = cells[f"job-{a}", "itself" if a == b else f"job-{b}"]
                assert cell["queueing_s"] == pytest.approx((a + 2 * b) * factor)
                assert cell["below"] == (f"{a + 2 * b}.00" if a + 2 * b else "")
        assert f"Small numbers: queueing delay, {unit}." in chart.note
        assert HINT in chart.note
    behind = "Its largest queueing delay is behind job-1: 4.00 s, 10.0% of its rank time"
    assert view_of(run).headline == f"job-2 loses most to other jobs: W −2.0%. {behind}."


def test_a_huge_matrix_is_by_workload_and_one_that_was_not_observed_is_not_drawn() -> None:
    rows = drawn(chart_of(view_of(make_run(80)), "interference"), "shade")
    assert {row["victim"] for row in rows} == {"pairs", "flood"}
    run = make_run(3)
    silent = view_of(replace(run, interference=run.interference.clear()))
    assert "interference" not in silent.pictures


@pytest.mark.parametrize(("factor", "scale"), [(3, "linear"), (30, "log"), (300, "log")])
def test_iterations_that_differ_much_are_on_a_logarithmic_axis(factor: int, scale: str) -> None:
    times = pl.DataFrame({"name": "job-0", "time_s": np.geomspace(1e-5, factor * 1e-5, 50)})
    table = times.with_columns(job=0, rank=0, iteration=pl.int_range(50))
    chart = chart_of(view_of(replace(make_run(2), iterations=table)), "iteration-times")
    found = set(re.findall(r"'scale': {'domain': \[[^]]*\], 'nice': False, 'type': '(\w+)'", str(chart.spec.to_dict())))
    assert found == {scale}
    (row,) = chart.data
    assert row["median"] == pytest.approx(np.median(times["time_s"].to_numpy()))
    (mean,) = drawn(chart, "mean")
    assert (mean["mean"], mean["mean_low"], mean["mean_high"]) == (4e-5, 3e-5, 6e-5)


def test_boxes_have_whiskers_of_tukey_or_at_percentiles() -> None:
    values = np.array([1.0, 2, 3, 4, 5, 30])
    tukey = box_numbers(values, 1.5)
    assert (tukey["low"], tukey["median"], tukey["high"]) == (1, 3.5, 5)
    assert box_numbers(np.arange(101.0), (1, 99)) == {"low": 1, "q1": 25, "median": 50, "q3": 75, "high": 99}


def test_latencies_have_whiskers_by_job() -> None:
    chart = chart_of(view_of(replace(make_run(3), latency_merged=latencies(3))), "latency")
    assert chart.sentence == "job-2 has the longest tail: 99% within 30.0 µs."
    rows = {(row["job"], row["mark"]): row for row in chart.data}
    for mark, middle in {"mean": 5, "50%": 2.5, "99%": 10}.items():
        for at in range(3):
            row = rows[f"job-{at}", mark]
            assert row["value"] == pytest.approx((at + 1) * middle * 1e-6)
            ends = (row["low"], row["high"])
            assert ends == (None, None) if at == 2 else ends == pytest.approx((row["value"] * 0.9, row["value"] * 1.2))
    many = chart_of(view_of(replace(make_run(50), latency_merged=latencies(50))), "latency")
    assert {row["job"] for row in many.data} == {f"workload-{at}" for at in range(10, 50)}
    assert "The 10 workloads with the shortest tails" in many.note
    silent = latencies(2).filter(of="packet")
    assert "latency" not in view_of(replace(make_run(2), latency_merged=silent)).pictures


def test_the_bar_of_a_mean_whose_interval_reaches_zero_is_the_range() -> None:
    """Microseconds: a mean of 381 with an interval of 422 more and less; half of the messages take at most 50."""
    ends = {"mean": 381.0, "mean_low": -41.0, "mean_high": 803.0, "p50": 50, "p99": 900, "p999": 950}
    numbers = (
        ends | {"min": 2, "max": 990} | {f"{q}_{end}": None for q in ("p50", "p99", "p999") for end in ("low", "high")}
    )
    row = {f"{name}_ps": None if value is None else 10**6 * value for name, value in numbers.items()}
    table = pl.DataFrame([{"of": "message", "level": "job", "label": "job-0", "count": 9, **row}])
    (mean,) = [
        row
        for row in chart_of(view_of(replace(make_run(1), latency_merged=table)), "latency").data
        if row["mark"] == "mean"
    ]
    assert (mean["shown"], mean["low"], mean["high"]) == pytest.approx((50e-6, 2e-6, 990e-6))


def test_a_dot_for_every_port_in_order_of_level() -> None:
    view = view_of(make_run(2, 16))
    for name, most in (("utilisation", 0.9), ("stalls", 0.09)):
        rows = drawn(chart_of(view, name), "value")
        assert sorted(row["value"] for row in rows) == pytest.approx(np.linspace(0, most, 64), abs=1e-4)
        order = dict.fromkeys(row["class"] for row in sorted(rows, key=lambda row: row["at"]))
        assert list(order) == ["host up", "host down", "leaf up", "leaf down"]
    many = drawn(chart_of(view_of(make_run(2, 1500)), "utilisation"), "value")
    assert len(many) == 4 * 200
    assert max(row["value"] for row in many) == pytest.approx(0.9), "the extremes are among them"


def test_messages_of_a_distribution_are_those_of_the_table(view: View, run: Run) -> None:
    assert run.latency_histogram is not None
    counts = run.latency_histogram.filter(of="message")
    for row in [row for row in chart_of(view, "histogram").data if row["job"] == "all jobs"]:
        above = int(counts.filter(pl.col("low_ps") * PS >= row["latency"] * 0.9999)["count"].sum())
        assert row["share"] == pytest.approx(above / int(counts["count"].sum()), rel=1e-3)


def test_parts_of_the_time_of_ranks_sum_to_it(view: View, run: Run) -> None:
    time = dict(zip(run.jobs["name"], (run.jobs["ranks"].cast(pl.Float64) * run.jobs["span_ps"] * PS), strict=True))
    calls = sum(row["share"] * time[row["job"]] for row in chart_of(view, "calls").data if row["part"] != "compute")
    assert calls == pytest.approx(run.calls["time_s"].sum(), rel=1e-9)
    for job in run.jobs["name"]:
        waits = sum(row["share"] for row in chart_of(view, "waits").data if row["job"] == job)
        assert waits == pytest.approx(1, abs=0.01)


def test_iterations_and_power_are_those_of_the_tables(view: View, run: Run) -> None:
    for job in run.jobs["name"]:
        rows = [row for row in chart_of(view, "iterations").data if row["job"] == job]
        spent = np.dot([row["time"] for row in rows], np.diff([1, *(row["iteration"] for row in rows)]))
        marks = run.completions.filter(name=job)["at_ps"]
        assert spent == pytest.approx((marks[-1] - marks[0]) * PS, rel=1e-3)
    assert run.power is not None
    power = chart_of(view, "power").data
    assert sum(row["mean_w"] * row["sockets"] for row in power) == pytest.approx(run.power["mean_w"].sum())


def test_several_runs_are_marks_of_the_same_rows() -> None:
    low, high = make_run(3), make_run(4)
    view = view_of(low, high)
    bars = drawn(chart_of(view, "slowdown"), "zero")
    assert {(row["run"], row["job"]) for row in bars} >= {("run0", "job-0"), ("run1", "job-0")}
    first = {row["run"]: row["at"] for row in bars if row["job"] == "job-0"}
    assert -0.5 < first["run0"] < first["run1"] < 0.5
    assert "run0, run1" in chart_of(view, "slowdown").note
    assert len(view.pictures["interference"]) == 2


def test_changes_between_two_runs_are_those_of_the_comparison(run: Run) -> None:
    chart = chart_of(view_of(run, run), "comparison")
    assert [row["change"] for row in chart.data] == [0] * run.jobs.height
    assert chart.title == "Changes from run1 to run0"


def test_packed_arrays_are_read_back() -> None:
    cases: list[tuple[str, list[float]]]
    cases = [("f32", [0.5, -2]), ("u8", [0, 255]), ("u16", [65535]), ("u32", [2**32 - 1]), ("i32", [-1])]
    for kind, values in cases:
        assert unpack(pack(values, kind)).tolist() == values


def test_delay_by_link_and_pair_sums_to_the_tables(run: Run, view: View) -> None:
    assert run.port_interference is not None
    cells = data_of(view, "fabric")["by_jobs"]
    assert cells["kept"] == 1
    delay = unpack(cells["queueing_s"])
    assert delay.sum() == pytest.approx(run.port_interference["queueing_s"].sum(), rel=1e-5)
    names = run.jobs["name"].to_list()
    for row in run.port_interference.filter(pl.col("queueing_ps") > 0).sample(5, seed=1).iter_rows(named=True):
        at = unpack(cells["link"]) == row["link"]
        for side in ("victim", "aggressor"):
            at &= unpack(cells[side]) == names.index(row[side])
        assert delay[at].tolist() == pytest.approx([row["queueing_s"]], rel=1e-6)
    matrix = data_of(view, "matrix")["own"]
    assert unpack(matrix["queueing_s"]).sum() == pytest.approx(run.interference["queueing_s"].sum(), rel=1e-5)


def test_links_and_lanes_have_what_ports_counted(run: Run, view: View) -> None:
    whole, data = by_link(run.ports), data_of(view, "fabric")
    found, fabric = data["measured"], data["fabric"]
    for name, column in {"active": "port_active_share", "stalled": "port_stalled_share", "bytes": "bytes"}.items():
        assert unpack(found[name]).tolist() == pytest.approx(whole[column].to_list(), rel=1e-6)
    assert unpack(found["lanes"]["bytes"]).sum() == pytest.approx(run.ports["bytes"].sum(), rel=1e-5)
    # The queue is the queueing delay divided by the time (Little's law).
    delay = unpack(found["queue"]).sum() * run.meta.simulated_s
    assert delay == pytest.approx(int(run.ports["queueing_ps"].sum()) * PS, rel=1e-4)
    names = fabric["hosts"] + fabric["switches"]
    ends = {side: unpack(fabric["links"][side]) for side in ("from", "to")}
    for row in whole.iter_rows(named=True):
        assert names[ends["from"][row["link"]]] == row["from_name"]
        assert names[ends["to"][row["link"]]] == row["to_name"]
        assert unpack(fabric["links"]["from_port"])[row["link"]] == row["from_port"]


@pytest.mark.parametrize("most", [400, 3])
def test_samples_are_those_of_the_table(run: Run, monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    monkeypatch.setattr(fairlane.views.run.fabric, "MOST_INTERVALS", most)
    assert run.samples is not None
    links = by_link(run.ports).height
    found = data_of(view_of(run), "fabric")["samples"]
    length = np.array(found["to_s"]) - np.array(found["from_s"])
    assert len(length) == (8 if most == 400 else 3)
    sample = run.samples.group_by("from_ps", "link").agg(
        pl.col("to_ps").first(), pl.col("port_active_share").first(), pl.col("mean_queue").sum()
    )
    for name, column in {"active": "port_active_share", "queue": "mean_queue"}.items():
        values = found[name]["max"] * (unpack(found[name]["roots"]).reshape(-1, links) / 255) ** 2
        # Rounding of a root by half a step moves its square by at most 1/255 of the largest.
        tolerance = length.sum() * found[name]["max"] / 255
        for link in range(links):
            rows = sample.filter(link=link)
            exact = (rows[column] * (rows["to_ps"] - rows["from_ps"]) * PS).sum()
            assert (values[:, link] * length).sum() == pytest.approx(exact, abs=tolerance)


def test_links_and_jobs_of_another_run_are_matched_by_name(run: Run) -> None:
    assert run.port_interference is not None
    links = by_link(run.ports).height
    # The same run with links numbered from the other end.
    turned = (links - 1 - pl.col("link")).cast(pl.UInt32)
    other = replace(
        run,
        ports=run.ports.with_columns(link=turned),
        port_interference=run.port_interference.with_columns(link=turned),
    )
    data = data_of(view_of(run, other), "fabric")
    assert data["compare"]["measured"]["active"] == data["measured"]["active"]
    assert unpack(data["compare"]["by_jobs"]["link"]).tolist() == unpack(data["by_jobs"]["link"]).tolist()
    assert data["compare"]["apart"] == 0
    renamed = replace(run, ports=run.ports.with_columns(link_name=pl.lit("x ") + pl.col("link_name")))
    assert data_of(view_of(run, renamed), "fabric")["compare"] is None


def test_adapters_of_hosts_are_rails_of_the_fabric(tmp_path: Path) -> None:
    text = """
    duration = "20 us"
    fabric = { topology = "fat_tree", hosts = 4, levels = 1, radix = 4, bandwidth = "100 Gb/s", rails = 2 }
    [[jobs]]
    ranks = 4
    workload = "flood_pairs"
    """
    run = simulated(tmp_path / "rails", text)
    view = view_of(run)
    rails = unpack(data_of(view, "fabric")["fabric"]["links"]["rail"])
    expected = by_link(run.ports)["rail"].fill_null(255)
    assert rails.tolist() == expected.to_list()
    assert any("2 adapters" in part.note for part in view.parts if isinstance(part, Custom))


def test_similar_jobs_are_neighbours_in_the_matrix() -> None:
    member = np.arange(8) % 2  # jobs of odd and of even numbers delay each other
    delays = (member[:, None] == member[None, :]).astype(float) - np.eye(8)
    order = [int(member[job]) for job in order_of(delays)]
    assert order in ([0] * 4 + [1] * 4, [1] * 4 + [0] * 4)
    assert order_of(np.zeros((4, 4))) == [0, 1, 2, 3]


FABRICS = [
    ("tree", {"topology": "fat_tree", "params": {"hosts": 64, "levels": 3, "radix": 8}, "routing": "d_mod_k"}),
    ("groups", {"topology": "dragonfly", "params": {"groups": 5, "switches_per_group": 4, "hosts_per_switch": 2,
                                                    "global_links": 1}, "routing": "minimal"}),
    ("groups", {"topology": "cascade", "params": {"groups": 2}, "routing": "minimal"}),
    ("grid", {"topology": "torus", "params": {"sides": [4, 3, 2], "hosts_per_switch": 2},
              "routing": "dimension_order"}),
    ("ring", {"topology": "slim_fly", "params": {"q": 5}, "routing": "minimal"}),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "spec"), FABRICS, ids=lambda value: value if isinstance(value, str) else "")
def test_every_vertex_has_a_place_of_its_own(kind: str, spec: dict[str, Any]) -> None:
    fabric = Fabric.build({**spec, "params": {"bandwidth": 10**11, **spec["params"]}})
    places = places_of(fabric)
    assert places.kind == kind
    every = np.concatenate([places.switches, places.hosts])
    assert every.shape == (fabric.switches + fabric.hosts, 2)
    assert np.isfinite(every).all()
    assert len(np.unique(every.round(9), axis=0)) == len(every)


@pytest.mark.long("views")
def test_a_thousand_hosts_and_a_hundred_jobs_fit_into_five_megabytes(tmp_path: Path) -> None:
    text = """
    duration = "10 us"
    [fabric]
    topology = "fat_tree"
    hosts = 1024
    levels = 3
    radix = 16
    [[jobs]]
    name = "job"
    count = 100
    ranks = 10
    workload = { name = "flood_pairs", compute = "1 us" }
    """
    run = simulated(tmp_path / "large", text, isolated=False)
    # Whatever the simulation gives, the tables are as full as they can be, of numbers that cannot be compressed.
    random = np.random.default_rng(1)
    links = by_link(run.ports).select("link", "class", "role", "link_name")
    jobs = run.jobs["name"].to_list()
    rows = 2 * fairlane.views.run.fabric.MOST_CELLS
    pairs = random.integers(0, len(jobs), (2, rows))
    at = random.integers(0, links.height, rows)
    cells = pl.DataFrame(
        {
            "link": pl.Series(at, dtype=pl.UInt32),
            "victim": [jobs[job] for job in pairs[0]],
            "aggressor": [jobs[job] for job in pairs[1]],
            "queueing_ps": pl.Series(random.integers(1, 10**12, rows), dtype=pl.UInt64),
        }
    ).with_columns(queueing_s=pl.col("queueing_ps") * PS)
    times = pl.DataFrame({"from_ps": np.arange(200, dtype=np.uint64) * 50_000}).with_columns(
        to_ps=pl.col("from_ps") + 50_000
    )
    samples = times.join(links, how="cross")
    samples = samples.with_columns(
        pl.Series(name, random.random(samples.height))
        for name in ("bytes", "port_active_share", "port_stalled_share", "mean_queue")
    )
    assert len(page(view_of(replace(run, port_interference=cells, samples=samples))).encode()) < 5_000_000
