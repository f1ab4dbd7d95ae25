"""InfiniBand's speeds for bandwidths: a number of lanes and the rate of a lane."""

from collections.abc import Mapping

from fairlane.errors import Problem, ScenarioError
from fairlane.fabric.ibnetdiscover import LANE_RATES
from fairlane.fabric.wiring import Cable
from fairlane.units import BANDWIDTH

_LANES = (4, 1, 8, 12, 2)  # from the most to the least common


def _speeds() -> Mapping[int, str]:
    found: dict[int, str] = {}
    for lanes in _LANES:
        for name, rate in LANE_RATES.items():
            found.setdefault(lanes * rate, f"{lanes}x{name}")
    return found


SPEEDS: Mapping[int, str] = _speeds()
"""The speed of each bandwidth in bits per second, as ``4xEDR``; of several the one with the most common width."""


def speeds_of(cable: Cable) -> tuple[str, str]:
    """The speeds that the two ports of a cable report; empty if its bandwidth is the fabric's default.

    Raises ``ScenarioError`` for a bandwidth that is no speed of InfiniBand.
    """
    if cable.kind:
        first, _, second = cable.kind.partition(" and ")
        return first, second or first
    if cable.bandwidth is None:
        return "", ""
    if cable.bandwidth not in SPEEDS:
        near = min(SPEEDS, key=lambda rate: (abs(rate - (cable.bandwidth or 0)), rate))
        words = f"of {cable} is no speed of InfiniBand"
        allowed = f"lanes (4, 1, 8, 12, 2) x a rate of {', '.join(LANE_RATES)}; nearest {BANDWIDTH.format(near)}"
        raise ScenarioError(
            Problem("bandwidth", words, BANDWIDTH.format(cable.bandwidth), f"{allowed} ({SPEEDS[near]})")
        )
    return SPEEDS[cable.bandwidth], SPEEDS[cable.bandwidth]
