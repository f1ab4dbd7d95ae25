"""Priorities and lanes of RoCE: DSCP to priority, priority to traffic class and buffer, PFC, shares of links.

Priority ``p`` is service level ``p``, and its DSCP ``8 p``; the traffic class and the receive buffer have the number of
the virtual lane. Spelled for ``mlnx_qos`` (MLNX_OFED, mlnx-tools), for ``dcb`` of iproute2 (``dcb-app``, ``dcb-pfc``,
``dcb-buffer``, ``dcb-ets``) and, but for the DSCP, for ``lldptool`` of lldpad (``lldptool-pfc``, ``lldptool-ets``).
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fairlane.core.errors import Problem, ScenarioError

PRIORITIES = 8
"""Priorities of IEEE 802.1Q; as many traffic classes and receive buffers."""


@dataclass(frozen=True)
class PriorityMap:
    """Treatment of packets at a port by their DSCP."""

    priorities: Mapping[int, int]
    """Priority by DSCP."""
    lanes: tuple[int, ...]
    """Traffic class, and receive buffer, of each priority."""
    lossless: tuple[bool, ...]
    """Whether each priority has PFC."""
    shares: tuple[int, ...]
    """Percent of a link of each traffic class; 0: strict priority, the highest class first."""

    def lane(self, dscp: int) -> int:
        """The lane of packets with this DSCP; those of no entry have priority 0."""
        return self.lanes[self.priorities.get(dscp, 0)]


def priority_map(
    qos: Mapping[str, Any], levels: Collection[int], *, approximate: bool
) -> tuple[PriorityMap, list[str]]:
    """The map of a scenario's table ``qos`` for the ``levels`` in use, the default among them, and notes.

    Raises ``ScenarioError`` for what RoCE cannot do.
    """
    given = qos["sl2vl"][:PRIORITIES]
    most = max(given[level] for level in levels)
    if most >= PRIORITIES:
        allowed = f"at most {PRIORITIES}, the traffic classes of RoCE"
        raise ScenarioError(Problem("qos.sl2vl", f"needs {most + 1} virtual lanes", list(given), allowed))
    # Priorities that no message has may have lanes that RoCE lacks: they take that of the default.
    lanes = tuple(lane if lane < PRIORITIES else given[qos["default"]] for lane in given)
    used = sorted({lanes[level] for level in levels})
    lossy = set(qos.get("lossy") or ())
    lossless = tuple(level in levels and lane not in lossy for level, lane in enumerate(lanes))
    shares, notes = _shares(qos["arbiter"], used, approximate=approximate)
    return PriorityMap({8 * priority: priority for priority in range(PRIORITIES)}, lanes, lossless, shares), notes


def _shares(
    arbiter: Mapping[str, Any], lanes: Sequence[int], *, approximate: bool
) -> tuple[tuple[int, ...], list[str]]:
    """Percent of a link by traffic class, which sum up to 100; all 0 for strict priority."""
    name, params = arbiter["name"], arbiter["params"]
    order = [lane for lane in params.get("order") or () if lane in lanes]
    if name == "strict_priority" and not params.get("shares") and order == [*lanes][::-1]:
        return (0,) * PRIORITIES, []
    if name == "weighted_round_robin":
        given = list(params.get("weights") or [])
        weights = {lane: given[lane] if lane < len(given) else 1 for lane in lanes}
        exact = {lane: 100 * weight / sum(weights.values()) for lane, weight in weights.items()}
        parts = {lane: max(1, int(share)) for lane, share in exact.items()}  # 0 would be strict priority
        left = 100 - sum(parts.values())
        for lane in sorted(lanes, key=lambda lane: parts[lane] - exact[lane])[: max(0, left)]:
            parts[lane] += 1
        parts[max(lanes, key=lambda lane: parts[lane])] += min(0, left)
        shares = tuple(parts.get(lane, 0) for lane in range(PRIORITIES))
        rounded = [lane for lane in lanes if parts[lane] != exact[lane]]
        return shares, [f"shares of links are rounded to percent: traffic classes {rounded}"] if rounded else []
    message = "shares of links: RoCE has weights, or strict priority with the highest lane first"
    if not approximate:
        allowed = "weighted_round_robin, strict_priority, or --approximate for equal shares"
        raise ScenarioError(Problem("qos.arbiter", message, name, allowed))
    equal, _ = _shares({"name": "weighted_round_robin", "params": {}}, lanes, approximate=False)
    return equal, [f"left out: qos.arbiter: {message}; exported are equal shares"]


def scripts(ports: PriorityMap) -> dict[str, str]:
    """A script for each tool; the first argument is the interface."""
    every = range(PRIORITIES)
    on = [str(int(number)) for number in ports.lossless]
    lanes = [str(lane) for lane in ports.lanes]
    kinds, shares = ["ets" if share else "strict" for share in ports.shares], list(map(str, ports.shares))
    mlnx = [
        "mlnx_qos -i $1 --trust dscp",
        *(f"mlnx_qos -i $1 --dscp2prio set,{dscp},{priority}" for dscp, priority in ports.priorities.items()),
        f"mlnx_qos -i $1 --prio_tc {','.join(lanes)}",
        f"mlnx_qos -i $1 --prio2buffer {','.join(lanes)}",
        f"mlnx_qos -i $1 --pfc {','.join(on)}",
        f"mlnx_qos -i $1 --tsa {','.join(kinds)} --tcbw {','.join(shares)}",
    ]
    states = {"0": "off", "1": "on"}
    dcb = [
        f"dcb app replace dev $1 dscp-prio {' '.join(f'{dscp}:{number}' for dscp, number in ports.priorities.items())}",
        f"dcb pfc set dev $1 prio-pfc {' '.join(f'{number}:{states[on[number]]}' for number in every)}",
        f"dcb buffer set dev $1 prio-buffer {' '.join(f'{number}:{lanes[number]}' for number in every)}",
        f"dcb ets set dev $1 prio-tc {' '.join(f'{number}:{lanes[number]}' for number in every)}"
        f" tc-tsa {' '.join(f'{number}:{kinds[number]}' for number in every)}"
        f" tc-bw {' '.join(f'{number}:{shares[number]}' for number in every)}",
    ]
    enabled = ",".join(str(number) for number in every if ports.lossless[number]) or "none"
    lldp = [
        f"lldptool -T -i $1 -V PFC enableTx=yes willing=no enabled={enabled}",
        f"lldptool -T -i $1 -V ETS-CFG enableTx=yes willing=no"
        f" up2tc={','.join(f'{number}:{lanes[number]}' for number in every)}"
        f" tsa={','.join(f'{number}:{kinds[number]}' for number in every)} tcbw={','.join(shares)}",
    ]
    head = "#!/bin/sh\n# Sets the priorities of an interface: sh {name} eth0\nset -eu\n"
    texts = {"mlnx_qos.sh": mlnx, "dcb.sh": dcb, "lldptool.sh": lldp}
    return {name: head.format(name=name) + "".join(f"{line}\n" for line in lines) for name, lines in texts.items()}


def read(script: str) -> PriorityMap:
    """The map that a script for ``mlnx_qos`` sets."""
    priorities, options = {}, {}
    for line in script.splitlines():
        fields = line.split()
        if fields[:1] != ["mlnx_qos"]:
            continue
        given = dict(zip(fields[3::2], fields[4::2], strict=True))
        if entry := given.pop("--dscp2prio", None):
            _, dscp, priority = entry.split(",")
            priorities[int(dscp)] = int(priority)
        options.update(given)
    lanes, pfc, shares = (tuple(map(int, options[name].split(","))) for name in ("--prio_tc", "--pfc", "--tcbw"))
    return PriorityMap(priorities, lanes, tuple(map(bool, pfc)), shares)
