"""Files that give jobs and communicators their service levels, for a library and a network."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fairlane.core.errors import Problem, ScenarioError
from fairlane.model.scenario import Resolved
from fairlane.model.stacks import roce
from fairlane.model.stacks.libraries import LIBRARIES, NETWORKS, PROFILES, Library, Network
from fairlane.model.stacks.units import Unit, units_of

COMMUNICATORS = "communicators.json"
"""The file of ``trafficClass`` by job and communicator."""


@dataclass(frozen=True)
class Spelling:
    """Setting by which a library learns the level of some messages."""

    job: str
    communicators: tuple[str, ...]
    level: int
    lane: int
    """The virtual lane of the level in the scenario."""
    setting: str


@dataclass(frozen=True)
class Spelled:
    """The spellings of a scenario's classes, for a library and a network."""

    software: str
    """Name of the library."""
    network: str
    files: Mapping[str, str]
    """Text by file name, relative to the folder."""
    spellings: tuple[Spelling, ...]
    notes: tuple[str, ...]
    """Parts that are left out or differ, one sentence each."""


def export(
    resolved: Resolved,
    library: str,
    network: str,
    *,
    approximate: bool = False,
    names: Mapping[int, str] | None = None,
    profile: str = "HPC",
) -> Spelled:
    """The files for a resolved scenario, whose programs have been made.

    ``names`` has Slingshot's traffic class of each level, of those of ``profile``. Raises ``ScenarioError`` with the
    key of what library or network cannot do; ``approximate`` leaves it out, with a note.
    """
    its, of = _chosen(library, network)
    units, notes = units_of(resolved, its, approximate=approximate)
    qos = resolved.tables["qos"]
    _within(units, of)
    classes = _slingshot(units, names or {}, profile) if network == "slingshot" else {}
    values = {unit.level: classes.get(unit.level, str(of.number(unit.level))) for unit in units}
    files: dict[str, str] = {}
    if network == "roce":
        ports, more = roce.priority_map(qos, {qos["default"], *values}, approximate=approximate)
        files, notes = roce.scripts(ports), [*notes, *more]
    elif network == "infiniband":
        notes.append("lanes of service levels are those of qos export --opensm")
    spellings = []
    for job in dict.fromkeys(unit.job for unit in units):
        units_of_job = [unit for unit in units if unit.job == job]
        if len({unit.level for unit in units_of_job}) > 1:
            notes.append(f"communicators of job {job!r} without a name in the scenario have {its.title}'s default, 0")
        files[f"env/{job}.sh"], settings = _environment(its, of, units_of_job, values)
        spellings += [
            Spelling(job, unit.communicators, unit.level, qos["sl2vl"][unit.level], setting)
            for unit, setting in zip(units_of_job, settings, strict=True)
        ]
    if its.by_communicator:
        table = {
            job: {unit.communicators[0]: int(values[unit.level]) for unit in units if unit.job == job}
            for job in dict.fromkeys(unit.job for unit in units)
        }
        files[COMMUNICATORS] = json.dumps(table, indent=2) + "\n"
    return Spelled(library, network, files, tuple(spellings), tuple(notes))


def _chosen(library: str, network: str) -> tuple[Library, Network]:
    """Library and network, if there are settings of the one for the other."""
    for key, name, known in (("library", library, list(LIBRARIES)), ("network", network, list(NETWORKS))):
        if name not in known:
            raise ScenarioError(Problem.unknown(f"--{key}", key, name, known, name))
    its = LIBRARIES[library]
    if network not in its.settings:
        words, allowed = f"{its.title} has no setting for this network", ", ".join(its.settings)
        raise ScenarioError(Problem("--network", words, network, allowed))
    return its, NETWORKS[network]


def _within(units: Sequence[Unit], network: Network) -> None:
    """Refuses levels that the network does not have."""
    for unit in units:
        if unit.level > network.most:
            message = f"job {unit.job!r} has service level {unit.level}"
            raise ScenarioError(
                Problem("service_level", message, unit.level, f"at most {network.most} on {network.name}")
            )


def _environment(
    library: Library, network: Network, units: Sequence[Unit], values: Mapping[int, str]
) -> tuple[str, list[str]]:
    """Lines for a batch script, and the setting of each unit."""
    variable = library.settings[network.name]
    if len({unit.level for unit in units}) > 1:
        lines = [
            f"unset {name}" if value is None else f"export {name}={value}"
            for name, value in library.cleared[network.name].items()
        ]
        head = f"# {COMMUNICATORS} has trafficClass of ncclConfig_t for each communicator, from NCCL 2.26 on;\n"
        head += f"# {variable} would take its place.\n"
        settings = [f"trafficClass = {values[unit.level]}" for unit in units]
        return head + "".join(f"{line}\n" for line in lines), settings
    value = values[units[0].level]
    lines = [f"export {variable}={value}"]
    if network.name == "slingshot":
        lines = [
            f"#SBATCH --network=tcs={value.removeprefix('TC_')}",
            *lines,
            "export MPICH_OFI_TCLASS_ERRORS=error",
        ]
    return "".join(f"{line}\n" for line in lines), [f"{variable}={value}"] * len(units)


def _slingshot(units: Sequence[Unit], names: Mapping[int, str], profile: str) -> dict[int, str]:
    """Slingshot's traffic class of each level."""
    if profile not in PROFILES:
        raise ScenarioError(Problem.unknown("--profile", "profile", profile, list(PROFILES), profile))
    classes: dict[int, str] = {}
    for level in sorted({unit.level for unit in units}):
        name = names.get(level, "").removeprefix("TC_")
        if not name:
            allowed = f"--traffic-class {level}=NAME with one of {', '.join(PROFILES[profile])}"
            raise ScenarioError(Problem("--traffic-class", f"service level {level} has none", allowed=allowed))
        if name not in PROFILES[profile]:
            what = f"traffic class of profile {profile}"
            raise ScenarioError(Problem.unknown("--traffic-class", what, name, list(PROFILES[profile]), name))
        if other := next((known for known, taken in classes.items() if taken == f"TC_{name}"), None):
            message = f"service levels {other} and {level} have the same traffic class"
            raise ScenarioError(Problem("--traffic-class", message, name, "one for each level"))
        classes[level] = f"TC_{name}"
    return classes
