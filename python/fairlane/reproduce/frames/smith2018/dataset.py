"""The data set of the runs: timesteps with counters as Parquet, and a data sheet that explains them."""

from collections.abc import Iterator
from pathlib import Path

import polars as pl

from fairlane.reproduce.frames.smith2018.experiments import Scale

__all__ = ["ALL_SWITCHES", "DATASET", "RUNS", "SHEET", "keep"]

DATASET, ALL_SWITCHES, RUNS, SHEET = "dataset.parquet", "dataset-all-switches.parquet", "runs.parquet", "dataset.md"
"""Names of its files."""
MEANING = {
    "run": ("-", "number of the run, which is the seed of its scenario"),
    "timestep": ("-", "number of the timestep in the run, from 1"),
    "warmup": ("-", "whether it only warms up"),
    "extra": ("-", "whether its ranks compute more than in the others"),
    "seconds": (
        "s",
        "from when half of the ranks were done with the timestep before until half were done with this one",
    ),
    "flits_sum_vc*": ("flits", "over all links into the job's switches, on this virtual channel, in the timestep"),
    "flits_mean_vc*": ("flits", "mean over these links"),
    "flits_max_vc*": ("flits", "of the link with most"),
    "stalls_*_vc*": ("cycles", "the same of how long packets that came over the link waited at the switch behind it"),
}


def keep(timesteps: pl.DataFrame, everywhere: pl.DataFrame, runs: pl.DataFrame, scale: Scale, folder: Path) -> None:
    """Writes the tables and the data sheet."""
    timesteps.write_parquet(folder / DATASET)
    everywhere.write_parquet(folder / ALL_SWITCHES)
    runs.write_parquet(folder / RUNS)
    (folder / SHEET).write_text("\n".join(_sheet(timesteps, runs, scale)) + "\n", encoding="utf-8")


def _sheet(timesteps: pl.DataFrame, runs: pl.DataFrame, scale: Scale) -> Iterator[str]:
    yield f"# Data sheet of `{DATASET}`\n"
    yield f"{timesteps.height} timesteps of {runs.height} runs of MILC on {scale.ranks} ranks beside other jobs."
    yield f"Scaled: {scale.words}.\n"
    yield "| column | unit | meaning |\n|---|---|---|"
    for name, (unit, words) in MEANING.items():
        yield f"| `{name}` | {unit} | {words} |"
    yield f"\n`{ALL_SWITCHES}` has the same columns over the links into all switches of the machine."
    yield f"`{RUNS}` has a row for each run.\n"
    yield "A flit has 32 bytes and a cycle 1.25 ns. Virtual channels that the routing does not use are zero.\n"
    fastest, slowest = (runs.sort("seconds")["run"].to_list()[at] for at in (0, -1))
    yield f"The fastest run is {fastest}, the slowest {slowest}: the run is the seed that simulates it again.\n"
    yield "The same tables again, bit for bit with the same version:\n"
    yield "```console\n$ fairlane reproduce smith2018 --out FOLDER\n```"
