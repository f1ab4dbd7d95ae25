"""Robust PCA and clusters of runs: matrices with known parts, distances by hand, places of runs known and new."""

from collections.abc import Iterator
from itertools import product

import numpy as np
import pytest
from numpy.typing import NDArray

from counters import run_of
from fairlane.core.errors import ScenarioError
from fairlane.learn.models import one_thread
from fairlane.learn.predict.clusters import Clusters, Shape, distances, shapes
from fairlane.learn.predict.parts import Parts, Scale, pursue, split

pytest.importorskip("sklearn")
Floats = NDArray[np.float64]


@pytest.fixture(autouse=True)
def on_one_thread() -> Iterator[None]:
    with one_thread():
        yield


def known(rows: int = 200, columns: int = 60, rank: int = 2) -> tuple[Floats, Floats]:
    """A matrix of low rank, and a sparse one."""
    rng = np.random.default_rng(3)
    low = rng.normal(size=(rows, rank)) @ rng.normal(size=(rank, columns))
    return low, np.where(rng.random((rows, columns)) < 0.05, 10 * rng.normal(size=(rows, columns)), 0)


@pytest.mark.parametrize("turned", [False, True])
def test_known_parts_are_found_again(turned: bool) -> None:
    low, sparse = (part.T if turned else part for part in known())
    found = pursue(low + sparse, tolerance=1e-7)
    assert np.linalg.norm(found.low_rank - low) < 1e-5 * np.linalg.norm(low)
    assert np.linalg.norm(found.sparse - sparse) < 1e-5 * np.linalg.norm(sparse)
    assert len(found.axes) == len(found.strengths) == 2
    assert np.abs(found.low_rank + found.sparse - low - sparse).max() < 1e-12
    assert found.gap < 1e-7


def test_no_other_pair_of_parts_has_a_smaller_sum() -> None:
    matrix = np.random.default_rng(4).normal(size=(60, 12)) + 3 * np.random.default_rng(5).normal(size=(60, 1))
    found = pursue(matrix, tolerance=1e-7)

    def total(sparse: Floats) -> float:
        return float(np.linalg.norm(matrix - sparse, "nuc") + np.abs(sparse).sum() * found.weight)

    least = total(found.sparse)
    assert found.gap < 1e-6
    rng = np.random.default_rng(6)
    for size in (1e-3, 1e-2, 0.1):
        others = [total(found.sparse + size * rng.normal(size=matrix.shape)) for _ in range(20)]
        assert min(others) > least * (1 - 1e-6)


def test_rows_that_took_part_get_back_what_the_pursuit_said_of_them() -> None:
    rng = np.random.default_rng(7)
    matrix = rng.normal(size=(200, 2)) @ rng.normal(size=(2, 15)) + 0.2 * rng.normal(size=(200, 15))
    matrix += np.where(rng.random(matrix.shape) < 0.05, 5.0, 0)
    found = pursue(matrix, tolerance=1e-9, steps=50_000)
    again = split(matrix, found.axes, found.strengths, found.weight, found.penalty, tolerance=1e-9, steps=50_000)
    assert np.abs(again - found.sparse).max() < 1e-3
    assert np.abs(again - found.sparse).mean() < 1e-5


def test_a_later_row_of_the_same_kind_is_taken_apart_by_itself() -> None:
    low, sparse = known(rows=220)
    found = pursue((low + sparse)[:200], tolerance=1e-8)
    later = split((low + sparse)[200:], found.axes, found.strengths, found.weight, found.penalty)
    assert np.linalg.norm(later - sparse[200:]) < 0.02 * np.linalg.norm(sparse[200:])
    alone = split((low + sparse)[210:211], found.axes, found.strengths, found.weight, found.penalty)
    assert np.abs(alone - later[10]).max() < 1e-10
    longer = split((low + sparse)[200:], found.axes, found.strengths, found.weight, found.penalty, steps=20_000)
    assert (longer == later).all(), "each row ends when it has converged, and steps are not used up"


def test_counters_that_never_change_and_matrices_of_zeros_do_no_harm() -> None:
    rows = np.random.default_rng(8).random((50, 6))
    rows[:, 2] = 7e8
    for name, (made, seen) in Parts.fit(rows).items():
        assert np.isfinite(seen).all(), name
        assert np.abs(made.of(rows) - seen).max() < 1e-2
    assert not pursue(np.zeros((20, 4))).sparse.any()
    assert not Parts.fit(np.ones((20, 4)))["sparse"][1].any()


def test_the_distance_is_the_papers() -> None:
    from scipy.integrate import quad
    from scipy.linalg import subspace_angles
    from scipy.stats import norm

    one, other = Shape.of(run_of(0, 1, seed=1) + 0.5), Shape.of(run_of(3, 1.3, seed=2) + 0.3)
    angles = subspace_angles(np.array(one.axes).T, np.array(other.axes).T)[::-1]
    expected = 0.0
    for angle, m1, v1, m2, v2 in zip(angles, one.mean, one.variance, other.mean, other.variance, strict=True):
        first, second = norm(m1, v1**0.5), norm(m2, v2**0.5)
        ends = min(m1, m2) - 9 * max(v1, v2) ** 0.5, max(m1, m2) + 9 * max(v1, v2) ** 0.5
        points = sorted({m1, m2})

        def both(x: float, first: object = first, second: object = second) -> float:
            ratio = first.logpdf(x) - second.logpdf(x)  # type: ignore[attr-defined]
            return float((first.pdf(x) - second.pdf(x)) * ratio)  # type: ignore[attr-defined]

        expected += angle * quad(both, *ends, points=points, limit=400)[0] / 5
    found = distances([one, other], [one, other])
    assert found[0, 1] == pytest.approx(expected, rel=1e-5)
    assert found[1, 0] == pytest.approx(found[0, 1])
    assert np.diag(found) == pytest.approx(0, abs=1e-6)


def test_the_distance_does_not_hang_on_the_signs_of_axes() -> None:
    rows = run_of(0, 1, seed=1) + 0.5
    mirrored = Shape.of(rows[::-1])
    assert distances([Shape.of(rows)], [mirrored])[0, 0] == pytest.approx(0, abs=1e-6)
    assert min(mirrored.mean) >= 0


def test_two_kinds_of_runs_are_told_apart_and_new_ones_are_placed_among_them() -> None:
    runs = [run_of(3 * (number % 2), 1, seed=number) + 8 * (number % 2) for number in range(26)]
    rows, run = np.concatenate(runs), np.repeat(np.arange(26), 15)
    scale = Scale.fit(rows)
    every = shapes(scale.of(rows), run, [str(number) for number in range(26)])
    between = distances(every, every[:20])
    made, labels = Clusters.fit(scale, every[:20], between[:20], 2, seed=1)
    assert labels.tolist() == [0, 1] * 10
    assert made.nearest(between).tolist() == [0, 1] * 13
    # Bengio et al.: a training point's extension is its own eigenvector's entry.
    assert np.abs(made.places(between[:20]) - np.array(made.vectors)).max() < 1e-9
    assert made.of(rows[-15:], np.zeros(15, int), ["new"]).tolist() == [1] * 15


def test_a_run_with_too_few_timesteps_is_named() -> None:
    rows = np.random.default_rng(1).random((17, 8))
    run = np.repeat([0, 1], [12, 5])
    with pytest.raises(ScenarioError, match=r'run = "short": has 5 timesteps, too few .* allowed: 6 timesteps or more'):
        shapes(rows, run, ["long", "short"])
    with pytest.raises(ScenarioError, match="at least 5 counters"):
        shapes(rows[:, :4], run, ["long", "short"])


def test_more_clusters_than_can_be_told_apart_are_refused_or_made() -> None:
    """Whatever the runs are like, the clusters that are asked for are there, and none is empty."""
    for count, seed in product((2, 3), range(3)):
        runs = [run_of(0, 1, seed=100 * seed + number) for number in range(8)]
        every = [Shape.of(rows) for rows in runs]
        made, labels = Clusters.fit(Scale.fit(np.concatenate(runs)), every, distances(every, every), count, seed)
        assert sorted(set(labels.tolist())) == list(range(count))
        assert len(made.centres) == count
