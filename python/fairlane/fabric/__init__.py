"""Fabrics: what they consist of, what real ones look like when they are read, and pictures of them."""

from fairlane.fabric.compare import Comparison, compare
from fairlane.fabric.graph import columns
from fairlane.fabric.reader import read_wiring
from fairlane.fabric.survey import Survey, survey
from fairlane.fabric.view import Coverage, Fabric, FabricDescription, IdleLinks, LinkClass
from fairlane.fabric.wiring import Cable, Wiring, from_networkx

__all__ = [
    "Cable",
    "Comparison",
    "Coverage",
    "Fabric",
    "FabricDescription",
    "IdleLinks",
    "LinkClass",
    "Survey",
    "Wiring",
    "columns",
    "compare",
    "from_networkx",
    "read_wiring",
    "survey",
]
