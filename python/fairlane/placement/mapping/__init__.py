"""Mappings: which rank of a job lives on which of the hosts that it has got.

A mapping is one file with one class; a line in ``MAPPINGS`` gives it a name.
"""

from collections.abc import Sequence
from typing import Annotated

from pydantic import BeforeValidator, ConfigDict, PlainSerializer

from fairlane.inputs.registry import Registry
from fairlane.placement.mapping.base import Mapping, Slots
from fairlane.placement.mapping.blocked import Blocked
from fairlane.placement.mapping.hop_bytes import HopBytes, hop_bytes
from fairlane.placement.mapping.linear import Linear
from fairlane.units import Written

__all__ = ["MAPPINGS", "Blocked", "HopBytes", "Linear", "Mapping", "MappingField", "Slots", "hop_bytes", "mapped"]


class _Unread(Mapping):
    """Stands for a mapping whose code is not to run: it takes any parameters, and maps rank by rank."""

    model_config = ConfigDict(extra="allow")

    def places(self, slots: Slots) -> Sequence[int]:
        """Rank n has place n."""
        return range(len(slots.hosts))


MAPPINGS: Registry[type[Mapping]] = Registry(
    "mapping",
    "fairlane.mappings",
    {"linear": Linear, "blocked": Blocked, "hop_bytes": HopBytes},
    base=Mapping,
    unread=_Unread,
)
"""Every mapping that can be asked for by name."""

MappingField = Annotated[Written[Mapping], BeforeValidator(MAPPINGS.read), PlainSerializer(MAPPINGS.written)]
"""A model's field that takes a mapping's name, a table with its name and parameters, or a mapping."""


def mapped(mapping: Mapping, slots: Slots) -> list[int]:
    """The host of each rank."""
    return [slots.hosts[place] for place in mapping.places(slots)]
