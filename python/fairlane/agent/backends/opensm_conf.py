"""What opensm.conf has to say so that the levels of the agent mean on the switches what they mean in the twin."""

from collections.abc import Iterator
from pathlib import Path

from fairlane.agent.backends.base import Surroundings
from fairlane.errors import Problem, ScenarioError
from fairlane.inputs.files import content_lines, read_text, reading
from fairlane.opensm.options import Options, read_options
from fairlane.opensm.settings import Settings

_POLICY = "/etc/opensm/qos-policy.conf"
"""OpenSM's default of ``qos_policy_file``."""


def check_conf(file: Path, surroundings: Surroundings, policy: Path) -> None:
    """Raises ``ScenarioError`` with everything in opensm.conf that does not suit the agent."""
    settings, _, options = read_options(file)
    with reading(file):
        rows = [(number, line.split()) for number, line in content_lines(read_text(file))]
    lines = {words[0]: number for number, words in rows}
    problems = [*_files(options, policy), *_levels(settings, surroundings)]
    if problems:
        raise ScenarioError(problem.at(str(file), lines.get(problem.key)) for problem in problems)


def _files(options: Options, policy: Path) -> Iterator[Problem]:
    """Whether OpenSM reads the policy at all."""
    if not options.on:
        yield Problem("qos", "OpenSM does not set up service levels", allowed="TRUE")
    named = options.policy_file or _POLICY
    if Path(named).resolve() != policy.resolve():
        yield Problem("qos_policy_file", "is not the policy of the agent's backend", named, str(policy))


def _levels(settings: Settings, of: Surroundings) -> Iterator[Problem]:
    """Whether the switches map the levels as the twin does, to lanes that they have."""
    lanes = settings.operational_vls
    for level, lane in of.lanes.items():
        if settings.sl2vl[level] != lane:
            words = f"maps service level {level} to lane {settings.sl2vl[level]}, the twin to lane {lane}"
            shown = ",".join(map(str, settings.sl2vl))
            yield Problem("qos_sl2vl", words, shown, "the same as qos.sl2vl of the agent")
        elif lane >= lanes:
            words = f"the switches have {lanes} lanes, and service level {level} needs lane {lane}"
            yield Problem("max_op_vls", words, allowed=f"at least {lane + 1} lanes, or fewer levels in policy.levels")
