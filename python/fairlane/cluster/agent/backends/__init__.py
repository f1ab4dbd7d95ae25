"""Backends: each carries service levels of jobs to one kind of network, one file each.

A backend is a class; a line in ``BACKENDS`` gives it a name. Users bring their own as ``file.py:ClassName``, or by the
name of an entry point ``fairlane.backends`` of an installed package.
"""

from typing import Annotated

from pydantic import BeforeValidator

from fairlane.cluster.agent.backends.base import Backend, DryRun, Surroundings
from fairlane.cluster.agent.backends.linux import Linux
from fairlane.cluster.agent.backends.opensm import OpenSm
from fairlane.core.units import Written
from fairlane.inputs.registry import Registry

__all__ = ["BACKENDS", "Backend", "BackendField", "DryRun", "Linux", "OpenSm", "Surroundings"]


BACKENDS: Registry[type[Backend]] = Registry(
    "backend",
    "fairlane.backends",
    {"dry_run": DryRun, "linux": Linux, "opensm": OpenSm},
    base=Backend,
    unread=DryRun,
)
"""All backends by name."""

BackendField = Annotated[Written[Backend], BeforeValidator(BACKENDS.read)]
"""A model's field that takes a backend's name, a table with its name and parameters, or a backend."""
