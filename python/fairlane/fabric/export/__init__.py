"""Fabrics written in the formats of other tools; each format is a file of this package and a line of ``FORMATS``."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from fairlane.fabric.export.built import wiring_of
from fairlane.fabric.export.csv_cables import write_csv
from fairlane.fabric.export.graphml import write_graphml
from fairlane.fabric.export.ibnetdiscover import write_ibnetdiscover
from fairlane.fabric.export.ibsim import write_ibsim
from fairlane.fabric.export.notes import Written
from fairlane.fabric.export.slurm import write_topology_conf, write_topology_yaml
from fairlane.fabric.wiring import Wiring

__all__ = ["FORMATS", "Format", "Written", "wiring_of"]


@dataclass(frozen=True)
class Format:
    """A format that fabrics are written in."""

    write: Callable[[Wiring], Written]
    """The file's text; raises ``ScenarioError`` for what the format cannot hold."""
    summary: str


FORMATS: Mapping[str, Format] = {
    "ibnetdiscover": Format(write_ibnetdiscover, "as ibnetdiscover prints it"),
    "ibsim": Format(write_ibsim, "a network file of ibsim"),
    "topology-conf": Format(write_topology_conf, "topology.conf of Slurm's tree plugin"),
    "topology-yaml": Format(write_topology_yaml, "topology.yaml of Slurm 25.05 and later"),
    "graphml": Format(write_graphml, "GraphML"),
    "csv": Format(write_csv, "a CSV file with a line for each cable"),
}
"""The formats by name, which is also the option of ``fairlane fabric export``."""
