"""Simulating until one job has ended, whatever the others still do."""

from collections.abc import Callable

import polars as pl

from fairlane import _core
from fairlane.errors import RunError
from fairlane.results.measured import frame
from fairlane.scenario import Resolved

__all__ = ["until_done"]

BUDGET = 200_000
"""Packet-hops of a slice, after each of which it is looked whether the job has ended."""


def until_done(resolved: Resolved, job: int, told: Callable[[float], None] | None = None) -> _core.Simulation:
    """Runs until the job with this number has ended or the scenario's duration is over. Raises ``RunError``.

    ``told`` is called with the share of the duration that is over.
    """
    try:
        engine = resolved.engine()
        while not (engine.finished or engine.now >= resolved.duration):
            engine.run_window_budget(resolved.duration, BUDGET)
            if told is not None:
                told(min(1.0, engine.now / resolved.duration))
            ranks = frame(engine.table("ranks")).filter(pl.col("job") == job)
            if (ranks["finished"] != 0).all():
                break
    except _core.RunError as error:
        raise RunError(str(error), slug=error.slug) from None
    return engine
