"""GPCNeT on a simulated fabric: how much congestion impairs latency, bandwidth and allreduce, for every transport."""

from fairlane.gpcnet.plan import TESTS, NetworkTest, Options, Plan, prepared
from fairlane.gpcnet.results import Gpcnet, benchmark, opened

__all__ = ["TESTS", "Gpcnet", "NetworkTest", "Options", "Plan", "benchmark", "opened", "prepared"]
