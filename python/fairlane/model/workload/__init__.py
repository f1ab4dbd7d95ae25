"""Workloads: what the ranks of a job do, written in Python.

A workload is a class; a line in ``WORKLOADS`` gives it a name. Users bring their own outside of the package:
``workload = "path/to/file.py:ClassName"``, or the name of an entry point ``fairlane.workloads`` of an installed
package.
"""

from typing import Annotated

from pydantic import BeforeValidator, PlainSerializer

from fairlane.core.units import Written
from fairlane.inputs.registry import Registry
from fairlane.model.workload.base import Workload
from fairlane.model.workload.builder import JobScript, Rank
from fairlane.model.workload.congestor import Congestor, MultipleAllreduce, RandomRing, SlicedWorkload
from fairlane.model.workload.grid import Comd, GriddedWorkload, Mg, Milc
from fairlane.model.workload.imbalance import Growing, Imbalance, OneRank, Uniform
from fairlane.model.workload.inference import Inference
from fairlane.model.workload.nccl_tests import NcclTests
from fairlane.model.workload.one_sided import OneSidedCalls
from fairlane.model.workload.open_loop import OpenLoop
from fairlane.model.workload.point_to_point import (
    FloodPairs,
    Halo3D,
    MiniAmg,
    MiniParadis,
    NearestNeighbor,
    PingPong,
    PointToPointRing,
    RandomPairs,
)
from fairlane.model.workload.posted import AllPosted, RingAllgather
from fairlane.model.workload.stepped import Stepped
from fairlane.model.workload.storage import Storage
from fairlane.model.workload.sweeps import Kripke, Lu, Sweep3D
from fairlane.model.workload.synthetic import Incast, PutBroadcast, Shift, UniformRandom
from fairlane.model.workload.training import Training
from fairlane.model.workload.transforms import Allreduce, AllToAll, Fft, Ft, Pf3d
from fairlane.model.workload.writer import CollectiveCalls, PersistentCalls, Request

__all__ = [
    "WORKLOADS",
    "AllPosted",
    "AllToAll",
    "Allreduce",
    "CollectiveCalls",
    "Comd",
    "Congestor",
    "Fft",
    "FloodPairs",
    "Ft",
    "GriddedWorkload",
    "Growing",
    "Halo3D",
    "Imbalance",
    "Incast",
    "Inference",
    "JobScript",
    "Kripke",
    "Lu",
    "Mg",
    "Milc",
    "MiniAmg",
    "MiniParadis",
    "MultipleAllreduce",
    "NcclTests",
    "NearestNeighbor",
    "OneRank",
    "OneSidedCalls",
    "OpenLoop",
    "PersistentCalls",
    "Pf3d",
    "PingPong",
    "PointToPointRing",
    "PutBroadcast",
    "RandomPairs",
    "RandomRing",
    "Rank",
    "Request",
    "RingAllgather",
    "Shift",
    "SlicedWorkload",
    "Stepped",
    "Storage",
    "Sweep3D",
    "Training",
    "Uniform",
    "UniformRandom",
    "Workload",
    "WorkloadField",
]


WORKLOADS: Registry[type[Workload]] = Registry(
    "workload",
    "fairlane.workloads",
    {
        "flood_pairs": FloodPairs,
        "nearest_neighbor": NearestNeighbor,
        "random_pairs": RandomPairs,
        "all_to_all": AllToAll,
        "all_posted": AllPosted,
        "mini_paradis": MiniParadis,
        "mini_amg": MiniAmg,
        "pf3d": Pf3d,
        "uniform_random": UniformRandom,
        "open_loop": OpenLoop,
        "shift": Shift,
        "ping_pong": PingPong,
        "halo3d": Halo3D,
        "fft": Fft,
        "sweep3d": Sweep3D,
        "allreduce": Allreduce,
        "incast": Incast,
        "put_broadcast": PutBroadcast,
        "ring": PointToPointRing,
        "random_ring": RandomRing,
        "ring_allgather": RingAllgather,
        "multiple_allreduce": MultipleAllreduce,
        "congestor": Congestor,
        "storage": Storage,
        "nccl_tests": NcclTests,
        "training": Training,
        "inference": Inference,
        "lu": Lu,
        "ft": Ft,
        "mg": Mg,
        "milc": Milc,
        "comd": Comd,
        "kripke": Kripke,
        "stepped": Stepped,
    },
    base=Workload,
    unread=Workload,
)
"""All workloads by name."""

WorkloadField = Annotated[Written[Workload], BeforeValidator(WORKLOADS.read), PlainSerializer(WORKLOADS.written)]
"""A model's field that takes a workload's name, a table with its name and parameters, or a workload."""
