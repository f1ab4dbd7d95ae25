"""Scenarios: what to simulate, read from TOML or built in Python, checked before anything runs."""

from fairlane.model.fabric.table import FabricTable
from fairlane.model.scenario.lanes import required_virtual_lanes
from fairlane.model.scenario.models import Arbiter, Job, Kinds, Mpi, Placement, Qos
from fairlane.model.scenario.network import Network
from fairlane.model.scenario.observe import Observe
from fairlane.model.scenario.resolved import Resolved, ResolvedJob
from fairlane.model.scenario.scenario import Scenario
from fairlane.model.scenario.schema import schema

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
