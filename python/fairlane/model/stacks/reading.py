"""Read exported files back: the lane that library and network give to each message."""

import json
from collections.abc import Mapping
from typing import Any

from fairlane.model.stacks import roce
from fairlane.model.stacks.export import COMMUNICATORS, Spelled
from fairlane.model.stacks.libraries import LIBRARIES, NETWORKS

UNSET = {"ucx": {"roce": 106}}
"""The number of a library without a setting, where it is not 0."""


def variables(script: str) -> dict[str, str]:
    """The variables that a script sets."""
    values: dict[str, str] = {}
    for line in script.splitlines():
        fields = line.split()
        if fields[:1] == ["unset"]:
            values.pop(fields[1], None)
        elif fields[:1] == ["export"]:
            name, _, value = fields[1].partition("=")
            values[name] = value
    return values


def reached(
    spelled: Spelled, sl2vl: Mapping[int, int] | list[int], names: Mapping[int, str] | None = None
) -> dict[tuple[str, str], int]:
    """The virtual lane of the messages of each job and communicator, from the files alone.

    ``sl2vl`` has the lanes of an InfiniBand or Slingshot fabric, ``names`` Slingshot's traffic class of each level.
    """
    library, network = LIBRARIES[spelled.software], NETWORKS[spelled.network]
    tables: dict[str, dict[str, int]] = json.loads(spelled.files.get(COMMUNICATORS, "{}"))
    ports = roce.read(spelled.files["mlnx_qos.sh"]) if network.name == "roce" else None
    levels = {f"TC_{name.removeprefix('TC_')}": level for level, name in (names or {}).items()}
    lanes: dict[tuple[str, str], int] = {}
    for spelling in spelled.spellings:
        given = variables(spelled.files[f"env/{spelling.job}.sh"]).get(library.settings[network.name])
        for name in spelling.communicators:
            unset = UNSET.get(library.name, {}).get(network.name, 0)
            # A variable takes the place of what a communicator is configured with.
            number = given if given is not None else tables.get(spelling.job, {}).get(name, unset)
            if ports is not None:
                lanes[spelling.job, name] = ports.lane(int(number) // 4)
            else:
                slingshot = network.name == "slingshot"
                lanes[spelling.job, name] = sl2vl[levels.get(str(number), 0) if slingshot else int(number)]
    return lanes


def rebuilt(lanes: Mapping[tuple[str, str], int]) -> dict[str, dict[str, Any]]:
    """Tables ``classes`` of a scenario in which service level n has lane n that give messages these lanes."""
    return {
        f"{job}/{name}": {"job": job, **({} if name == "*" else {"communicator": name}), "service_level": lane}
        for (job, name), lane in lanes.items()
    }
