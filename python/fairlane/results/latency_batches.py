"""Intervals of latencies: what was counted from one of several instants to the next, in batches of simulated time.

Batches are equally long: they begin short, and whenever there are twice as many as wanted, any two neighbours become
one. So there are enough of them however early a simulation ends. They begin with the simulation; what comes after the
last whole batch is left out.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy
import polars as pl
from numpy.typing import NDArray

from fairlane.engine import Engine
from fairlane.engine.tables import frame
from fairlane.results.latency import KEY, QUANTILES, exact_of
from fairlane.results.schemas import ON_DEMAND, types
from fairlane.statistics import FEWEST, Estimate, quantile, ratio_change

Floats = NDArray[numpy.float64]

BATCHES = 24
"""How many batches there are at least, after the first ones."""

_SCHEMA = {
    name: kind
    for name, kind in types(ON_DEMAND["latency"]).items()
    if name in KEY or name.endswith(("_low_ps", "_high_ps"))
}
_HISTOGRAM = ("packets", "job", "kind_number")
"""The key of a histogram in numbers."""


@dataclass(frozen=True)
class Look:
    """What had been counted at one instant: by histogram and bucket, and the sum of each histogram."""

    counts: pl.DataFrame
    sums: pl.DataFrame

    @classmethod
    def at(cls, engine: Engine) -> Self:
        """What ``engine`` has counted so far."""
        counts = frame(engine.table("latency_counts")).rename({"of": "packets"})
        return cls(counts, exact_of(engine).with_columns(packets=(pl.col("of") == "packet").cast(pl.UInt8)))


class LatencyBatches:
    """Looks at what has been counted, at least ``BATCHES`` times in a simulation of ``shortest`` or more, ps."""

    def __init__(self, shortest: int) -> None:
        self._every = max(1, shortest // BATCHES)
        self._looks: list[Look] = []
        self.due = self._every
        """The next instant to look at, ps."""

    def look(self, engine: Engine) -> None:
        """Keeps what has been counted so far, once at an instant that is due."""
        if engine.now >= self.due:
            self._looks.append(Look.at(engine))
            if len(self._looks) == 2 * BATCHES:
                self._looks = self._looks[1::2]
                self._every *= 2
            self.due = (engine.now // self._every + 1) * self._every

    def table(self) -> pl.DataFrame:
        """The ends of the intervals of mean and quantiles, ps, by ``of``, ``job`` and ``kind``, where there are any."""
        looks = self._looks
        if len(looks) < FEWEST or looks[-1].sums.is_empty():
            return pl.DataFrame(schema=_SCHEMA)
        counts = _by_batch([look.counts for look in looks], (*_HISTOGRAM, "high"), "count")
        delivered, total = (_by_batch([look.sums for look in looks], _HISTOGRAM, name) for name in ("count", "sum"))
        last = looks[-1].counts.with_row_index()
        histograms = last.group_by(_HISTOGRAM, maintain_order=True).agg(pl.col("index").first(), pl.len(), "high")
        whose = looks[-1].sums.select(*KEY, *_HISTOGRAM[::2]).with_row_index("row")
        rows = []
        for row in whose.join(histograms, on=_HISTOGRAM, maintain_order="left").iter_rows(named=True):
            of_histogram = counts[:, row["index"] : row["index"] + row["len"]]
            found = {name: quantile(row["high"], of_histogram, share) for name, share in QUANTILES.items()}
            mean = _mean(total[:, row["row"]], delivered[:, row["row"]])
            rows.append({name: row[name] for name in KEY} | _ends({"mean": mean, **found}))
        return pl.DataFrame(rows, schema=_SCHEMA)


def _by_batch(looks: Sequence[pl.DataFrame], by: Sequence[str], name: str) -> Floats:
    """What was added to the column ``name`` in each batch (row), for each row of the last look (column)."""
    places = looks[-1].select(by).with_row_index()
    found = numpy.zeros((len(looks), places.height))
    for at, look in enumerate(looks):
        joined = look.select(*by, name).join(places, on=by)
        found[at, joined["index"].to_numpy()] = joined[name].to_numpy()
    return numpy.diff(found, axis=0, prepend=0.0)


def _mean(total: Floats, count: Floats) -> Estimate | None:
    change = ratio_change(total[count > 0], count[count > 0], skip=0)  # the sum over the count, less one
    return change.shifted(1.0) if change else None


def _ends(found: dict[str, Estimate | None]) -> dict[str, float | int | None]:
    """The columns of intervals; those of quantiles are whole picoseconds."""
    ends: dict[str, float | int | None] = {}
    for name, estimate in found.items():
        low, high = (estimate.low, estimate.high) if estimate else (None, None)
        for end, value in (("low", low), ("high", high)):
            ends[f"{name}_{end}_ps"] = value if name == "mean" or value is None else round(value)
    return ends
