"""Fabrics written in the formats of other tools; each format is a file of this package and a line of ``FORMATS``."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from fairlane.model.fabric.export.cables import Written, wiring_of, write_csv, write_graphml
from fairlane.model.fabric.export.infiniband import write_ibnetdiscover, write_ibsim
from fairlane.model.fabric.export.slurm import PLUGINS, write_topology_conf, write_topology_yaml

__all__ = ["FORMATS", "PLUGINS", "Format", "Written", "wiring_of"]


@dataclass(frozen=True)
class Format:
    """A format that fabrics are written in."""

    write: Callable[..., Written]
    """The file's text for a wiring; raises ``ScenarioError`` for what the format cannot hold."""
    summary: str
    of_slurm: bool = False
    """Whether ``write`` takes ``plugin``, one of ``PLUGINS``, and ``merged``: one switch for all that join the same
    ones below."""


FORMATS: Mapping[str, Format] = {
    "ibnetdiscover": Format(write_ibnetdiscover, "as ibnetdiscover prints it"),
    "ibsim": Format(write_ibsim, "a network file of ibsim"),
    "topology-conf": Format(write_topology_conf, "topology.conf of Slurm", of_slurm=True),
    "topology-yaml": Format(write_topology_yaml, "topology.yaml of Slurm 25.05 and later", of_slurm=True),
    "graphml": Format(write_graphml, "GraphML"),
    "csv": Format(write_csv, "a CSV file with a line for each cable"),
}
"""The formats by name, which is also the option of ``fairlane fabric export``."""
