"""Fabrics: what they consist of, what real ones look like when they are read, and pictures of them."""

from fairlane.model.fabric.compare import Comparison, compare
from fairlane.model.fabric.graph import columns
from fairlane.model.fabric.reader import read_wiring
from fairlane.model.fabric.survey import Survey, survey
from fairlane.model.fabric.view import Coverage, Fabric, FabricDescription, IdleLinks, LinkClass
from fairlane.model.fabric.wiring import Cable, Wiring, from_networkx

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
