"""Nodes of an InfiniBand fabric: switches and adapters with their identifiers, GUIDs and LIDs."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Self

LARGEST_LID = 0xBFFF
"""The last LID of a port or switch; those above are of multicast groups (IBA specification 1.4, section 4.1.3)."""


@dataclass(frozen=True, slots=True)
class Port:
    """A port of a node that has a cable."""

    number: int
    guid: int | None = None
    """The port's GUID; ports of switches have none."""
    lid: int | None = None
    """The port's (first) local identifier; ports of switches have none."""
    lmc: int = 0
    """LID mask control: the port has 2^lmc local identifiers in a row."""

    @property
    def lids(self) -> range:
        """Its local identifiers."""
        return range(0) if self.lid is None else range(self.lid, self.lid + 2**self.lmc)


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
    """A switch's (first) local identifier."""
    lmc: int = 0
    """LID mask control of a switch: it has 2^lmc local identifiers in a row."""

    @property
    def lids(self) -> range:
        """A switch's local identifiers."""
        return range(0) if self.lid is None else range(self.lid, self.lid + 2**self.lmc)

    def saved(self) -> dict[str, Any]:
        """Return it as a file of ``fabric import`` has it: GUIDs as text, without what it lacks."""
        record = {**asdict(self), "guid": _text(self.guid), "lmc": self.lmc or None}
        record["ports"] = [
            _given({**asdict(port), "guid": _text(port.guid), "lmc": port.lmc or None}) for port in self.ports
        ]
        return _given(record)

    @classmethod
    def read(cls, saved: Mapping[str, Any]) -> Self:
        """The node that was saved; raises ``KeyError``, ``TypeError`` or ``ValueError`` for what is none."""
        ports = tuple(Port(**{**port, "guid": _number(port.get("guid"))}) for port in saved.get("ports", ()))
        return cls(**{**saved, "guid": _number(saved.get("guid")), "ports": ports})


def _given(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in fields.items() if value is not None}


def _text(guid: int | None) -> str | None:
    return None if guid is None else f"0x{guid:016x}"


def _number(guid: str | None) -> int | None:
    return None if guid is None else int(guid, 16)
