"""Communication libraries: which messages they can give a level of their own, and by which settings.

Sources, read in November 2026:

- NCCL: ``net_ib/connect.cc`` (``NCCL_IB_SL`` and ``NCCL_IB_TC``, else ``trafficClass`` of the communicator's
  ``ncclConfig_t`` for both, else 0); the user guide on ``ncclConfig_t``; per communicator since 2.26.
- UCX: ``ib_iface.c`` (``UCX_IB_SL``, ``UCX_IB_TRAFFIC_CLASS``, which is 106 on RoCE unless it is set).
- Mooncake's transfer engine: ``MC_IB_SL`` and ``MC_IB_TC``, one of each for a process.
- Slingshot: profiles HPC, LL_BE_BD_ET and LL_BE_BD_ET1_ET2 of the driver ``cxi-ss1``
  (``cass_qos_profiles.c``); ``--network=tcs=`` of Slurm's ``sbatch``. ``MPICH_OFI_DEFAULT_TCLASS`` and
  ``MPICH_OFI_TCLASS_ERRORS`` of HPE Cray MPI are known from batch scripts and logs, not from its manual.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

KV_CACHE = "kv_*"
"""Communicators whose messages Mooncake carries."""

PROFILES: Mapping[str, tuple[str, ...]] = {
    "HPC": ("DEDICATED_ACCESS", "LOW_LATENCY", "BULK_DATA", "BEST_EFFORT"),
    "LL_BE_BD_ET": ("LOW_LATENCY", "BEST_EFFORT", "BULK_DATA"),
    "LL_BE_BD_ET1_ET2": ("LOW_LATENCY", "BEST_EFFORT", "BULK_DATA"),
}
"""Traffic classes of MPI in each profile of Slingshot."""


@dataclass(frozen=True)
class Library:
    """A communication library."""

    name: str
    title: str
    by_communicator: bool
    """Whether each communicator can have a level; else each process."""
    settings: Mapping[str, str]
    """The environment variable that takes the level of a process, by network."""
    cleared: Mapping[str, Mapping[str, str | None]] = field(default_factory=dict)
    """Variables where communicators have levels, by network: a value, or None for one that must not be set."""
    communicators: str = "*"
    """Pattern of the communicators that it carries."""
    excluded: str = ""
    """Pattern of those that it does not carry all the same."""

    @property
    def unit(self) -> str:
        """The smallest set of messages that can have a level."""
        return "communicator" if self.by_communicator else "process"

    def carries(self, communicator: str) -> bool:
        """Whether it carries the messages of a communicator."""
        return fnmatchcase(communicator, self.communicators) and not fnmatchcase(communicator, self.excluded)


@dataclass(frozen=True)
class Network:
    """Number that a network uses for a service level."""

    name: str
    title: str
    most: int
    """The highest level."""
    number: Callable[[int], int]
    """The number that a library takes for a level."""


NETWORKS = {
    one.name: one
    for one in (
        Network("infiniband", "InfiniBand: service levels", 15, lambda level: level),
        # The type of service has the DSCP in its upper six bits; DSCP 8p is priority p in the default map.
        Network("roce", "RoCE: types of service, four times the DSCP", 7, lambda level: 4 * 8 * level),
        Network("slingshot", "Slingshot: traffic classes", 15, lambda level: level),
    )
}
"""Networks by name."""

LIBRARIES = {
    one.name: one
    for one in (
        Library(
            "nccl",
            "NCCL",
            by_communicator=True,
            settings={"infiniband": "NCCL_IB_SL", "roce": "NCCL_IB_TC"},
            cleared={
                "infiniband": {"NCCL_IB_SL": None, "NCCL_IB_TC": "0"},
                "roce": {"NCCL_IB_TC": None, "NCCL_IB_SL": "0"},
            },
            excluded=KV_CACHE,
        ),
        Library(
            "ucx",
            "UCX",
            by_communicator=False,
            settings={"infiniband": "UCX_IB_SL", "roce": "UCX_IB_TRAFFIC_CLASS"},
        ),
        Library(
            "mooncake",
            "Mooncake",
            by_communicator=False,
            settings={"infiniband": "MC_IB_SL", "roce": "MC_IB_TC"},
            communicators=KV_CACHE,
        ),
        Library(
            "cray_mpi",
            "HPE Cray MPI",
            by_communicator=False,
            settings={"slingshot": "MPICH_OFI_DEFAULT_TCLASS"},
        ),
    )
}
"""Libraries by name."""
