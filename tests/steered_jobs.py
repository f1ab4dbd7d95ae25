"""Jobs whose processes mark their progress, and the configuration of an agent that gives them to a controller."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

import agents
from marking import Marking, marking, python

CONFIG = """
journal = "agent.db"
controller = { name = "process_prioritization", threshold = 1.0, progress = "whole", service_levels = 3 }
progress = { period = "1 s", through = [], directories = ["pages"] }

[fabric]
topology = "fat_tree"
hosts = 16
levels = 2
leaf_down = 4
leaf_up = 1

[slurm]
socket = "agent.socket"
squeue = ["@python", "squeue.py"]
hosts = { "n[1-16]" = "host[0-15]" }
"""
NAMED = '"process_prioritization", threshold = 1.0, progress = "whole"'
"""The controller in it, without the number of levels. Counts do not depend on a clock."""
BOTH = ({**agents.SOLVER, "nodes": "n[1,5]"}, {**agents.WRITER, "nodes": "n[2,6]"})
RANKS = {("12", 0): "n1", ("12", 1): "n5", ("13", 0): "n2", ("13", 1): "n6"}


class Jobs:
    """Processes with pages in a folder, by job and rank."""

    def __init__(self, folder: Path, nodes: dict[tuple[str, int], str]) -> None:
        self.folder, self._open = folder, ExitStack()
        (folder / "pages").mkdir()
        self.ranks: dict[tuple[str, int], Marking] = {}
        for (job, rank), node in nodes.items():
            names = {"FAIRLANE_JOB": job, "FAIRLANE_RANK": str(rank), "SLURMD_NODENAME": node}
            self.ranks[job, rank] = self._open.enter_context(marking(python(), folder / "pages", **names))
        self.mark(dict.fromkeys(self.ranks, 1))

    def mark(self, iterations: dict[tuple[str, int], int]) -> None:
        """Has ranks complete iterations."""
        for key, count in iterations.items():
            self.ranks[key].do("mark", count)

    def close(self) -> None:
        """Kills the processes."""
        self._open.close()
