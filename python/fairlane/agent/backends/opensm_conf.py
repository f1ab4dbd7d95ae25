"""What opensm.conf has to say so that the levels of the agent mean on the switches what they mean in the twin."""

from collections.abc import Iterator
from pathlib import Path

from fairlane.agent.backends.base import Surroundings
from fairlane.errors import Problem, ScenarioError
from fairlane.inputs.files import read_text, reading

_SL2VL = "0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,7"
"""OpenSM's default of ``qos_sl2vl``."""
_OPERATIONAL = {"1": 1, "2": 2, "3": 4, "4": 8, "5": 15}
"""Data lanes by the value of ``max_op_vls``, as in the InfiniBand specification's OperationalVLs."""


def read_conf(file: Path) -> dict[str, tuple[str, int]]:
    """The options of opensm.conf, each with its line. Raises ``ScenarioError`` if it cannot be read."""
    with reading(file):
        text = read_text(file)
    found: dict[str, tuple[str, int]] = {}
    for number, line in enumerate(text.splitlines(), 1):
        key, _, value = line.partition("#")[0].strip().partition(" ")
        if key:
            found[key] = (value.strip(), number)
    return found


def check_conf(file: Path, surroundings: Surroundings, policy: Path) -> None:
    """Raises ``ScenarioError`` with everything in opensm.conf that does not suit the agent."""
    options = read_conf(file)
    problems = list(_problems(options, surroundings, policy))
    if problems:
        raise ScenarioError(
            problem.at(str(file), options[problem.key][1] if problem.key in options else None) for problem in problems
        )


def _problems(options: dict[str, tuple[str, int]], of: Surroundings, policy: Path) -> Iterator[Problem]:
    def value(key: str, default: str) -> str:
        return options.get(key, (default, 0))[0]

    if value("qos", "FALSE").upper() != "TRUE":
        yield Problem("qos", "OpenSM does not set up service levels", value("qos", "FALSE"), "TRUE")
    named = value("qos_policy_file", "/etc/opensm/qos-policy.conf")
    if Path(named).resolve() != policy.resolve():
        yield Problem("qos_policy_file", "is not the policy of the agent's backend", named, str(policy))
    lanes = _OPERATIONAL.get(value("max_op_vls", "5"), 15)
    key = "max_op_vls"
    if value("qos_max_vls", "").isdigit() and 0 < int(value("qos_max_vls", "")) < lanes:
        lanes, key = int(value("qos_max_vls", "")), "qos_max_vls"
    mapped = [int(word) if word.strip().isdigit() else -1 for word in value("qos_sl2vl", _SL2VL).split(",")]
    for level, lane in of.lanes.items():
        found = mapped[level] if level < len(mapped) else None
        if found != lane:
            words = f"maps service level {level} to lane {found}, the twin to lane {lane}"
            yield Problem("qos_sl2vl", words, value("qos_sl2vl", _SL2VL), "the same as qos.sl2vl of the agent")
        elif lane >= lanes:
            words = f"the switches have {lanes} lanes, and service level {level} needs lane {lane}"
            yield Problem(key, words, value(key, "5"), f"at least {lane + 1} lanes, or fewer levels in policy.levels")
