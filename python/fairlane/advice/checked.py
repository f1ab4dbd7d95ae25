"""How good advice is: the advised alternative among all of them, each simulated longer and with other seeds."""

from dataclasses import dataclass

import polars as pl

__all__ = ["Checked", "checked_by"]

_KEYS = ("rails", "service_level", "placement")


@dataclass(frozen=True)
class Checked:
    """An advice held against simulations of all alternatives."""

    length: str
    """How long they were."""
    seeds: int
    """With how many seeds each, none of which the advice has seen."""
    rank: int
    """Place of the advised alternative, 1 for the best."""
    loss: float
    """How much longer an iteration takes with it than with the best; infinite if it is too long to be told."""
    mean_loss: float
    """How much longer it takes with an alternative that is chosen by lot; the mean."""
    inside: float
    """The part of these simulations whose time is in the interval that the advice gave for their alternative."""
    table: pl.DataFrame
    """The alternatives as they were simulated, the best first."""
    runs: pl.DataFrame
    """The simulations."""

    @property
    def best(self) -> str:
        """The best alternative, in words."""
        return ", ".join(f"level {one}" if isinstance(one, int) else one for one in self.table.row(0)[: len(_KEYS)])


def checked_by(advised: pl.DataFrame, simulated: pl.DataFrame, runs: pl.DataFrame, length: str, seeds: int) -> Checked:
    """Compares two tables of alternatives, each with the best first; ``runs`` are those of the second."""
    first = advised.row(0, named=True)
    own = simulated.with_row_index("place", 1).filter(pl.all_horizontal(pl.col(key) == first[key] for key in _KEYS))
    times = simulated["iteration_ms"].drop_nulls()
    best, time = float(times[0]), own["iteration_ms"].item()
    beside = runs.filter(pl.col("link_share").is_not_null())
    both = beside.join(advised, on=_KEYS).filter(pl.col("low_ms").is_not_null(), pl.col("run_time_ms").is_not_null())
    within = both["run_time_ms"].is_between(both["low_ms"], both["high_ms"])
    return Checked(
        length,
        seeds,
        int(own["place"].item()),
        float("inf") if time is None else float(time) / best - 1,
        float((times / best - 1).to_numpy().mean()),
        float(within.to_numpy().mean()) if both.height else float("nan"),
        simulated,
        runs,
    )
