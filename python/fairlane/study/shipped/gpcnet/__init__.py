"""GPCNeT on a simulated fabric: how much congestion impairs latency, bandwidth and allreduce, for every transport."""

from fairlane.study.shipped.gpcnet.results import TESTS, Gpcnet, NetworkTest
from fairlane.study.shipped.gpcnet.study import Benchmark, divided

__all__ = ["TESTS", "Benchmark", "Gpcnet", "NetworkTest", "divided"]
