"""Made-up tables of counters after a law: a background of low rank that says nothing, rare stalls that cost time."""

import numpy as np
import polars as pl
from numpy.typing import NDArray

NAMES = [f"{what}_{how}_vc{vc}" for what in ("flits", "stalls") for how in ("sum", "mean", "max") for vc in range(8)]
FEW = [name for name in NAMES if name.endswith(("vc0", "vc3", "vc6"))]
"""Those with which it goes fast; the costly ones are among them."""


def made_up(runs: int = 20, timesteps: int = 10, *, seed: int = 1, kinds: int = 1) -> pl.DataFrame:
    """Runs of as many kinds in turn; a later kind has more background, and a higher price."""
    rng = np.random.default_rng(seed)
    loadings = np.abs(np.random.default_rng(0).normal(size=(2, len(NAMES)))) * 60
    frames = []
    for run in range(runs):
        kind = run % kinds
        background = (1 + 4 * kind) * (3 + np.exp(rng.normal(size=(timesteps, 2)))) @ loadings
        stalls = np.where(rng.random((timesteps, len(NAMES))) < 0.1, rng.exponential(40, (timesteps, len(NAMES))), 0)
        costly = stalls[:, NAMES.index("stalls_max_vc0")] + stalls[:, NAMES.index("stalls_sum_vc3")]
        seconds = 2 + (0.05 if kind == 0 else 0.15) * costly + 0.02 * rng.normal(size=timesteps)
        counters = background + stalls
        frames.append(
            pl.DataFrame(counters, schema=NAMES).with_columns(
                run=pl.lit(f"run-{run:03}"), timestep=pl.Series(range(timesteps)), seconds=pl.Series(seconds)
            )
        )
    return pl.concat(frames).select("run", "timestep", "seconds", *NAMES)


def run_of(direction: int, spread: float, *, seed: int, counters: int = 12, timesteps: int = 15) -> NDArray[np.float64]:
    """Timesteps that move along five counters, from this one on."""
    rng = np.random.default_rng(seed)
    rows = 0.01 * rng.normal(size=(timesteps, counters))
    rows[:, direction : direction + 5] += spread * np.array([5, 4, 3, 2, 1]) * rng.normal(size=(timesteps, 5))
    return rows


def two_kinds(runs: int = 40) -> pl.DataFrame:
    """Runs that move along other counters in turn, and pay twice as much or nothing for one that all have."""
    frames = []
    for run in range(runs):
        rows = run_of(3 * (run % 2), 1, seed=run) + 8 * (run % 2)
        seconds = 2 + (2 * rows[:, 4] if run % 2 == 0 else 0 * rows[:, 4])
        columns = {f"counter_{at:02}": rows[:, at] for at in range(rows.shape[1])}
        frames.append(pl.DataFrame({"run": run, "timestep": range(len(rows)), "seconds": seconds} | columns))
    return pl.concat(frames)
