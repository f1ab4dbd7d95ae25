"""Small campaigns for tests: folders with cells, placements and measured values that the tests choose."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from fairlane.papers.campaign.cells import KEYS, VALUES, Cells
from fairlane.papers.campaign.file import CampaignFile
from fairlane.papers.campaign.predicting import SCHEMA

CAMPAIGN = """
title = "Small machine"
sources = ["drawn for tests"]
measured = "measured.csv"
placements = "placements.csv"

[measure]
warm_up = 1
least = 4
iterations = 6
span = "40 us"
limit = "5 ms"
replicates = 2
stagger = "5 us"

[judging]
choose = [4]
judge = [8]
smallest = "8 B"

[victims.Exchange]
name = "all_to_all"

[aggressors.Flood]
name = "incast"
message_size = "64 KiB"

[[parameter]]
name = "send_overhead"
title = "CPU time of a send"
range = ["50 ns", "800 ns"]
scale = "log"
default = "200 ns"
source = "other machines"
fit = true
scenario = { "mpi.send_overhead" = "{value}" }

[[parameter]]
name = "routing"
title = "how the switches choose among paths"
default = "spread"
source = "the engines of OpenSM"
[parameter.levels.spread.scenario]
"fabric.routing" = "adaptive"
[parameter.levels.fixed.scenario]
"fabric.routing" = "d_mod_k"

[[parameter]]
name = "buffer"
title = "input buffer of a lane"
range = ["16 KiB", "128 KiB"]
scale = "log"
default = "64 KiB"
source = "data sheets"
scenario = { "network.buffer" = "{value}" }
"""
SCENARIO = """
[fabric]
topology = "fat_tree"
hosts = 16
levels = 2
leaf_down = 4
leaf_up = 2
bandwidth = "100 Gb/s"
"""


def write(folder: Path, rows: Sequence[Mapping[str, Any]], text: str = CAMPAIGN) -> Path:
    """Writes a campaign with these cells; nodes are taken in turn from the two halves of the hosts."""
    (folder / "campaign.toml").write_text(text)
    (folder / "scenario.toml").write_text(SCENARIO)
    names = ["system", "nodes", "victim", "aggressor", "msg_bytes", "n", *VALUES, "run"]
    kinds = {name: pl.Float64 if name in VALUES else pl.String for name in names}
    filled = [{"system": "small", "n": "6", **row, "run": f"r{row['nodes']}"} for row in rows]
    cells = [{key: value if key in VALUES else str(value) for key, value in row.items()} for row in filled]
    pl.DataFrame(cells, kinds).select(names).write_csv(folder / "measured.csv")
    placed = [
        {"run": f"r{nodes}", "nodes": nodes, "job": ("victim", "aggressor")[at % 2], "node": f"host{at}"}
        for nodes in sorted({int(row["nodes"]) for row in rows})
        for at in range(nodes)
    ]
    pl.DataFrame(placed).write_csv(folder / "placements.csv")
    return folder


def cell(nodes: int, aggressor: str, size: int, time: float, victim: str = "Exchange") -> dict[str, Any]:
    """A measured cell with one time for median, mean and 99th percentile."""
    keys = {"nodes": nodes, "victim": victim, "aggressor": aggressor, "msg_bytes": size}
    return {**keys, **dict.fromkeys(VALUES, time)}


def cells_of(folder: Path) -> Cells:
    """The cells of a folder."""
    return Cells(CampaignFile.load(folder))


def predictions(times: Mapping[tuple[int, str, int], float]) -> pl.DataFrame:
    """A table of predictions of one time each, by nodes, aggressor and size."""
    rows = []
    for (nodes, aggressor, size), time in times.items():
        key = dict(zip(KEYS, (nodes, "Exchange", aggressor, None, None, size), strict=True))
        values = {f"{name}{end}": time for name in VALUES for end in ("", "_low", "_high")}
        rows.append({**dict.fromkeys(SCHEMA), **key, **values, "replicates": 2, "iterations": 12})
    return pl.DataFrame(rows, SCHEMA)
