"""Service levels of jobs and communicators as communication libraries and networks spell them, and read back."""

from fairlane.model.stacks.export import Spelled, Spelling, export
from fairlane.model.stacks.libraries import LIBRARIES, NETWORKS
from fairlane.model.stacks.reading import reached, rebuilt

__all__ = ["LIBRARIES", "NETWORKS", "Spelled", "Spelling", "export", "reached", "rebuilt"]
