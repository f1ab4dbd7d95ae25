"""OpenSM's QoS policy file: the agent's part of it, in an operator's own file.

The grammar is that of ``osm_qos_policy`` of OpenSM 3.3: sections ``port-groups``, ``qos-levels`` and
``qos-match-rules``; of the rules, the first that matches a path counts. The agent's lines stand between comments, so
they are found and taken out again, and everything else stays as it was. A job is a group of ports, and what its ports
send to each other has the job's level.
"""

import re
from collections.abc import Callable, Iterable, Sequence

from fairlane.agent.jobs import Setting

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


def with_settings(own: str, settings: Sequence[Setting], ports: Ports, default: int = 0) -> str:
    """The operator's file with the levels of jobs.

    The agent's rules come before the operator's. A section that the file does not have is added, and so is the level
    ``DEFAULT``, which OpenSM requires, as service level ``default``.
    """
    if not settings:
        return own
    levels = [_level(f"fairlane-sl-{level}", level) for level in sorted({one.level for one in settings})]
    if not has_default(own):
        levels.insert(0, _level("DEFAULT", default))
    text = _insert(own, "qos-match-rules", [line for one in settings for line in _rule(one)], first=True)
    text = _insert(text, "qos-levels", [line for one in levels for line in one])
    return _insert(text, "port-groups", [line for one in settings for line in _group(one, ports)])


def settings_in(text: str) -> list[tuple[str, int, list[str]]]:
    """Job, level and ports of each setting that the agent's lines of a policy hold."""
    own = "".join(_BLOCK.findall(text))
    levels = {job: int(level) for job, level in _RULE.findall(own)}
    groups = {job: [port.strip() for port in ports.split(",")] for job, ports in _GROUP.findall(own)}
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
    return [f"    {name}", *(f"        {one}" for one in fields), f"    end-{name}"]


def _insert(text: str, section: str, lines: Sequence[str], *, first: bool = False) -> str:
    """The text with lines at the end of a section, or at its beginning; a missing section is added at the top."""
    found = re.search(rf"^[ \t]*{section if first else f'end-{section}'}[ \t]*(?:#.*)?$\n?", text, re.MULTILINE)
    if found is None:
        return _block([section, *lines, f"end-{section}"]) + text
    at = found.end() if first else found.start()
    return text[:at] + _block(lines) + text[at:]


def _block(lines: Sequence[str]) -> str:
    return "".join(f"{line}\n" for line in (BEGIN, *lines, END))
