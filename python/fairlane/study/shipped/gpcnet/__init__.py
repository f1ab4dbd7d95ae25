"""GPCNeT on a simulated fabric: how much congestion impairs latency, bandwidth and allreduce, for every transport."""

from fairlane.study.shipped.gpcnet.plan import Benchmark, divided
from fairlane.study.shipped.gpcnet.results import TESTS, Gpcnet, NetworkTest

__all__ = ["TESTS", "Benchmark", "Gpcnet", "NetworkTest", "divided"]
