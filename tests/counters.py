"""Made-up tables of counters after a law: a background of low rank that says nothing, rare stalls that cost time."""

import numpy as np
import polars as pl

NAMES = [f"{what}_{how}_vc{vc}" for what in ("flits", "stalls") for how in ("sum", "mean", "max") for vc in range(8)]


def made_up(runs: int = 20, timesteps: int = 10, *, seed: int = 1, kinds: int = 1) -> pl.DataFrame:
    """Runs of as many kinds in turn; each kind has a background and a price of its own."""
    rng = np.random.default_rng(seed)
    loadings = np.abs(rng.normal(size=(kinds, 3, len(NAMES)))) * 10
    frames = []
    for run in range(runs):
        kind = run % kinds
        background = np.exp(rng.normal(size=(timesteps, 3))) @ loadings[kind]
        stalls = np.where(rng.random((timesteps, len(NAMES))) < 0.1, rng.exponential(40, (timesteps, len(NAMES))), 0)
        costly = stalls[:, NAMES.index("stalls_max_vc0")] + stalls[:, NAMES.index("stalls_sum_vc3")]
        seconds = 2 + (0.05 if kind == 0 else 0.15) * costly + 0.02 * rng.normal(size=timesteps)
        counters = 1000 + background + stalls
        frames.append(
            pl.DataFrame(counters, schema=NAMES).with_columns(
                run=pl.lit(f"run-{run:03}"), timestep=pl.Series(range(timesteps)), seconds=pl.Series(seconds)
            )
        )
    return pl.concat(frames).select("run", "timestep", "seconds", *NAMES)
