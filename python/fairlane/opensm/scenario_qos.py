"""OpenSM's settings as the table ``qos`` of a scenario."""

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from fairlane.opensm.settings import DATA_LANES, Settings, Table, largest_error, shares_of, shares_of_tables, shown
from fairlane.scenario.network import Network
from fairlane.wording import plural

PACKET = Network().mtu + Network().header
"""Wire size of a full packet of a scenario that sets neither, bytes."""
_NOTED = Fraction(1, 100)  # an error of a share that is worth a note


def qos_table(settings: Settings, default: int = 0, data_lanes: int = DATA_LANES) -> tuple[dict[str, Any], list[str]]:
    """The table, and notes on what is not the same; ``data_lanes`` is the number of data lanes that the ports have.

    A switch drops packets of a level that is mapped to VL15, which the simulator does not do: such levels are at the
    end left out of ``sl2vl``, so that a scenario that uses one is refused, and in the middle mapped to lane 0. Of lanes
    that ports do not have in operation OpenSM keeps the low bits of the number.
    """
    given, settings = settings, settings.in_force(data_lanes)
    lanes, notes = list(settings.sl2vl), []
    folded = [level for level, lane in enumerate(lanes) if lane != given.sl2vl[level]]
    if folded:
        reason = "max_op_vls" if given.operational_vls <= data_lanes else "the ports have no more"
        notes.append(
            f"{plural(settings.operational_vls, 'data lane')} in operation ({reason}): OpenSM sets the low bits of a "
            f"lane's number, here for service levels {', '.join(map(str, folded))}"
        )
    while len(lanes) > 1 and lanes[-1] == DATA_LANES:
        lanes.pop()
        notes.append(f"service level {len(lanes)} is mapped to VL15, which drops its packets: left out of sl2vl")
    for level, lane in enumerate(lanes):
        if lane == DATA_LANES:
            lanes[level] = 0
            notes.append(
                f"service level {level} is mapped to VL15, which drops its packets; here to lane 0: do not use it"
            )
    used = set(lanes)
    table = {
        "lanes": max(used) + 1,
        "sl2vl": lanes,
        "default": default,
        "arbiter": {
            "name": "vlarb",
            "high_limit": settings.high_limit,
            "vlarb_high": _used(settings.vlarb_high, used),
            "vlarb_low": _used(settings.vlarb_low, used),
        },
    }
    served = {lane for key in ("vlarb_high", "vlarb_low") for lane, _ in table["arbiter"][key]}  # type: ignore[index]
    if starved := sorted(used - served):
        remark = f"virtual lanes {starved} have no weight in either table: their packets would never be sent"
        notes.append(remark)
    return table, notes


def share_notes(settings: Settings, packet: int = PACKET) -> list[str]:
    """The shares of a link with packets of this many bytes, and a note if the weights seem to say others."""
    shares = shares_of(settings, packet)
    notes = [f"shares of a link on which all lanes always send packets of {packet} bytes: {shown(shares)}"]
    for name, table in (("vlarb_high", settings.vlarb_high), ("vlarb_low", settings.vlarb_low)):
        weights: dict[int, int] = {}
        for lane, weight in table:
            if lane in shares:
                weights[lane] = weights.get(lane, 0) + weight
        total = sum(weights.values())
        if not total:
            continue
        by_weight = {lane: Fraction(weight, total) for lane, weight in weights.items()}
        by_packet = shares_of_tables((), table, 0, dict.fromkeys(weights, packet))
        if largest_error(by_weight, by_packet) > _NOTED:
            remark = (
                f"an entry sends whole packets, so lanes of {name} do not share by its weights ({shown(by_weight)})"
            )
            notes.append(f"{remark} but by packets: {shown(by_packet)}")
    return notes


def _used(table: Table, lanes: Sequence[int] | set[int]) -> list[list[int]]:
    """The entries that count: of lanes in use, with a weight."""
    return [[lane, weight] for lane, weight in table if lane in lanes and weight]
