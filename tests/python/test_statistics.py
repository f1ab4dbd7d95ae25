"""Intervals against processes whose answer is known: AR(1), the M/D/1 queue, and made-up placements and seeds."""

from collections.abc import Callable
from itertools import pairwise

import numpy
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from fairlane.core.statistics import (
    FEWEST_RESAMPLED,
    Estimate,
    beyond_noise,
    difference,
    mean,
    of_ratios,
    over_replicates,
    quantile,
    ratio_change,
    spread,
    warm_up,
)

Floats = NDArray[numpy.float64]
Draw = Callable[[numpy.random.Generator], Estimate | None]

RUNS = 800
"""With a true coverage of 95% the share is between 93.0 and 97.0% with a probability of 99%."""


def ar1(rng: numpy.random.Generator, correlation: float, count: int, first: float | None = None) -> Floats:
    """An AR(1) process with mean 0 and variance 1: stationary, or from a ``first`` value."""
    from scipy.signal import lfilter

    noise = rng.standard_normal(count) * (1 - correlation**2) ** 0.5
    noise[0] = rng.standard_normal() if first is None else first
    return numpy.asarray(lfilter([1], [1, -correlation], noise))


def waits(rng: numpy.random.Generator, load: float, count: int, customers: int = 1) -> Floats:
    """Waiting times of an M/D/1 queue with unit service, from an empty queue (Lindley), averaged over ``customers``."""
    total = customers * count
    steps = 1 - rng.exponential(1 / load, total)
    walk = numpy.cumsum(steps)
    lowest = numpy.minimum.accumulate(numpy.minimum(walk, 0))
    found = walk - lowest
    return numpy.asarray(found.reshape(count, customers).mean(axis=1))


def coverage(draw: Draw, truth: float, runs: int = RUNS) -> float:
    rng = numpy.random.default_rng(24)
    inside = 0
    for _ in range(runs):
        found = draw(rng)
        assert found is not None
        assert found.low is not None
        assert found.high is not None
        inside += found.low <= truth <= found.high
    return inside / runs


@pytest.mark.parametrize(("correlation", "count"), [(0.0, 20), (0.0, 200), (0.3, 100), (0.6, 500), (0.9, 3000)])
def test_the_interval_of_the_mean_of_an_ar1_process_covers_it(correlation: float, count: int) -> None:
    found = coverage(lambda rng: mean(ar1(rng, correlation, count), skip=0), 0.0)
    assert 0.93 <= found <= 0.97


@pytest.mark.parametrize(("correlation", "count"), [(0.0, 200), (0.6, 1000)])
def test_the_warm_up_is_left_out_and_the_rest_covers_the_mean(correlation: float, count: int) -> None:
    """Values begin 40 deviations off; left in, they would shift the mean by more than the interval."""
    found = coverage(lambda rng: mean(ar1(rng, correlation, count, first=40.0)), 0.0)
    assert 0.93 <= found <= 0.97


@pytest.mark.parametrize(("load", "count"), [(0.5, 600), (0.8, 2000)])
@pytest.mark.long("core/statistics")
def test_the_interval_of_the_wait_in_an_m_d_1_queue_covers_that_of_pollaczek_and_khinchin(
    load: float, count: int
) -> None:
    """From an empty queue; each value is the mean wait of 50 customers, as an iteration is many messages."""
    truth = load / (2 * (1 - load))
    found = coverage(lambda rng: mean(waits(rng, load, count, 50)), truth)
    assert 0.93 <= found <= 0.97


@pytest.mark.parametrize(("load", "share"), [(0.5, 0.8), (0.5, 0.95), (0.8, 0.5)])
@pytest.mark.long("core/statistics")
def test_the_interval_of_a_quantile_of_waits_covers_it(load: float, share: float) -> None:
    """The truth is the share of a long run; batches of 500 customers of an M/D/1 queue are counted in fine buckets."""
    ends = numpy.arange(1, 10_000) / 500
    long = waits(numpy.random.default_rng(5), load, 4_000_000)
    truth = float(ends[numpy.searchsorted(ends, numpy.quantile(long, share))])

    def draw(rng: numpy.random.Generator) -> Estimate | None:
        batches = waits(rng, load, 500 * 60).reshape(60, 500)
        at = numpy.minimum(numpy.searchsorted(ends, batches), len(ends) - 1)
        counts = numpy.stack([numpy.bincount(row, minlength=len(ends)) for row in at])
        return quantile(list(ends), counts, share)

    assert 0.92 <= coverage(draw, truth, 200) <= 0.98


def test_what_a_pair_of_runs_has_in_common_does_not_widen_the_interval_of_their_ratio() -> None:
    """Both vary by 30% together and by 1% each: the ratio is known as if only the latter were there."""

    def draw(rng: numpy.random.Generator) -> Estimate | None:
        work = 1 + 0.3 * ar1(rng, 0.5, 200)
        alone, together = (scale * (work + 0.01 * rng.standard_normal(200)) for scale in (0.9, 1.0))
        return ratio_change(alone, together)

    assert 0.93 <= coverage(draw, -0.1) <= 0.97
    found = draw(numpy.random.default_rng(1))
    assert found is not None
    assert found.half_width == pytest.approx(1.97 * 0.9 * 2**0.5 * 0.01 / 200**0.5, rel=0.2)


@pytest.mark.parametrize(("placements", "seeds"), [(3, 4), (5, 1), (12, 5), (30, 3)])
@pytest.mark.parametrize("skewed", [False, True])
def test_the_interval_over_placements_and_seeds_covers_the_mean(placements: int, seeds: int, skewed: bool) -> None:
    """Seeds within a placement resemble each other; a skewed distribution is covered a little less."""

    def draw(rng: numpy.random.Generator) -> Estimate | None:
        between = rng.exponential(1, placements) - 1 if skewed else rng.standard_normal(placements)
        return over_replicates((between[:, None] + rng.standard_normal((placements, seeds))).tolist())

    runs = RUNS if placements < 10 else 300
    found = coverage(draw, 0.0, runs)
    assert (0.87 if skewed else 0.92) <= found <= 0.98


def test_values_that_do_not_vary_have_an_interval_of_no_width_and_no_warm_up() -> None:
    found = mean([0.1] * 100)
    assert found is not None
    assert (found.low, found.high) == pytest.approx((0.1, 0.1))
    assert (found.warm_up, found.count) == (0, 100)
    assert ratio_change([1.0] * 20, [2.0] * 20) == Estimate(-0.5, -0.5, -0.5, 0.0, 19, 20, 0)
    units = over_replicates([[2.0]] * 12)
    assert units is not None
    assert (units.low, units.high) == (2.0, 2.0)


def test_too_few_values_have_no_interval() -> None:
    assert mean([]) is None
    assert over_replicates([]) is None
    assert ratio_change([], []) is None
    assert quantile([1.0, 2.0], [[0, 0]], 0.5) is None
    short = mean([1.0, 2.0, 3.0])
    assert short == Estimate(2.0, count=3)
    assert short.half_width is None
    assert over_replicates([[1.0], [3.0]]) == Estimate(2.0, count=2)


@given(st.lists(st.floats(-1e3, 1e3), min_size=10, max_size=200))
def test_an_interval_holds_its_value_and_the_warm_up_is_at_most_half(series: list[float]) -> None:
    found = mean(series)
    assert found is not None
    assert 0 <= found.warm_up <= len(series) / 2
    assert found.low is None or found.high is None or found.low <= found.value <= found.high


def test_a_step_at_the_beginning_is_the_warm_up() -> None:
    noise = numpy.random.default_rng(1).normal(0, 0.1, 100)
    assert warm_up(numpy.where(numpy.arange(100) < 15, 5.0, 1.0) + noise) == 15
    assert warm_up(numpy.where(numpy.arange(100) < 15, 1.0, 5.0) + noise) == 15


def test_of_many_differences_without_an_effect_few_are_called_beyond_noise() -> None:
    """All hypotheses are true: the share of families with any discovery is at most 5%; real ones are found."""
    rng = numpy.random.default_rng(3)
    families = 200
    wrong = 0
    for _ in range(families):
        pairs = [(mean(rng.standard_normal(40), skip=0), mean(rng.standard_normal(40), skip=0)) for _ in range(8)]
        wrong += any(beyond_noise([difference(a, b) for a, b in pairs if a and b]))
    assert wrong / families <= 0.08
    base, near, far = (mean(rng.standard_normal(100) + shift, skip=0) for shift in (0.0, 0.0, 2.0))
    assert base is not None
    assert near is not None
    assert far is not None
    assert beyond_noise([difference(base, near), difference(base, far), Estimate(1.0)]) == [False, True, None]


def test_the_interval_of_a_difference_is_welchs() -> None:
    from scipy import stats

    rng = numpy.random.default_rng(8)
    first, second = rng.normal(0, 1, 12), rng.normal(0.5, 3, 20)
    expected = stats.ttest_ind(second, first, equal_var=False).confidence_interval()
    estimates = [
        Estimate.student(float(one.mean()), float(one.std(ddof=1)) / len(one) ** 0.5, len(one) - 1)
        for one in (first, second)
    ]
    found = difference(*estimates)
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high))


def test_a_quantile_that_few_counts_exceed_has_no_interval() -> None:
    counts = numpy.ones((20, 50))  # 1,000 counts
    values = [float(at) for at in range(50)]
    for share, known in ((0.99, True), (0.991, False), (0.01, True), (0.009, False)):
        found = quantile(values, counts, share)
        assert found is not None
        assert (found.low is not None) == known, share


def test_quantiles_are_those_of_the_counts_and_wider_where_batches_differ() -> None:
    values = [float(value) for value in range(1, 101)]
    same = quantile(values, numpy.ones((40, 100)), 0.9)
    assert same == Estimate(90.0, 90.0, 90.0, count=40)
    rng = numpy.random.default_rng(2)
    widths = []
    for most in (2, 20):
        shifts = rng.integers(0, most, 40)
        counts = numpy.stack([numpy.roll(numpy.ones(100) * (numpy.arange(100) < 70), shift) for shift in shifts])
        found = quantile(values, counts, 0.5)
        assert found is not None
        assert found.half_width is not None
        widths.append(found.half_width)
    assert all(narrow < wide for narrow, wide in pairwise(widths))


@pytest.mark.parametrize("count", [3, 5, 9, 12])
def test_intervals_of_ratios_are_positive_and_symmetric_on_the_log_scale(count: int) -> None:
    values = numpy.random.default_rng(count).lognormal(1.0, 1.5, count).tolist()
    found, plain = of_ratios(values), over_replicates([[value] for value in values])
    assert found is not None
    assert plain is not None
    assert found.value == plain.value == pytest.approx(numpy.mean(values))
    assert found.low is not None
    assert found.high is not None
    assert 0 < found.low < found.value < found.high
    if count < FEWEST_RESAMPLED:
        error = numpy.std(values, ddof=1) / numpy.sqrt(count) / numpy.mean(values)
        factor = numpy.exp(error * scipy.stats.t.ppf(0.975, count - 1))
        assert (found.low, found.high) == pytest.approx((found.value / factor, found.value * factor))
    else:
        assert found == plain


def test_ratios_of_one_value_or_without_variation_have_no_other_interval() -> None:
    assert of_ratios([2.0]) == over_replicates([[2.0]])
    assert of_ratios([2.0, 2.0, 2.0]) == over_replicates([[2.0]] * 3)
    assert of_ratios([]) is None


def test_the_spread_is_the_median_and_the_range() -> None:
    assert spread([5.0, 1.0, 2.0]) == (2.0, 1.0, 5.0)
    assert spread([]) is None
