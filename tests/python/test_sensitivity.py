"""First-order indices from given data, on functions whose indices are known, and proportions with their interval."""

import numpy
import pytest
from scipy.stats import qmc

from fairlane.core.statistics.sensitivity import FEWEST_POINTS, bins, first_order, ranks, share

NOISE_RUNS = 60


def sample(inputs: int, count: int, seed: int = 1) -> "numpy.ndarray[tuple[int, int], numpy.dtype[numpy.float64]]":
    return numpy.asarray(qmc.Sobol(inputs, rng=seed).random_base2(count.bit_length() - 1))


def columns(rows: "numpy.ndarray[tuple[int, int], numpy.dtype[numpy.float64]]") -> dict[str, list[float]]:
    return {f"x{at}": rows[:, at].tolist() for at in range(rows.shape[1])}


def test_the_ishigami_function_has_the_indices_of_the_literature() -> None:
    x = numpy.pi * (2 * sample(3, 4096) - 1)
    y = numpy.sin(x[:, 0]) + 7 * numpy.sin(x[:, 1]) ** 2 + 0.1 * x[:, 2] ** 4 * numpy.sin(x[:, 0])
    found = first_order(columns(x), y.tolist())
    # With a = 7 and b = 0.1 (T. Ishigami and T. Homma 1990) the parts of the variance are:
    first, second = (1 + 0.1 * numpy.pi**4 / 5) ** 2 / 2, 7**2 / 8
    whole = 7**2 / 8 + 0.1 * numpy.pi**4 / 5 + 0.1**2 * numpy.pi**8 / 18 + 1 / 2
    assert found["x0"].index == pytest.approx(first / whole, abs=0.015)
    assert found["x1"].index == pytest.approx(second / whole, abs=0.02)
    assert found["x2"].index == pytest.approx(0, abs=0.005)
    assert [one.beyond_chance for one in found.values()] == [True, True, False], "the third acts with the first only"


def test_shares_of_a_sum_are_those_of_its_variances_also_with_few_points() -> None:
    weights = numpy.array([3.0, 2.0, 1.0, 0.0])
    true = weights**2 / (weights**2).sum()
    found, covered = [], numpy.zeros(4)
    for seed in range(40):
        rows = sample(4, 128, seed)
        indices = first_order(columns(rows), (rows @ weights).tolist(), seed=seed)
        found.append([one.index for one in indices.values()])
        covered += [one.low <= expected <= one.high for one, expected in zip(indices.values(), true, strict=True)]
    assert numpy.mean(found, axis=0) == pytest.approx(true, abs=0.05), "what varies within bins is missing"
    assert (covered >= 36).all(), "the 95% intervals cover the truth"


def test_pure_noise_is_beyond_chance_as_often_as_it_may_be() -> None:
    named = 0
    for seed in range(NOISE_RUNS):
        noise = numpy.random.default_rng(seed).normal(size=64)
        found = first_order(columns(sample(8, 64, seed)), noise.tolist(), seed=seed)
        named += any(one.beyond_chance for one in found.values())
    assert named <= 8, "5% of 60 are 3; more than 8 have a probability below 1%"


def test_levels_decide_a_yes_or_no() -> None:
    levels = ["a", "b", "c", "d"] * 16
    other = numpy.random.default_rng(3).random(64).tolist()
    found = first_order({"level": levels, "other": other}, [float(level in "ab") for level in levels])
    assert found["level"].index == pytest.approx(1)
    assert found["level"].beyond_chance
    assert not found["other"].beyond_chance


def test_the_same_data_have_the_same_indices() -> None:
    rows = sample(2, 64)
    values = (rows[:, 0] + numpy.random.default_rng(1).normal(size=64)).tolist()
    assert first_order(columns(rows), values) == first_order(columns(rows), values)


def test_nothing_is_said_of_few_points_or_of_results_that_are_all_the_same() -> None:
    assert first_order({"x": list(map(float, range(FEWEST_POINTS - 1)))}, [0.0, *[1.0] * (FEWEST_POINTS - 2)]) == {}
    assert first_order({"x": list(map(float, range(64)))}, [1.0] * 64) == {}


def test_bins_have_equal_counts_and_equal_values_stay_together() -> None:
    assert numpy.bincount(bins(list(map(float, range(30))), 3)).tolist() == [10, 10, 10]
    first, second, third, *_others = bins([1.0, 1.0, 1.0, 2.0, 3.0, 4.0], 3).tolist()
    assert first == second == third
    assert bins(["b", "a", "b"]).tolist() == [1, 0, 1]
    assert len({*bins(list(map(float, range(128)))).tolist()}) == 6


def test_ranks_order_infinite_values() -> None:
    assert ranks([1.0, float("inf"), 1.0, -5.0]).tolist() == [0.5, 0.875, 0.5, 0.125]


def test_a_proportion_has_wilsons_interval() -> None:
    found = share(8, 10)
    # E. B. Wilson 1927 with z = 1.96: centre (p + z²/2n) / (1 + z²/n), half-width z/(1 + z²/n) sqrt(p q / n + z²/4n²).
    z, p, n = 1.959964, 0.8, 10
    centre, half = (p + z**2 / (2 * n)) / (1 + z**2 / n), z / (1 + z**2 / n) * (p * 0.2 / n + z**2 / (4 * n**2)) ** 0.5
    assert (found.value, found.low, found.high) == pytest.approx((0.8, centre - half, centre + half), abs=1e-6)
    assert share(0, 5).low == 0
    assert share(5, 5).high == 1
