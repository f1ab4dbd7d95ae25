"""The input of a regressor: the counters, or one of the two parts of their robust PCA, of low rank and sparse.

Principal component pursuit, E. J. Candès, X. Li, Y. Ma, J. Wright, "Robust principal component analysis?", Journal of
the ACM 58(3), 2011: the minimum of ``|L|_* + weight |S|_1`` with ``L + S = X``, found by alternating directions
(section 5 there), over-relaxed, with a penalty that balances both residuals (S. Boyd et al., "Distributed optimization
and statistical learning via the alternating direction method of multipliers", 2011, section 3.4).

A later row is decomposed by itself: the nuclear norm is the minimum of ``tr(L W^-1 L^T) / 2 + tr(W) / 2`` over positive
W, so with the W of the first rows the problem separates into one for each row x: the minimum of
``sum(a_k^2 / strength_k) / 2 + weight |s|_1`` with ``x = sum(a_k axis_k) + s``. For the first rows the result is that
of the pursuit. Left out: missing entries, and noise as a third part; it goes into both.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Literal, Self

import numpy
from pydantic import Field, model_validator

from fairlane.core.errors import Problem
from fairlane.inputs.problems import Problems
from fairlane.learn.models import COUNTERS, Dims, Floats, Part, PerCounter

PartsName = Literal["base", "low-rank", "sparse"]
PARTS: tuple[PartsName, ...] = ("base", "low-rank", "sparse")
"""The counters themselves, and the two that add up to them."""
_RELAXED = 1.6
"""Boyd et al., section 3.4.3: 1.5 to 1.8 is faster than 1."""
_EVERY = 10
"""Iterations between adaptations of the penalty."""


@dataclass(frozen=True)
class Decomposition:
    """The result of the pursuit: the parts L and S, and what later rows are decomposed by.

    ``axes`` are the right singular vectors of L, a row for each, as many as its rank, ``strengths`` its singular
    values, and ``weight`` is that of the sparse part.
    """

    low_rank: Floats
    sparse: Floats
    axes: Floats
    strengths: Floats
    weight: float
    penalty: float
    """For the decomposition of later rows: it changes the speed of convergence only."""
    gap: float
    """Relative duality gap: how far the sum may be from the minimum, by a feasible dual point."""


def pursue(
    matrix: Floats, *, weight: float | None = None, tolerance: float = 1e-5, steps: int = 5_000
) -> Decomposition:
    """Decomposes a matrix X, in ``steps`` iterations at most; ``gap`` is what was reached.

    The ``weight`` of the sparse part is by default the paper's, 1 / sqrt(rows or columns, whichever is larger).
    ``tolerance`` is that of the relative duality gap, and of the relative difference between the matrix and the sum of
    its parts, which is then added to the low-rank one.
    """
    weight = weight or 1 / float(numpy.sqrt(max(matrix.shape)))
    size = float(numpy.linalg.norm(matrix)) or 1.0
    penalty, gap = _penalty(matrix), numpy.inf
    # The scaled dual: what has been missing so far, over the penalty.
    low = sparse = missed = numpy.zeros_like(matrix)
    for step in range(1, steps + 1):
        low, strengths = _shrunk(matrix - sparse + missed, 1 / penalty)
        relaxed = _RELAXED * low + (1 - _RELAXED) * (matrix - sparse)
        before, target = sparse, matrix - relaxed + missed
        missed = numpy.clip(target, -weight / penalty, weight / penalty)
        sparse = target - missed
        if step % _EVERY:
            continue
        primal = float(numpy.linalg.norm(matrix - low - sparse)) / size
        dual = float(numpy.linalg.norm(sparse - before)) / max(float(numpy.linalg.norm(missed)), 1e-300)
        objective = float(strengths.sum() + weight * numpy.abs(sparse).sum())
        gap = abs(objective - _bound(matrix, penalty * missed, weight)) / max(objective, 1e-300)
        if max(primal, gap) < tolerance:
            break
        if max(primal, dual) > 5 * min(primal, dual):
            factor = 1.5 if primal > dual else 1 / 1.5
            penalty, missed = penalty * factor, missed / factor
    _, strengths, axes = numpy.linalg.svd(low, full_matrices=False)
    rank = int((strengths > 1e-6 * max(strengths[0], 1e-300)).sum())
    return Decomposition(matrix - sparse, sparse, axes[:rank], strengths[:rank], weight, _penalty(matrix), gap)


def split(
    rows: Floats,
    axes: Floats,
    strengths: Floats,
    weight: float,
    penalty: float,
    *,
    tolerance: float = 1e-5,
    steps: int = 2_000,
) -> Floats:
    """The sparse part of later rows by a ``Decomposition``, each row by itself."""
    bound, kept = weight / penalty, penalty / (1 / strengths + penalty)
    onto = (axes.T * kept) @ axes
    parts = numpy.zeros_like(rows)
    live, given = numpy.arange(len(rows)), rows
    sparse, missed = numpy.zeros_like(rows), numpy.zeros_like(rows)
    for _ in range(steps):
        low = (given - sparse + missed) @ onto
        relaxed = _RELAXED * low + (1 - _RELAXED) * (given - sparse)
        target = given - relaxed + missed
        missed = numpy.clip(target, -bound, bound)
        before, sparse = sparse, target - missed
        off = numpy.maximum(numpy.abs(sparse - before), numpy.abs(given - low - sparse)).max(axis=1)
        if (done := off < tolerance).any():
            parts[live[done]] = sparse[done]
            live, given, sparse, missed = live[~done], given[~done], sparse[~done], missed[~done]
            if not len(live):
                return parts
    parts[live] = sparse
    return parts


def _penalty(matrix: Floats) -> float:
    """The paper's."""
    return matrix.size / (4 * float(numpy.abs(matrix).sum()) or 1.0)


def _shrunk(matrix: Floats, by: float) -> tuple[Floats, Floats]:
    """With singular values reduced by this, and these: by the Gram matrix of the narrower side."""
    tall = matrix if matrix.shape[0] >= matrix.shape[1] else matrix.T
    squares, vectors = numpy.linalg.eigh(tall.T @ tall)
    values = numpy.sqrt(numpy.maximum(squares, 0.0))
    kept = numpy.where(values > by, 1 - by / numpy.maximum(values, by), 0.0)
    product: Floats = tall @ ((vectors * kept) @ vectors.T)
    return product if tall is matrix else product.T, values * kept


def _bound(matrix: Floats, dual: Floats, weight: float) -> float:
    """A lower bound of the sum: by any dual point, made feasible."""
    tall = dual if dual.shape[0] >= dual.shape[1] else dual.T
    largest = float(numpy.sqrt(max(numpy.linalg.eigvalsh(tall.T @ tall)[-1], 0.0)))
    too_large = max(largest, float(numpy.abs(dual).max(initial=0.0)) / weight, 1.0)
    return float((dual * matrix).sum()) / too_large


class Scale(Part):
    """Counters less their mean, over their standard deviation: flits and stalls are of different size."""

    centre: PerCounter
    spread: Annotated[Floats, Dims((COUNTERS,), sign="positive")]
    """Its standard deviation; 1 for a constant."""

    @classmethod
    def fit(cls, rows: Floats) -> Self:
        """By these rows."""
        spread = rows.std(axis=0)
        # A constant's deviation is the rounding error of its mean.
        constant = spread <= 1e-12 * numpy.abs(rows).max(axis=0)
        return cls(centre=rows.mean(axis=0), spread=numpy.where(constant, 1.0, spread))

    def of(self, rows: Floats) -> Floats:
        """Scaled rows."""
        return (rows - self.centre) / self.spread


class Subspace(Part):
    """The low-rank part of the training rows, by which later ones are decomposed: see ``Decomposition``."""

    axes: Annotated[Floats, Dims(("rank", COUNTERS))]
    strengths: Annotated[Floats, Dims(("rank",), sign="positive")]
    weight: float = Field(gt=0)
    penalty: float = Field(gt=0)
    """Speed at which the decomposition of a row converges."""

    def sparse(self, scaled: Floats) -> Floats:
        """The sparse part of rows."""
        return split(scaled, self.axes, self.strengths, self.weight, self.penalty) if self.axes.size else scaled


class Parts(Part):
    """Turn counters into the input of a regressor: scaled, then the part of this name."""

    name: PartsName
    scale: Scale
    subspace: Subspace | None = None
    """None for the counters themselves."""

    @model_validator(mode="after")
    def _whole(self) -> Self:
        if (self.subspace is None) != (self.name == "base"):
            raise Problems(Problem("subspace", "missing, or there with the counters themselves"))
        return self

    @classmethod
    def fit(cls, rows: Floats, names: Sequence[PartsName] = PARTS) -> "dict[PartsName, tuple[Parts, Floats]]":
        """Those of these names, by default all three, each with its result for these rows."""
        scale = Scale.fit(rows)
        scaled = scale.of(rows)
        base: tuple[Parts, Floats] = (cls(name="base", scale=scale), scaled)
        if set(names) <= {"base"}:
            return {"base": base}
        pursuit = pursue(scaled)
        subspace = Subspace(
            axes=pursuit.axes, strengths=pursuit.strengths, weight=pursuit.weight, penalty=pursuit.penalty
        )
        every: dict[PartsName, tuple[Parts, Floats]] = {
            "base": base,
            "low-rank": (cls(name="low-rank", scale=scale, subspace=subspace), pursuit.low_rank),
            "sparse": (cls(name="sparse", scale=scale, subspace=subspace), pursuit.sparse),
        }
        return {name: every[name] for name in names}

    def of(self, rows: Floats) -> Floats:
        """The input of a regressor for these rows, each by itself."""
        scaled = self.scale.of(rows)
        if self.subspace is None:
            return scaled
        sparse = self.subspace.sparse(scaled)
        return sparse if self.name == "sparse" else scaled - sparse
