"""Virtual lanes that a configuration needs: pairs of service level and virtual channel."""

from collections.abc import Mapping
from typing import Any

from fairlane.inputs.problems import refusing
from fairlane.model.fabric.table import FabricTable, Routing
from fairlane.model.fabric.view import Fabric
from fairlane.model.scenario.checks import lanes_of_levels, levels_in_use
from fairlane.model.scenario.models import Qos
from fairlane.model.scenario.resolve import expand, without_strategy
from fairlane.model.scenario.scenario import Scenario


def required_virtual_lanes(
    fabric: FabricTable | Mapping[str, Any],
    routing: str | Mapping[str, Any] | None = None,
    qos: Scenario | Qos | Mapping[str, Any] | None = None,
) -> list[tuple[str, int]]:
    """Return the use of each virtual lane of a port; the length of the list is the number of lanes.

    Each is a service level (several that share lanes are written "0+1") and one of the virtual channels that the
    routing needs for it. ``fabric``, ``routing`` and ``qos`` are as in a scenario; without ``routing`` it is the
    fabric's, without ``qos`` there is one service level. The strategy ``isolate`` has to know the jobs: for it ``qos``
    is the scenario. Raises ``ScenarioError`` or ``BuildError`` for what cannot be
    built. For example::

        required_virtual_lanes({"topology": "dragonfly", "preset": "wilke2020"}, "progressive", {"service_levels": 4})
    """
    table = fabric if isinstance(fabric, FabricTable) else FabricTable.read(dict(fabric))
    if routing is not None:
        named = {"name": routing} if isinstance(routing, str) else dict(routing)
        table = table.model_copy(update={"routing": Routing.read(named)})
    with refusing():
        lanes = _lanes(qos)
    levels: dict[int, list[str]] = {}
    for level, lane in enumerate(lanes):
        levels.setdefault(lane, []).append(str(level))
    pairs = Fabric.build(table.spec).required_virtual_lanes(max(lanes) + 1)
    return [("+".join(levels.get(lane, [])) or f"none on lane {lane}", channel) for lane, channel in pairs]


def _lanes(qos: Scenario | Qos | Mapping[str, Any] | None) -> list[int]:
    """The virtual lane of each service level."""
    if isinstance(qos, Scenario):
        plain = without_strategy(qos)
        return lanes_of_levels(plain.qos, levels_in_use(plain))
    given, _ = expand(qos if isinstance(qos, Qos) else Qos.read(dict(qos or {})), [])
    kinds = [level for _, level in given.kinds if level is not None]
    return lanes_of_levels(given, [given.default, *kinds])
