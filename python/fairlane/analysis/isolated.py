"""The isolated run of a job that is analysed: what an iteration of the co-run is compared with.

Iterations of a program differ: one may solve what another only smooths. So each is compared with the same iteration of
the same job alone on its hosts, and never with another.
"""

from functools import cached_property

import polars as pl
from typing_extensions import override

from fairlane.analysis.again import Again
from fairlane.analysis.spans import Span
from fairlane.engine import Engine
from fairlane.scenario import Resolved

COMPARED = ("isolated_from_ps", "isolated_to_ps", "isolated_seconds", "added_seconds")
"""What ``beside_isolated`` adds to a table of spans."""


class Isolated(Again):
    """A job of a run alone on its hosts, with the same program; its tables have the numbers of the run."""

    @property
    @override
    def prefix(self) -> str:
        return "isolated-"

    @cached_property
    @override
    def _resolved(self) -> Resolved:
        whole: Resolved = super()._resolved
        return whole.alone(self.number)

    @override
    def _kept_by_the_run(self) -> pl.DataFrame | None:
        return None

    @override
    def _check_digest(self, engine: Engine) -> None:
        """Its digest is not known, but how many iterations it had may be."""
        known = self.run.jobs.filter(pl.col("name") == self.job)
        expected = known["isolated_iterations"].item() if "isolated_iterations" in known.columns else None
        if expected is not None and min(engine.progress()[0]) != expected:
            raise self._different()

    @property
    @override
    def _own_number(self) -> int:
        return 0


def beside_isolated(table: pl.DataFrame, alone: pl.DataFrame) -> pl.DataFrame:
    """Periods beside those of the same iterations, or rounds, of the isolated run; null where it has none.

    ``added_seconds`` is how much longer each takes.
    """
    same = alone.select(
        "iteration", *(pl.col(name).alias(f"isolated_{name}") for name in ("from_ps", "to_ps", "seconds"))
    )
    joined = table.join(same, on="iteration", how="left", maintain_order="left")
    return joined.with_columns(added_seconds=pl.col("seconds") - pl.col("isolated_seconds"))


def most_delayed(table: pl.DataFrame) -> tuple[Span, Span] | None:
    """The isolated run's span and the run's own, of the one to which most time was added; None if none has both."""
    both = table.drop_nulls("added_seconds").sort("added_seconds", "iteration", descending=[True, False])
    if both.is_empty():
        return None
    row = both.row(0, named=True)
    number, isolated = row["iteration"], [row[name] for name in COMPARED[:3]]
    return (
        Span("isolated run", number, *isolated),
        Span("most delayed", number, row["from_ps"], row["to_ps"], row["seconds"]),
    )
