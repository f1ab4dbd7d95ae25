"""Quality of service by name: strategies that choose service levels, lanes and shares for all jobs of a scenario.

A strategy is a function; a line in ``STRATEGIES`` gives it a name. ``qos = { strategy = "isolate" }``
in a scenario stands for what the function makes of its jobs. Users bring their own as ``file.py:function``, or by the
name of an entry point ``fairlane.strategies`` of an installed package.
"""

from fairlane.inputs.registry import Registry
from fairlane.qos.strategies import (
    KINDS,
    Expansion,
    JobShare,
    Strategy,
    TrafficClass,
    bandwidth_weight,
    isolate,
    none,
    split_priority,
)

__all__ = ["KINDS", "STRATEGIES", "Expansion", "JobShare", "Strategy", "TrafficClass"]

STRATEGIES: Registry[Strategy] = Registry(
    "strategy",
    "fairlane.strategies",
    {
        "none": none,
        "split_priority": split_priority,
        "bandwidth_weight": bandwidth_weight,
        "isolate": isolate,
    },
    unread=none,
)
"""Every strategy that can be asked for by name."""
