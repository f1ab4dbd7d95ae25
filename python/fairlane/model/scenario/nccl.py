"""NCCL's collectives in place of MPI's for a job, and the scale-up domain of the GPUs of a server."""

from collections import Counter
from collections.abc import Iterable
from typing import Any, Literal, Self

from pydantic import Field, model_validator

from fairlane.core.errors import Problem
from fairlane.core.units import Bandwidth, Duration
from fairlane.inputs.problems import Problems
from fairlane.inputs.table import Table

MOST_CHANNELS = 64
"""``MAXCHANNELS`` of NCCL."""


class Nccl(Table):
    """Collectives as NCCL 2.30 carries them out, one rank per GPU; messages within a server use its scale-up network.

    Barriers, gathers, scatters and scans, and v-variants except that of all-to-all, are those of ``mpi``.
    """

    algorithm: Literal["auto", "ring", "tree", "hierarchical", "nvls"] = "auto"
    """``auto``: ring or tree, as NCCL's model of times chooses. ``tree`` applies to allreduce. ``hierarchical``, which
    NCCL does not have: a reduce-scatter in each server, rings of the GPUs of one number, an allgather in each server;
    for allreduce, allgather and reduce-scatter with as many members on each server. Others use rings. ``nvls``: the
    switch of the scale-up network reduces an allreduce within a host, with ``simple``; others as with ``auto``."""
    protocol: Literal["auto", "ll", "ll128", "simple"] = "auto"
    """Protocol by which a receiver learns that data has arrived; ``auto``: as NCCL's model of times chooses."""
    channels: int | None = Field(default=None, ge=1, le=MOST_CHANNELS)
    """Maximum number of channels of a collective. Default: one for each adapter of a host, at most as many as the
    communicator has members there, and one within a host."""
    p2p_channels: int = Field(default=8, ge=1, le=MOST_CHANNELS)
    """Partners with which a rank exchanges data at once in an all-to-all."""
    pxn: bool = False
    """All-to-all between hosts goes through the GPU of the own host that is next to the receiver's rail, which sends
    all blocks for that GPU as one message; with as many ranks on each host and blocks of one size."""
    scale_up_bandwidth: Bandwidth = Field(default=2_966_400_000_000, ge=1_000_000)
    """Bandwidth into and out of each GPU within a host. Default: NVLink 4 as NCCL counts it, 18 links of 20.6 GB/s."""
    scale_up_latency: Duration = Field(default=500_000, le=10**12)
    """Latency within a host."""
    software_latency: float = Field(default=1.0, ge=0, le=100)
    """Factor on the software latencies of NCCL's model of times, per call and per step."""

    @model_validator(mode="after")
    def _with_switch(self) -> Self:
        if self.algorithm == "nvls" and self.protocol in ("ll", "ll128"):
            raise Problems(Problem("protocol", "does not go with algorithm = nvls", self.protocol, "auto or simple"))
        return self

    def remark(self, name: str, hosts: Iterable[int]) -> str | None:
        """What the algorithm does not do for the collectives of all ranks of job ``name``, one on each of ``hosts``."""
        members = sorted(Counter(hosts).values())
        if self.algorithm == "hierarchical" and members[0] < members[-1]:
            uneven = f"from {members[0]} to {members[-1]} ranks"
            return f"job {name!r} has {uneven} on its hosts: collectives of all ranks use rings, not nccl.algorithm"
        if self.algorithm == "nvls" and len(members) > 1:
            spread = f"{len(members)} hosts: allreduces between hosts use a ring or tree; nccl.algorithm = nvls is"
            return f"job {name!r} has {spread} for those within a host"
        return None

    def spec(self) -> dict[str, Any]:
        """The table as the simulator takes it."""
        table = {name: value for name, value in self if name != "software_latency"}
        return {**table, "software_thousandths": round(1000 * self.software_latency)}
