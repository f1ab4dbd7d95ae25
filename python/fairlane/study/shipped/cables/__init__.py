"""Find critical cables and switches of a fabric: each fails in a fork of one simulation, and jobs are compared."""

from fairlane.study.shipped.cables.results import Cables
from fairlane.study.shipped.cables.study import Survey

__all__ = ["Cables", "Survey"]
