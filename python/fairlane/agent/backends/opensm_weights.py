"""Weights of service levels in ``opensm.conf``: the agent's lines at its end, which OpenSM reads again on SIGHUP.

Lanes of the agent's levels share links by their weights in the table of low priority. Their entries in the table of
high priority are left out; other lanes keep theirs in both. A comment for each endpoint has its level, which its
process has set by itself at its start.
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from fairlane.agent.backends.policy_file import BEGIN, END, without_agent
from fairlane.agent.jobs import Setting, levels_of, weights_of
from fairlane.inputs.files import content_lines
from fairlane.opensm.options import TYPES, read_options
from fairlane.opensm.settings import MOST_WEIGHT, UNIT

_PACKET = 4096 // UNIT  # units of the smallest weight where the others leave room: a packet of the largest MTU
_LEVEL = re.compile(r"^# level (\S+) (\d+)$", re.MULTILINE)


def block_of(text: str) -> str:
    """The agent's lines of a file; empty without any."""
    return text[len(without_agent(text)) :]


def levels_in(text: str) -> dict[str, int]:
    """Level by endpoint in the agent's lines."""
    return {endpoint: int(level) for endpoint, level in _LEVEL.findall(block_of(text))}


def lines_for(conf: Path, own: str, settings: Sequence[Setting], lanes: Mapping[int, int]) -> str:
    """The agent's lines for an operator's file; ``lanes`` has the lane of each level that the agent may give.

    Raises ``ScenarioError`` for an option that OpenSM does not understand.
    """
    if not settings:
        return ""
    options, _, _ = read_options(conf)
    weights = {level: weights_of(settings).get(level, 1.0) for level in lanes}
    least, most = min(weights.values()), max(weights.values())
    unit = min(float(_PACKET), MOST_WEIGHT * least / most)
    shared = {lanes[level]: max(1, round(unit * weight / least)) for level, weight in weights.items()}
    low = [*shared.items(), *((lane, weight) for lane, weight in options.vlarb_low if lane not in shared)]
    high = [(lane, weight) for lane, weight in options.vlarb_high if lane not in shared]
    named = {line.split()[0] for _, line in content_lines(own)}
    lines = [BEGIN, *(f"# level {endpoint} {level}" for endpoint, level in levels_of(settings).items())]
    for table, entries in (("low", low), ("high", high)):
        shown = ",".join(f"{lane}:{weight}" for lane, weight in entries) or "0:0"
        keys = [f"qos_{kind}vlarb_{table}" for kind in TYPES]
        lines += [f"{key} {shown}" for number, key in enumerate(keys) if number == 0 or key in named]
    return "".join(f"{line}\n" for line in (*lines, END))
