"""Keys and names of scenario files that have been renamed, so that the old one is refused with the new one."""

from collections.abc import Sequence
from typing import Any

from fairlane.errors import Problem

RENAMED = {
    "counters_at": ("switch_counters", "departures"),
    "direct": ("minimal", "random"),
    "every": ("poll_interval", "flit"),
    "least": ("min", "max"),
    "leave_out": ("exclude", "path"),
    "most": ("max", "min"),
    "onward_waiting": ("input_queueing", "departures"),
    "period": ("distinct_iterations", "jitter"),
    "share": ("weight", "workload"),
    "strategy": ("name", "mapping"),
}
"""By old name, the new one and another name that is allowed in the same place. The second identifies the place, because
most old names have a meaning elsewhere: ``strategy`` in ``[qos]``, for example, and ``period`` of a controller."""


def unknown(key: str, kind: str, given: str, allowed: Sequence[str], value: Any = None) -> Problem:
    """The problem of an unknown key or name; if it has been renamed, the message states the new name."""
    new, neighbour = RENAMED.get(given, ("", ""))
    if new in allowed and neighbour in allowed:
        return Problem(key, f'renamed: this {kind} is now "{new}"', value)
    return Problem.unknown(key, kind, given, allowed, value)
