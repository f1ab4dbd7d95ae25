"""A real OpenSM reads exported settings on a subnet that ibsim simulates, and they are read back from its ports."""

from fairlane.opensm.check.checking import DATA_VLS, ENGINES, PAIRS, Checked, check, check_lanes
from fairlane.opensm.check.ports import Compared, Difference
from fairlane.opensm.check.simulated import Sizes, Subnet, find_programs, missing_programs, simulated_subnet

__all__ = [
    "DATA_VLS",
    "ENGINES",
    "PAIRS",
    "Checked",
    "Compared",
    "Difference",
    "Sizes",
    "Subnet",
    "check",
    "check_lanes",
    "find_programs",
    "missing_programs",
    "simulated_subnet",
]
