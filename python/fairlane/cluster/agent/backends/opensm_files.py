"""Files of OpenSM that the agent reads and writes: ``opensm.conf``, port GUIDs by host, the QoS policy.

*Weights of service levels in ``opensm.conf``: the agent's lines at its end, which OpenSM reads again on SIGHUP.* Lanes
of the agent's levels share links by their weights in the table of low priority. Their entries in the table of high
priority are left out; other lanes keep theirs in both. A comment for each endpoint has its level, which its process has
set by itself at its start.

*OpenSM's QoS policy file: the agent's part of it, in an operator's own file.* The grammar is that of ``osm_qos_policy``
of OpenSM 3.3: sections ``port-groups``, ``qos-levels`` and ``qos-match-rules``; of the rules, the first that matches a
path counts. The agent's lines stand between comments, so they are found and taken out again, and everything else stays
as it was. A job is a group of ports, and what its ports send to each other has the job's level.
"""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from fairlane.cluster.agent.backends.base import Surroundings
from fairlane.cluster.agent.jobs import Setting, levels_of, weights_of
from fairlane.cluster.opensm.options import TYPES, Options, read_options
from fairlane.cluster.opensm.settings import MOST_WEIGHT, UNIT, Settings
from fairlane.core.errors import Problem, ScenarioError
from fairlane.inputs.files import content_lines, read_text, reading

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
            message = f"maps service level {level} to lane {settings.sl2vl[level]}, the twin to lane {lane}"
            shown = ",".join(map(str, settings.sl2vl))
            yield Problem("qos_sl2vl", message, shown, "the same as qos.sl2vl of the agent")
        elif lane >= lanes:
            message = f"the switches have {lanes} lanes, and service level {level} needs lane {lane}"
            yield Problem("max_op_vls", message, allowed=f"at least {lane + 1} lanes, or fewer levels in policy.levels")


def read_guids(file: Path, hosts: Collection[str]) -> dict[str, tuple[str, ...]]:
    """GUIDs by host. Raises ``ScenarioError`` with file and line."""
    known = set(hosts)
    with reading(file):
        text = read_text(file)
    by_host: dict[str, tuple[str, ...]] = {}
    taken: set[str] = set()
    for number, line in content_lines(text):
        host, *fields = line.split()
        if not fields or not all(re.fullmatch(r"0x[0-9a-fA-F]{1,16}", word) for word in fields):
            allowed = "as host0 0x0002c90300000001, with a GUID for each port"
            raise ScenarioError(Problem("", "not a host and its GUIDs", line, allowed, None, str(file), number))
        if host not in known:
            wrong = Problem.unknown("host", "host of the fabric", host, list(hosts)[:20], host)
            raise ScenarioError(wrong.at(str(file), number))
        guids = tuple(f"0x{int(word, 16):016x}" for word in fields)
        if host in by_host or len({*taken, *guids}) < len(taken) + len(guids):
            reason = "the host has GUIDs already" if host in by_host else "another port has this GUID"
            allowed = "one line of each host, with all its ports"
            raise ScenarioError(Problem("", reason, line, allowed, None, str(file), number))
        by_host[host] = guids
        taken.update(guids)
    return by_host


_PACKET = 4096 // UNIT  # units of the smallest weight where the others leave room: a packet of the largest MTU
_LEVEL = re.compile(r"^# level (\S+) (\d+)$", re.MULTILINE)


def block_of(text: str) -> str:
    """The agent's lines of a file; empty without any."""
    return text[len(without_agent(text)) :]


def levels_in(text: str) -> dict[str, int]:
    """Level by endpoint in the agent's lines."""
    return {endpoint: int(level) for endpoint, level in _LEVEL.findall(block_of(text))}


def lines_for(conf: Path, operators: str, settings: Sequence[Setting], lanes: Mapping[int, int]) -> str:
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
    named = {line.split()[0] for _, line in content_lines(operators)}
    lines = [BEGIN, *(f"# level {endpoint} {level}" for endpoint, level in levels_of(settings).items())]
    for table, entries in (("low", low), ("high", high)):
        shown = ",".join(f"{lane}:{weight}" for lane, weight in entries) or "0:0"
        keys = [f"qos_{kind}vlarb_{table}" for kind in TYPES]
        lines += [f"{key} {shown}" for number, key in enumerate(keys) if number == 0 or key in named]
    return "".join(f"{line}\n" for line in (*lines, END))


BEGIN, END = "# fairlane agent: begin", "# fairlane agent: end"
_BLOCK = re.compile(rf"^[ \t]*{BEGIN}\n.*?^[ \t]*{END}\n", re.MULTILINE | re.DOTALL)
_GROUP = re.compile(r"name: fairlane-job-(\S+)\n.*?(?:port-guid|port-name): ([^\n]*)", re.DOTALL)
_RULE = re.compile(r"source: fairlane-job-(\S+)\n.*?qos-level-name: fairlane-sl-(\d+)", re.DOTALL)
# The level for all others: one of this name, or the line of it in the section qos-ulps. OpenSM ignores case.
_DEFAULT = re.compile(r"^\s*(?:name\s*:\s*DEFAULT[ \t]*(?:#.*)?$|default\s*:)", re.MULTILINE | re.IGNORECASE)

Ports = Callable[[str], Sequence[str]]
"""The ports of a host, as a policy names them: ``0x0002c90300000001`` or ``host0/P1``."""


def without_agent(text: str) -> str:
    """The operator's own file: everything but the agent's lines."""
    return _BLOCK.sub("", text)


def has_default(text: str) -> bool:
    """Whether a policy has a level for what no rule matches, without which OpenSM refuses it."""
    return _DEFAULT.search(text) is not None


def with_settings(operators: str, settings: Sequence[Setting], ports: Ports, default: int = 0) -> str:
    """The operator's file with the levels of jobs.

    The agent's rules come before the operator's. A section that the file does not have is added, and so is the level
    ``DEFAULT``, which OpenSM requires, as service level ``default``.
    """
    if not settings:
        return operators
    levels = [_level(f"fairlane-sl-{level}", level) for level in sorted({one.level for one in settings})]
    if not has_default(operators):
        levels.insert(0, _level("DEFAULT", default))
    text = _insert(operators, "qos-match-rules", [line for one in settings for line in _rule(one)], first=True)
    text = _insert(text, "qos-levels", [line for one in levels for line in one])
    return _insert(text, "port-groups", [line for one in settings for line in _group(one, ports)])


def settings_in(text: str) -> list[tuple[str, int, list[str]]]:
    """Job, level and ports of each setting that the agent's lines of a policy hold."""
    blocks = "".join(_BLOCK.findall(text))
    levels = {job: int(level) for job, level in _RULE.findall(blocks)}
    groups = {job: [port.strip() for port in ports.split(",")] for job, ports in _GROUP.findall(blocks)}
    return [(job, levels[job], ports) for job, ports in groups.items() if job in levels]


def _group(setting: Setting, ports: Ports) -> list[str]:
    names = [port for host in setting.hosts for port in ports(host)]
    key = "port-guid" if all(name.startswith("0x") for name in names) else "port-name"
    fields = [f"name: fairlane-job-{setting.job}", f"use: hosts of job {setting.job}", f"{key}: {', '.join(names)}"]
    return _table("port-group", fields)


def _level(name: str, level: int) -> list[str]:
    return _table("qos-level", [f"name: {name}", f"sl: {level}"])


def _rule(setting: Setting) -> list[str]:
    group = f"fairlane-job-{setting.job}"
    fields = [f"use: job {setting.job}", f"source: {group}", f"destination: {group}"]
    return _table("qos-match-rule", [*fields, f"qos-level-name: fairlane-sl-{setting.level}"])


def _table(name: str, fields: Iterable[str]) -> list[str]:
    return [f"    {name}", *(f"        {field}" for field in fields), f"    end-{name}"]


def _insert(text: str, section: str, lines: Sequence[str], *, first: bool = False) -> str:
    """The text with lines at the end of a section, or at its beginning; a missing section is added at the top."""
    heading = re.search(rf"^[ \t]*{section if first else f'end-{section}'}[ \t]*(?:#.*)?$\n?", text, re.MULTILINE)
    if heading is None:
        return _block([section, *lines, f"end-{section}"]) + text
    at = heading.end() if first else heading.start()
    return text[:at] + _block(lines) + text[at:]


def _block(lines: Sequence[str]) -> str:
    return "".join(f"{line}\n" for line in (BEGIN, *lines, END))
