"""Traces with calls that cannot be simulated: described with counts, refused before a simulation, in check as in run."""

import json
import shutil
from pathlib import Path

import otf2
import pytest
from otf2.enums import CollectiveOp, GroupFlag, GroupType, LocationType, Paradigm, RegionRole

from fairlane.cli.main import execute
from fairlane.workload.trace import read_trace

TRACES = Path(__file__).parent.parent / "data" / "traces"


class Archive:
    """Writes an OTF2 archive of a few ranks, call by call; every call lasts 10 ticks, 100 ticks are between two."""

    def __init__(self, folder: Path, ranks: int) -> None:
        self.path = folder / "traces.otf2"
        self.trace = otf2.writer.open(str(folder), timer_resolution=1_000_000_000)
        definitions = self.trace.definitions
        node = definitions.system_tree_node("node")
        groups = [definitions.location_group(f"rank {rank}", system_tree_parent=node) for rank in range(ranks)]
        self.locations = [
            definitions.location(f"rank {rank}", type=LocationType.CPU_THREAD, group=group)
            for rank, group in enumerate(groups)
        ]
        self.everyone = definitions.group(
            "", group_type=GroupType.COMM_LOCATIONS, paradigm=Paradigm.MPI, members=self.locations, group_flags=GroupFlag.NONE
        )
        self.world = self.comm("MPI_COMM_WORLD", range(ranks))
        self.writers = [self.trace.event_writer_from_location(location) for location in self.locations]
        self.now = [0] * ranks
        self.regions: dict[str, otf2.definitions.Region] = {}

    def comm(self, name: str, members: range) -> otf2.definitions.Comm:
        """A communicator of these ranks."""
        group = self.trace.definitions.group(
            "", group_type=GroupType.COMM_GROUP, paradigm=Paradigm.MPI, members=list(members), group_flags=GroupFlag.NONE
        )
        return self.trace.definitions.comm(name, group)

    def call(self, rank: int, name: str, *records: tuple[type, dict[str, object]]) -> None:
        """A call of MPI with the records inside it."""
        if name not in self.regions:
            self.regions[name] = self.trace.definitions.region(
                name, region_role=RegionRole.FUNCTION, paradigm=Paradigm.MPI
            )
        writer, region = self.writers[rank], self.regions[name]
        writer.enter(self.now[rank] + 100, region)
        for kind, fields in records:
            writer(kind(self.now[rank] + 105, **fields))
        writer.leave(self.now[rank] + 110, region)
        self.now[rank] += 110

    def close(self) -> Path:
        """Finishes the archive; its anchor file."""
        self.trace.close()
        return self.path
