"""Nodes of an InfiniBand fabric: switches and adapters with their identifiers, GUIDs and LIDs."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Port:
    """A port of a node that has a cable."""

    number: int
    guid: int | None = None
    """The port's GUID; ports of switches have none."""
    lid: int | None = None
    """The port's local identifier; ports of switches have none."""


@dataclass(frozen=True, slots=True)
class Node:
    """A switch, or an adapter of a host. A host's ports are numbered over the ports of its adapters, in order."""

    identifier: str
    """Its identifier in ``ibnetdiscover``'s output, as ``H-0002c90300048248``."""
    owner: str
    """The name of the switch, or of the host that the adapter belongs to."""
    is_switch: bool
    description: str
    """Its NodeDescription."""
    ports: tuple[Port, ...] = ()
    size: int = 0
    """Number of its ports, those without a cable included."""
    guid: int | None = None
    """The node's GUID."""
    card: str | None = None
    """The system image GUID, 1 to 16 hexadecimal digits: adapters of one card have it in common."""
    lid: int | None = None
    """A switch's local identifier."""
