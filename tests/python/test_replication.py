"""Means over placements and seeds of a study: what the outer units are, and what has an interval."""

from collections.abc import Sequence
from typing import Any

import polars as pl
import pytest
from scipy import stats

from fairlane.core.wording import seconds
from fairlane.study.replicates import PACE, estimate, outer_unit, over_points
from fairlane.views.tables import with_interval


def work(rows: Sequence[tuple[int, int, str, float | None]], **more: Any) -> pl.DataFrame:
    """Rows of a study's table: placement, seed, job, W."""
    found = pl.DataFrame(rows, schema=["placement", "seed", "name", "w"], orient="row")
    return found.with_columns(w_low=pl.col("w") - 0.01, w_high=pl.col("w") + 0.01, **more)


def test_the_outer_units_are_placements_and_their_values_the_means_over_seeds_and_jobs() -> None:
    rows = [
        (placement, seed, job, 0.1 * placement + 0.01 * seed + (0.004 if job == "b" else 0))
        for placement in (1, 2, 4)
        for seed in (1, 2)
        for job in ("a", "b")
    ]
    found = estimate(work(rows), "w", "placement")
    assert found is not None
    means = [0.1 * placement + 0.015 + 0.002 for placement in (1, 2, 4)]
    assert found.value == pytest.approx(sum(means) / 3)
    expected = stats.ttest_1samp(means, 0).confidence_interval()
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high))


def test_with_one_placement_seeds_are_the_outer_units() -> None:
    table = work([(0, seed, "a", 0.1 * seed) for seed in (1, 2, 3)])
    assert outer_unit(table) == "seed"
    assert outer_unit(pl.concat([table, table.with_columns(placement=pl.lit(1, pl.Int64))])) == "placement"
    found = estimate(table, "w", "seed")
    assert found is not None
    expected = stats.ttest_1samp([0.1, 0.2, 0.3], 0).confidence_interval()
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high))


def test_a_placement_with_more_seeds_has_no_more_weight() -> None:
    table = work([(1, 1, "a", 0.0), *((2, seed, "a", 0.3) for seed in range(1, 9))])
    found = estimate(table, "w", "placement")
    assert found is not None
    assert found.value == pytest.approx(0.15)


def test_one_run_of_one_job_has_its_own_interval_and_a_few_others_none() -> None:
    alone = estimate(work([(0, 1, "a", -0.1), (0, 2, "a", None)]), "w", "seed")
    assert alone is not None
    assert (alone.value, alone.low, alone.high) == pytest.approx((-0.1, -0.11, -0.09))
    two = estimate(work([(0, 1, "a", -0.1), (1, 1, "a", -0.2)]), "w", "placement")
    assert two is not None
    assert two.value == pytest.approx(-0.15)
    assert (two.low, two.high) == (None, None)
    assert estimate(work([(0, 1, "a", None)]).with_columns(w=pl.lit(None, pl.Float64)), "w", "seed") is None


def test_a_row_without_a_time_leaves_no_mean_time() -> None:
    rows = [(placement, 1, "a", 0.1) for placement in range(4)] + [(4, 1, "a", None)]
    table = work(rows).rename({"w": "iterations_per_second"})
    assert estimate(table, "iterations_per_second", "placement") is None
    assert estimate(work(rows), "w", "placement", complete=True) is None
    assert estimate(work(rows), "w", "placement") is not None


def test_groups_are_kept_apart() -> None:
    rows = [(placement, 1, job, value) for placement in range(4) for job, value in (("a", 0.1), ("b", -0.2))]
    found = over_points(work(rows), ["name"], ["w"])
    assert found["name"].to_list() == ["a", "b"]
    assert found["w"].to_list() == pytest.approx([0.1, -0.2])
    assert found["w_low"].to_list() == pytest.approx([0.1, -0.2])


def test_a_time_whose_interval_reaches_zero_is_shown_by_its_median_and_range() -> None:
    """Of 0.1, 0.2 and 9 s in three placements, half of the interval is 4.3 standard errors: more than the mean."""
    rows = [(placement, 1, time) for placement, time in enumerate([0.1, 0.2, 9.0])]
    table = pl.DataFrame(rows, schema=["placement", "seed", "seconds_per_iteration"], orient="row").with_columns(
        pl.lit(None, pl.Float64).alias(f"seconds_per_iteration_{end}") for end in ("low", "high")
    )
    row = over_points(table.with_columns(name=pl.lit("job")), ["name"], PACE[:1]).row(0, named=True)
    assert row["seconds_per_iteration_low"] < 0
    assert with_interval("seconds_per_iteration", seconds)(row) == "median 200 ms (100 ms to 9.00 s)"
