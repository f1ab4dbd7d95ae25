"""Each stack's settings lead the messages of each communicator to the lane of the simulation, on every hop."""

from pathlib import Path

import polars as pl
import pytest
from typing_extensions import override

from fairlane import Scenario, Simulation
from fairlane.cluster.opensm.export import export as opensm_files
from fairlane.cluster.opensm.options import read_options
from fairlane.model.stacks import export, reached
from fairlane.model.workload.base import Workload
from fairlane.model.workload.builder import Rank

NAMES = {0: "BEST_EFFORT", 1: "LOW_LATENCY"}
COMMUNICATORS = ("world", "expert_parallel", "kv_cache")
EXPERTS = {"communicator": "expert_parallel", "service_level": 1}
CACHE = {"communicator": "kv_*", "service_level": 2}
TRAIN = {"job": "train", "service_level": 1}
STACKS = [
    ("nccl", "infiniband", {"experts": EXPERTS}),
    ("nccl", "roce", {"experts": EXPERTS}),
    ("ucx", "infiniband", {"train": TRAIN}),
    ("ucx", "roce", {"train": TRAIN}),
    ("mooncake", "infiniband", {"cache": CACHE}),
    ("mooncake", "roce", {"cache": CACHE}),
    ("cray_mpi", "slingshot", {"train": TRAIN}),
]


class Only(Workload):
    """An all-to-all in one of the communicators, again and again."""

    handle: int

    @override
    def write(self, rank: Rank, stages: list[list[int]]) -> None:
        for handle, name in enumerate(COMMUNICATORS[1:], 3):
            rank.comm_split(handle, rank.index % 2, name=name)
        super().write(rank, stages)

    @override
    def communicate(self, rank: Rank, iteration: int) -> None:
        rank.collective("alltoall", 8192, comm=self.handle)


def scenario(classes: dict[str, dict[str, object]], communicator: str) -> Scenario:
    """A job over both levels of a fat-tree, whose levels have lanes in another order."""
    place = COMMUNICATORS.index(communicator)
    return Scenario(
        fabric={"topology": "fat_tree", "hosts": 16, "levels": 2, "leaf_down": 4, "leaf_up": 1},
        qos={"sl2vl": [1, 2, 0]},
        classes=classes,
        jobs=[{"name": "train", "ranks": 16, "workload": Only(handle=place + 2 if place else 0)}],
        duration="300 us",
    )


def lanes_by_hop(one: Scenario) -> dict[str, set[int]]:
    """By kind of link the lanes on which packets started once all communicators had been made."""
    simulation = Simulation(one)
    simulation.run_for("100 us")
    before = simulation.table("ports")
    simulation.run_for("100 us")
    sent = simulation.table("ports").with_columns(pl.col("packets") - before["packets"]).filter(pl.col("packets") > 0)
    return {name: set(lanes) for name, lanes in sent.group_by("class").agg("lane").iter_rows()}


@pytest.mark.parametrize(("library", "network", "classes"), STACKS)
def test_the_lane_of_the_files_is_that_of_every_hop(
    library: str, network: str, classes: dict[str, dict[str, object]], tmp_path: Path
) -> None:
    """The files of the stack, and the tables of the fabric: OpenSM's SL2VL, or DSCP, priority and traffic class."""
    resolved = scenario(classes, "world").resolve()
    spelled = export(resolved, library, network, names=NAMES)
    sl2vl = list(resolved.tables["qos"]["sl2vl"])
    if network == "infiniband":
        (tmp_path / "opensm.conf").write_text(opensm_files(resolved, approximate=True).files["opensm.conf"])
        sl2vl = list(read_options(tmp_path / "opensm.conf")[0].in_force().sl2vl)
    found = reached(spelled, sl2vl, NAMES)
    lanes = {name: found.get(("train", name), found.get(("train", "*"))) for name in COMMUNICATORS}
    carried = {name: lane for name, lane in lanes.items() if lane is not None}
    assert len(carried) == {"nccl": 2, "mooncake": 1}.get(library, 3)
    for name, lane in carried.items():
        hops = lanes_by_hop(scenario(classes, name))
        assert hops == {kind: {lane} for kind in ("host up", "host down", "leaf up", "leaf down")}
    assert len({1, *carried.values()}) > 1, "a lane besides that of level 0"
