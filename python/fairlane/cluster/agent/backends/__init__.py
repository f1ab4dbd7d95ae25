"""Backends: each carries service levels of jobs to one kind of network, one file each.

A backend is a class; a line in ``BACKENDS`` gives it a name. Users bring their own as ``file.py:ClassName``, or by the
name of an entry point ``fairlane.backends`` of an installed package.
"""

from collections.abc import Sequence
from typing import Annotated

from pydantic import BeforeValidator, ConfigDict
from typing_extensions import override

from fairlane.cluster.agent.backends.base import Backend, DryRun, Surroundings
from fairlane.cluster.agent.backends.linux import Linux
from fairlane.cluster.agent.backends.opensm import OpenSm
from fairlane.cluster.agent.jobs import Setting
from fairlane.core.units import Written
from fairlane.inputs.registry import Registry

__all__ = ["BACKENDS", "Backend", "BackendField", "DryRun", "Linux", "OpenSm", "Surroundings"]


class _Unread(Backend):
    """In place of a backend whose code must not run: takes any parameters, and sets nothing."""

    model_config = ConfigDict(extra="allow")

    @override
    def save(self) -> str:
        return ""

    @override
    def write(self, settings: Sequence[Setting]) -> None:
        return

    @override
    def in_force(self) -> dict[str, int]:
        return {}

    @override
    def restore(self, saved: str) -> None:
        return


BACKENDS: Registry[type[Backend]] = Registry(
    "backend",
    "fairlane.backends",
    {"dry_run": DryRun, "linux": Linux, "opensm": OpenSm},
    base=Backend,
    unread=_Unread,
)
"""All backends by name."""

BackendField = Annotated[Written[Backend], BeforeValidator(BACKENDS.read)]
"""A model's field that takes a backend's name, a table with its name and parameters, or a backend."""
