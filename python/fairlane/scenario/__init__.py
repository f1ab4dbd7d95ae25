"""Scenarios: what to simulate, read from TOML or built in Python, checked before anything runs."""

from fairlane.fabric.table import FabricTable
from fairlane.scenario.lanes import required_virtual_lanes
from fairlane.scenario.models import Arbiter, Job, Kinds, Mpi, Placement, Qos
from fairlane.scenario.network import Network
from fairlane.scenario.observe import Observe
from fairlane.scenario.resolved import Resolved, ResolvedJob
from fairlane.scenario.scenario import Scenario
from fairlane.scenario.schema import schema

__all__ = [
    "Arbiter",
    "FabricTable",
    "Job",
    "Kinds",
    "Mpi",
    "Network",
    "Observe",
    "Placement",
    "Qos",
    "Resolved",
    "ResolvedJob",
    "Scenario",
    "required_virtual_lanes",
    "schema",
]
