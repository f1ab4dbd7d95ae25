"""The memory and cores that this process may have."""

import os
import resource
from contextlib import suppress
from pathlib import Path

_GROUPS = Path("/sys/fs/cgroup")


def machine_memory() -> int:
    """Bytes of the machine's memory, or of what its resource limits or control group leave of it."""
    found = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    soft, _ = resource.getrlimit(resource.RLIMIT_AS)
    if soft != resource.RLIM_INFINITY:
        found.append(soft)
    return min([*found, *_group_limits()])


def machine_cores() -> int:
    """The cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _group_limits() -> list[int]:
    """The limits of this process's control group and of those around it: batch systems and containers set them."""
    try:
        lines = Path("/proc/self/cgroup").read_text(encoding="ascii").splitlines()
    except (OSError, UnicodeDecodeError):
        return []
    limits = []
    for line in lines:
        _, controllers, path = line.split(":", 2)
        v1 = "memory" in controllers.split(",")
        if controllers and not v1:
            continue
        root, name = (_GROUPS / "memory", "memory.limit_in_bytes") if v1 else (_GROUPS, "memory.max")
        group = root / path.lstrip("/")
        while group == root or root in group.parents:
            with suppress(OSError, ValueError):  # there is none, or it says "max"
                limits.append(int((group / name).read_text(encoding="ascii")))
            group = group.parent
    return limits
