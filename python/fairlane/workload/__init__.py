"""Workloads: what the ranks of a job do, written in Python.

A workload is one file with one class (see ``flood_pairs.py``); a line in ``WORKLOADS`` gives it a name. Users bring
their own without touching the package: ``workload = "path/to/file.py:ClassName"``, or the name of an entry point
``fairlane.workloads`` of an installed package.
"""

from typing import Annotated

from pydantic import BeforeValidator, ConfigDict, PlainSerializer

from fairlane.inputs.registry import Registry
from fairlane.units import Written
from fairlane.workload.all_to_all import AllToAll
from fairlane.workload.allreduce import Allreduce
from fairlane.workload.base import Workload
from fairlane.workload.builder import JobScript, Rank, Request
from fairlane.workload.collectives import CollectiveCalls
from fairlane.workload.comd import Comd
from fairlane.workload.fft import Fft
from fairlane.workload.flood_pairs import FloodPairs
from fairlane.workload.ft import Ft
from fairlane.workload.gridded import GriddedWorkload
from fairlane.workload.halo3d import Halo3D
from fairlane.workload.imbalance import Growing, Imbalance, OneRank, Uniform
from fairlane.workload.incast import Incast, PutBroadcast
from fairlane.workload.kripke import Kripke
from fairlane.workload.lu import Lu
from fairlane.workload.mg import Mg
from fairlane.workload.milc import Milc
from fairlane.workload.mini_amg import MiniAmg
from fairlane.workload.mini_paradis import MiniParadis
from fairlane.workload.nearest_neighbor import NearestNeighbor
from fairlane.workload.one_sided import OneSidedCalls
from fairlane.workload.open_loop import OpenLoop
from fairlane.workload.persistent import PersistentCalls
from fairlane.workload.pf3d import Pf3d
from fairlane.workload.ping_pong import PingPong
from fairlane.workload.random_pairs import RandomPairs
from fairlane.workload.ring import PointToPointRing
from fairlane.workload.shift import Shift
from fairlane.workload.sweep3d import Sweep3D
from fairlane.workload.uniform_random import UniformRandom

__all__ = [
    "WORKLOADS",
    "AllToAll",
    "Allreduce",
    "CollectiveCalls",
    "Comd",
    "Fft",
    "FloodPairs",
    "Ft",
    "GriddedWorkload",
    "Growing",
    "Halo3D",
    "Imbalance",
    "Incast",
    "JobScript",
    "Kripke",
    "Lu",
    "Mg",
    "Milc",
    "MiniAmg",
    "MiniParadis",
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
    "Rank",
    "Request",
    "Shift",
    "Sweep3D",
    "Uniform",
    "UniformRandom",
    "Workload",
    "WorkloadField",
]


class _Unread(Workload):
    """Stands for a workload whose code is not to run: it takes any parameters, and has no program."""

    model_config = ConfigDict(extra="allow")


WORKLOADS: Registry[type[Workload]] = Registry(
    "workload",
    "fairlane.workloads",
    {
        "flood_pairs": FloodPairs,
        "nearest_neighbor": NearestNeighbor,
        "random_pairs": RandomPairs,
        "all_to_all": AllToAll,
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
        "lu": Lu,
        "ft": Ft,
        "mg": Mg,
        "milc": Milc,
        "comd": Comd,
        "kripke": Kripke,
    },
    base=Workload,
    unread=_Unread,
)
"""Every workload that can be asked for by name."""

WorkloadField = Annotated[Written[Workload], BeforeValidator(WORKLOADS.read), PlainSerializer(WORKLOADS.written)]
"""A model's field that takes a workload's name, a table with its name and parameters, or a workload."""
