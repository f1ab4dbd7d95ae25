"""GPCNeT on a simulated fabric: how much congestion impairs latency, bandwidth and allreduce, for every transport."""

from fairlane.gpcnet.benchmark import benchmark, opened
from fairlane.gpcnet.network_tests import TESTS, NetworkTest
from fairlane.gpcnet.plan import Options, Plan, prepared
from fairlane.gpcnet.results import Gpcnet

__all__ = ["TESTS", "Gpcnet", "NetworkTest", "Options", "Plan", "benchmark", "opened", "prepared"]
