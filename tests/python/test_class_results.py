"""Results by traffic class: what is counted of a job is divided among its classes, and nothing else changes."""

from pathlib import Path
from typing import Any

import polars as pl
import pytest

import fairlane
from fairlane import Run, Scenario, Simulation
from fairlane.results.run import load_run
from fairlane.views.kinds import draw
from fairlane.views.run import view
from pictures import assert_drawn

RANKS, MTU, HEADER = 8, 4096, 26
CLASSES: dict[str, Any] = {
    "rows": {"job": "transform", "communicator": "row", "operation": "alltoall"},
    "small": {"size": {"up_to": "256 B"}},
    "unused": {"job": "reads", "operation": "scan"},
}
"""The all-to-all of rows of ``fft``, and what is small; others have no class."""


def scenario(classes: dict[str, Any], **tables: Any) -> Scenario:
    """Two jobs whose hosts share the links between two switches."""
    return Scenario(
        fabric={"topology": "fat_tree", "hosts": 16, "leaf_down": 8, "leaf_up": 2},
        qos={"service_levels": 2},
        classes=classes,
        jobs=[
            {"name": "transform", "ranks": RANKS, "workload": "fft", "placement": "random"},
            {"name": "reads", "ranks": RANKS, "workload": "flood_pairs", "placement": "random"},
        ],
        duration="300 us",
        **tables,
    )


@pytest.fixture(scope="module")
def run() -> Run:
    return fairlane.run(scenario(CLASSES))


def table(run: Run, name: str) -> pl.DataFrame:
    found: pl.DataFrame | None = getattr(run, name)
    assert found is not None
    return found


def test_classes_divide_what_is_counted_of_their_jobs(run: Run) -> None:
    classes = table(run, "classes")
    assert classes.select("name", "class").rows() == [
        ("transform", "rows"),
        ("transform", "small"),
        ("reads", None),
        ("reads", "small"),
        ("reads", "unused"),
    ]
    latency = table(run, "latency_merged").filter(level="job")
    for of, counted in (("message", "messages"), ("packet", "packets")):
        mean = f"{of}_mean_ps"
        total = (pl.col(mean) * pl.col(counted)).sum() / pl.col(counted).sum()
        sums = classes.group_by("name", maintain_order=True).agg(pl.col(counted).sum(), mean=total)
        expected = latency.filter(of=of).select("label", "count", "mean_ps").rows()
        assert [row[:2] for row in sums.rows()] == [row[:2] for row in expected]
        assert sums["mean"].to_list() == pytest.approx([row[2] for row in expected])
    unused = classes.filter(pl.col("class") == "unused").row(0, named=True)
    assert (unused["messages"], unused["packets"], unused["bytes"], unused["message_mean_ps"]) == (0, 0, 0, None)


def test_the_matrix_of_classes_adds_up_to_that_of_jobs(run: Run) -> None:
    cells = table(run, "class_interference")
    jobs = cells.group_by("victim", "aggressor").agg(pl.col("queueing_ps").sum()).sort("victim", "aggressor")
    expected = run.interference.filter(pl.col("queueing_ps") > 0).sort("victim", "aggressor")
    assert jobs.rows() == expected.select("victim", "aggressor", "queueing_ps").rows()
    assert cells.filter(pl.col("victim_class") == "rows", pl.col("aggressor") == "reads").height
    waits = cells.group_by("victim", "victim_class").agg(pl.col("queueing_ps").sum())
    of_classes = table(run, "classes").filter(pl.col("queueing_ps") > 0).select("name", "class", "queueing_ps")
    assert sorted(waits.rows(), key=str) == sorted(of_classes.rows(), key=str)


def test_counting_by_class_changes_no_result(run: Run) -> None:
    without = fairlane.run(scenario({}), isolated=False)
    assert run.meta.digest == without.meta.digest
    assert without.classes is None
    assert without.class_interference is None
    uncounted = fairlane.run(scenario(CLASSES, observe={"counters": False}), isolated=False)
    assert uncounted.classes is None


def test_the_messages_of_a_class_are_those_that_it_selects() -> None:
    """In an all-to-all of one block for each rank, a rank sends seven; with a header for each packet."""
    one = Scenario(
        fabric={"topology": "fat_tree", "hosts": RANKS, "levels": 1},
        mpi={"eager_threshold": "1 MiB"},
        classes={"all": {"operation": "alltoall"}},
        jobs=[
            {
                "name": "job",
                "ranks": RANKS,
                "workload": {
                    "name": "all_to_all",
                    "message_size": "32 KiB",
                    "messages_per_iteration": 1,
                    "compute": "1 us",
                },
                "stop": 3,
            }
        ],
    )
    simulation = Simulation(one)
    assert simulation.run_for("100 ms")
    (row,) = simulation.table("classes").to_dicts()
    sent = 3 * RANKS * (RANKS - 1)
    assert (row["class"], row["messages"], row["packets"]) == ("all", sent, 8 * sent)
    assert row["bytes"] == 8 * sent * (MTU + HEADER)


def test_the_slowdown_is_the_mean_latency_by_that_of_the_isolated_run(run: Run) -> None:
    classes = table(run, "classes").filter(pl.col("messages") > 0)
    expected = (classes["message_mean_ps"] / classes["isolated_message_mean_ps"]).to_list()
    assert classes["slowdown"].to_list() == expected
    only = scenario({"rows": CLASSES["rows"]})
    alone = fairlane.run(only.model_copy(update={"jobs": only.jobs[:1]}))
    assert table(alone, "classes")["slowdown"].to_list() == [1.0, 1.0]


def test_a_view_has_classes_and_pairs_of_them(run: Run, tmp_path: Path) -> None:
    shown = view({"run": run})
    tables = {one.title: one for one in shown.tables}
    (rows,) = [one.rows for title, one in tables.items() if title == "Traffic classes"]
    assert [row and row["class"] for row in rows][:3] == ["rows", "small", "no class"]
    (pairs,) = [one for title, one in tables.items() if title.startswith("Queueing delay by class")]
    largest = table(run, "class_interference")["queueing_s"].max()
    assert pairs.rows[0] is not None
    assert pairs.rows[0]["queueing_s"] == largest
    stored = run.save(tmp_path / "run")
    again = load_run(tmp_path / "run")
    assert table(again, "classes").equals(table(run, "classes"))
    (picture,) = draw([stored], ["classes"])
    assert_drawn(picture)
    both = view({"one": run, "other": again})
    assert {"one: Traffic classes", "other: Traffic classes"} <= {one.title for one in both.tables}
