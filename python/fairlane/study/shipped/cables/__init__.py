"""Find critical cables and switches of a fabric: each fails in a fork of one simulation, and jobs are compared."""

from fairlane.study.shipped.cables.plan import Survey
from fairlane.study.shipped.cables.results import Cables

__all__ = ["Cables", "Survey"]
