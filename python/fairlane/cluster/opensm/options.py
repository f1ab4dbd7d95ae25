"""The QoS options of ``opensm.conf``: a name and a value on each line.

``qos_ca_``, ``qos_swe_``, ``qos_sw0_`` and ``qos_rtr_`` are the same options for adapters, external ports of switches,
ports 0 of switches and routers; where they are not set, those without a type apply (see ``man opensm``). OpenSM 5 has
``qos_sw2sw_`` in addition, for ports between switches. A scenario has one setting for all ports, so those of adapters
and of switches must agree. ``max_op_vls`` limits the data lanes of all ports.

*What takes exported settings back: OpenSM's own defaults, written out.* Without ``qos_`` options, or with ``qos
FALSE``, OpenSM leaves the tables of ports as they are; only other tables replace them. Paths that are set up already
keep their service level, which OpenSM's default maps to the lane of that number.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from fairlane.cluster.opensm.policy import DEFAULT, Policy, write_policy
from fairlane.cluster.opensm.settings import (
    DATA_LANES,
    LEVELS,
    MOST_ENTRIES,
    MOST_WEIGHT,
    OPERATIONAL_VLS,
    Settings,
    Table,
)
from fairlane.core.errors import Problem, ScenarioError, nearest
from fairlane.core.units import whole_number
from fairlane.inputs.files import content_lines, read_text, reading

KEYS = ("max_vls", "high_limit", "vlarb_high", "vlarb_low", "sl2vl")
"""The options, without the prefix ``qos_`` and the type of port."""
TYPES = ("", "ca_", "sw0_", "swe_", "sw2sw_", "rtr_")
"""The types of ports; the empty one stands for all."""
DEFAULTS = {
    "max_vls": "15",
    "high_limit": "0",
    "vlarb_high": "0:4," + ",".join(f"{lane}:0" for lane in range(1, DATA_LANES)),
    "vlarb_low": "0:0," + ",".join(f"{lane}:4" for lane in range(1, DATA_LANES)),
    "sl2vl": ",".join(map(str, (*range(DATA_LANES), 7))),
}
"""OpenSM's values of options that are not set (``man opensm``, QOS CONFIGURATION)."""
_PORTS = {"ca_": "adapters", "swe_": "switches", "sw2sw_": "ports between switches"}
_FALLBACKS = {"sw2sw_": ("sw2sw_", "swe_", "")}  # others have their own options and those for all ports
_UNSET = ("(null)", "null", "")
_DEFAULT = {"max_vls": "0", "high_limit": "-1"}  # values that stand for OpenSM's default
_ENTRY = re.compile(r"\s*(\d{1,4})\s*:\s*(\d{1,6})\s*")
_OTHER = ("qos", "qos_policy_file")
_OPERATIONAL = "max_op_vls"


@dataclass
class Options:
    """The options of a file."""

    file: Path
    values: dict[str, str] = field(default_factory=dict)
    """By name, without ``qos_``; those that are set."""
    lines: dict[str, int] = field(default_factory=dict)
    """Their lines."""
    operational: str | None = None
    """The value of ``max_op_vls``."""
    on: bool = False
    """Whether the file turns QoS on."""
    policy_file: str | None = None
    """The file of the QoS policy that it names."""


def write_options(settings: Settings, policy_file: str, comments: tuple[str, ...] = ()) -> str:
    """The lines of ``opensm.conf``, after comments."""
    tables = {"high": settings.vlarb_high, "low": settings.vlarb_low}
    rows = {
        "qos": "TRUE",
        "qos_policy_file": policy_file,
        _OPERATIONAL: str(next(code for code, lanes in OPERATIONAL_VLS.items() if lanes == settings.operational_vls)),
        "qos_max_vls": str(settings.max_vls),
        "qos_high_limit": str(settings.high_limit),
        **{
            f"qos_vlarb_{name}": ",".join(f"{lane}:{weight}" for lane, weight in table) or "0:0"
            for name, table in tables.items()
        },
        "qos_sl2vl": ",".join(map(str, settings.sl2vl)),
    }
    return "".join(f"# {comment}\n" for comment in comments) + "".join(
        f"{key} {value}\n" for key, value in rows.items()
    )


def default_options(policy_file: str) -> str:
    """Lines of ``opensm.conf`` that set OpenSM's defaults in all ports."""
    defaults = {f"qos_{key}": value for key, value in DEFAULTS.items()}
    rows = {"qos": "TRUE", "qos_policy_file": policy_file, _OPERATIONAL: str(max(OPERATIONAL_VLS)), **defaults}
    return "".join(f"{key} {value}\n" for key, value in rows.items())


def read_options(file: Path) -> tuple[Settings, list[str], Options]:
    """The settings of a file, notes on what a scenario has no place for, and the file's options.

    Raises ``ScenarioError`` with the line of every value that is wrong.
    """
    options = _options(file)
    notes = [] if options.on else ["the file does not turn QoS on (qos TRUE): OpenSM does not use these options"]
    problems: list[Problem] = []
    settings = {kind: _settings(options, kind, problems) for kind in _PORTS}
    if problems:
        raise ScenarioError(dict.fromkeys(problems))
    problems += _differences(options, settings)
    if problems:
        raise ScenarioError(problems)
    special = [f"qos_{kind}{key}" for kind in ("sw0_", "rtr_") for key in KEYS if f"{kind}{key}" in options.values]
    if special:
        notes.append(f"{', '.join(special)}: not read; there are no such ports in a scenario")
    if options.operational == "0":
        notes.append(f"{_OPERATIONAL} 0: ports keep their operational lanes; assumed: all of them")
    used = settings["swe_"]
    if (lanes := max((lane for lane in used.sl2vl if lane < DATA_LANES), default=0) + 1) > used.max_vls:
        remark = f"sl2vl has VL{lanes - 1}, which is set in ports as {_OPERATIONAL} has it"
        notes.append(f"qos_max_vls {used.max_vls}: OpenSM does not use this option; {remark}")
    return used, notes, options


def _differences(options: Options, settings: dict[str, Settings]) -> Iterator[Problem]:
    """An error for each option whose value is another for one kind of ports."""
    for key in KEYS[1:]:  # OpenSM does not use max_vls
        for kind, other in (("swe_", "ca_"), ("sw2sw_", "swe_")):
            if getattr(settings[kind], key) == getattr(settings[other], key):
                continue
            name = next(f"{prefix}{key}" for prefix in (kind, other) if f"{prefix}{key}" in options.values)
            message = (
                f"{_PORTS[other]} and {_PORTS[kind]} have different settings, and a scenario has one for all ports"
            )
            value = options.values[name]
            yield Problem(f"qos_{name}", message, value, file=str(options.file), line=options.lines[name])


def _options(file: Path) -> Options:
    with reading(file):
        text = read_text(file)
    options = Options(file)
    known = [f"{kind}{key}" for kind in TYPES for key in KEYS]
    problems = []
    for number, line in content_lines(text):
        key, _, value = (
            line.replace("=", " ", 1).partition(" ") if " " not in line.split("=")[0] else line.partition(" ")
        )
        key, value = key.strip(), value.partition("#")[0].strip()
        if key == "qos":
            options.on = value.upper() == "TRUE"
        elif key == _OPERATIONAL:
            options.operational, options.lines[key] = value, number
        elif key == "qos_policy_file":
            options.policy_file = None if value in _UNSET else value
        elif key.removeprefix("qos_") in known and key.startswith("qos_"):
            if value not in (*_UNSET, next((mark for name, mark in _DEFAULT.items() if key.endswith(name)), "")):
                options.values[key[4:]], options.lines[key[4:]] = value, number
        elif key.startswith("qos_"):
            names = [*_OTHER, *(f"qos_{name}" for name in known)]
            message = "unknown option of OpenSM's QoS"
            near = nearest(key, names)
            problems.append(Problem(key, message, value, nearest=near, file=str(file), line=number))
    if problems:
        raise ScenarioError(problems)
    return options


def _settings(options: Options, kind: str, problems: list[Problem]) -> Settings:
    """The settings for one type of ports: its own options, else those for all ports, else OpenSM's defaults."""
    values = _Values(options, kind, problems)
    return Settings(
        values.number("max_vls", 1, DATA_LANES),
        values.number("high_limit", 0, 255),
        values.table("vlarb_high"),
        values.table("vlarb_low"),
        values.mapping(),
        values.operational(),
    )


@dataclass
class _Values:
    """The values of the options for one type of ports; what is wrong is added to ``problems``."""

    options: Options
    kind: str
    problems: list[Problem]

    def _value(self, key: str) -> tuple[str, str]:
        """Name and value of an option that applies."""
        for prefix in _FALLBACKS.get(self.kind, (self.kind, "")):
            given = self.options.values.get(prefix + key)
            if given is not None:
                return prefix + key, given
        return key, DEFAULTS[key]

    def _refuse(self, name: str, given: str, message: str, allowed: str) -> None:
        place = {"file": str(self.options.file), "line": self.options.lines.get(name)}
        key = name if name == _OPERATIONAL else f"qos_{name}"
        self.problems.append(Problem(key, message, given, allowed, **place))  # type: ignore[arg-type]

    def number(self, key: str, low: int, high: int) -> int:
        """A number within bounds."""
        name, given = self._value(key)
        if given.isdecimal() and low <= whole_number(given) <= high:
            return whole_number(given)
        self._refuse(name, given, "not a number in range", f"{low} to {high}")
        return low

    def operational(self) -> int:
        """The number of lanes in operation."""
        given = self.options.operational or str(max(OPERATIONAL_VLS))
        if given.isdecimal():
            code = whole_number(given)
            return OPERATIONAL_VLS.get(code, DATA_LANES)
        self._refuse(_OPERATIONAL, given, "not a code of OperationalVLs", "1 to 5 for 1, 2, 4, 8 and 15 data lanes")
        return DATA_LANES

    def table(self, key: str) -> Table:
        """A table of VL arbitration."""
        name, given = self._value(key)
        entries = [_ENTRY.fullmatch(entry) for entry in given.split(",") if entry.strip()]
        pairs = [(whole_number(match[1]), whole_number(match[2])) for match in entries if match]
        if len(pairs) < len(entries) or any(lane >= DATA_LANES or weight > MOST_WEIGHT for lane, weight in pairs):
            allowed = f"VL:WEIGHT,... with VL 0 to {DATA_LANES - 1} (VL15 is for management), WEIGHT 0 to {MOST_WEIGHT}"
            self._refuse(name, given, "not a table of VL arbitration", allowed)
        elif len(pairs) > MOST_ENTRIES:
            self._refuse(name, given, f"{len(pairs)} entries", f"at most {MOST_ENTRIES}")
        return tuple(pairs)

    def mapping(self) -> tuple[int, ...]:
        """The lane of each service level; levels that are not listed have lane 0."""
        name, given = self._value("sl2vl")
        parts = [part.strip() for part in given.rstrip(",").split(",")]
        lanes = [whole_number(part) for part in parts if part.isdecimal()]
        if len(lanes) < len(parts) or len(lanes) > LEVELS or any(lane > DATA_LANES for lane in lanes):
            self._refuse(name, given, "not a lane for each service level", f"at most {LEVELS} of 0 to {DATA_LANES}")
            return (0,) * LEVELS
        return (*lanes, *[0] * (LEVELS - len(lanes)))


REVERT = "revert"
"""The folder of the files."""
_STEPS = (
    "Takes back what opensm.conf in the folder above has set: OpenSM's defaults. Removing lines, or restarting OpenSM",
    "without them, leaves the tables of all ports as they are. Instead:",
    "1. In OpenSM's configuration, replace the lines that were added by those below, or by those that were there",
    "   before, if all five qos_ options were set. Copy qos-policy.conf to {policy}.",
    "2. Have OpenSM read them: kill -HUP $(pidof opensm). Where max_op_vls has changed, do so again after SUBNET UP.",
    "3. Verify ports of a host and of a switch, by LID and port: smpquery vlarb LID PORT; smpquery sl2vl LID PORT.",
    "   SL n has lane n (of fewer lanes the low bits); VL0 has weight 4 in the high table, the others in the low one.",
    "   fairlane sm check --revert does this on a simulated subnet, for all ports.",
    "4. Remove TaskProlog, PrologSlurmctld and EpilogSlurmctld of the exported scripts from slurm.conf, and env/*.sh",
    "   from job scripts. Jobs that run keep their service level until they end.",
    "5. Now the lines may be removed from OpenSM's configuration, too.",
)


def revert_files(policy_file: str) -> dict[str, str]:
    """The text of each file; ``policy_file`` is the policy's path on OpenSM's machine."""
    steps = "".join(f"# {line.format(policy=policy_file)}\n" for line in _STEPS)
    policy = write_policy(Policy((), {DEFAULT: 0}, ()), ("OpenSM's default: service level 0 for all paths",))
    return {f"{REVERT}/opensm.conf": steps + default_options(policy_file), f"{REVERT}/qos-policy.conf": policy}
