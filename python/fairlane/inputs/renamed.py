"""Keys and names of scenario files that have another name or place now, or that users expect elsewhere."""

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
    "panel": ("chart", "each"),
    "period": ("distinct_iterations", "jitter"),
    "share": ("weight", "workload"),
    "strategy": ("name", "mapping"),
}
"""By old name, the new one and another name that is allowed in the same place. The second identifies the place, because
most old names have a meaning elsewhere: ``strategy`` in ``[qos]``, for example, and ``period`` of a controller."""

INSIDE = {"hosts": ("placement", "ranks_per_host")}
"""By key, the key in whose table it stands, and another name that is allowed in the same place."""


def unknown(key: str, kind: str, given: str, allowed: Sequence[str], value: Any = None) -> Problem:
    """The problem of an unknown key or name; the message has its new name or its place, if it has one."""
    new, neighbour = RENAMED.get(given, ("", ""))
    if new in allowed and neighbour in allowed:
        return Problem(key, f'renamed: this {kind} is now "{new}"', value)
    table, neighbour = INSIDE.get(given, ("", ""))
    if table in allowed and neighbour in allowed:
        return Problem(key, f"is a key of {table}: {table} = {{ {given} = ... }}", value)
    return Problem.unknown(key, kind, given, allowed, value)
