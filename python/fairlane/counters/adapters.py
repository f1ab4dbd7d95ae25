"""The numbers of adapters in their hosts, from the names that the hosts' kernels give them."""

import re
from collections.abc import Iterable

_DEVICE = re.compile(r"(.*?)([0-9]{1,4})")


def adapter_numbers(devices: Iterable[tuple[str, str]]) -> dict[tuple[str, str], int]:
    """The number of each adapter, by host and device.

    It is the number in the name if the names of a host differ in nothing else, as ``mlx5_0`` and ``mlx5_1``, otherwise
    the place among them in the order of names: ``ibp65s0`` and ``ibp97s0`` are 0 and 1.
    """
    by_host: dict[str, set[str]] = {}
    for where, device in devices:
        by_host.setdefault(where, set()).add(device)
    found = {}
    for where, names in by_host.items():
        parts = {device: _DEVICE.fullmatch(device) for device in names}
        numbered = all(parts.values()) and len({part[1] for part in parts.values() if part}) == 1
        for place, device in enumerate(sorted(names, key=_natural)):
            part = parts[device]
            found[where, device] = int(part[2]) if numbered and part else place
    return found


def _natural(name: str) -> list[tuple[int, str]]:
    """A key that sorts numbers within names by their value."""
    return [(int(part), "") if part.isdecimal() else (0, part) for part in re.split(r"([0-9]+)", name)]
