"""Find critical cables and switches of a fabric: each fails in a fork of one simulation, and jobs are compared."""

from fairlane.cables.plan import Options, Part, Plan, prepared
from fairlane.cables.results import Cables, opened, survey

__all__ = ["Cables", "Options", "Part", "Plan", "opened", "prepared", "survey"]
