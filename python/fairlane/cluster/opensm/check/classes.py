"""Compares OpenSM's files with the lanes that a scenario means its traffic classes and jobs to have; needs no subnet.

A level reaches a lane by ``qos_sl2vl``, of which ports keep the low bits if ``max_op_vls`` leaves them fewer lanes. Its
share of a link is that of ``qos_vlarb_high``, ``qos_vlarb_low`` and ``qos_high_limit``. A QoS policy gives a level to
all paths between two ports: the job's, or that of a class of all of its messages. Classes of some of a job's messages
get their level from the communication library, whatever the policy says.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path

from fairlane.cluster.opensm.check.ports import Compared, Difference
from fairlane.cluster.opensm.export import settings_of
from fairlane.cluster.opensm.jobs import levels_of
from fairlane.cluster.opensm.nodes import names_of
from fairlane.cluster.opensm.options import Options, read_options
from fairlane.cluster.opensm.policy import Policy, read_policy
from fairlane.cluster.opensm.settings import DATA_LANES, MOST_ENTRIES, Settings, differ, shares_of
from fairlane.core.wording import percent
from fairlane.model.scenario import Resolved

_DEFAULTS = "OpenSM's default"
_TABLES = ("vlarb_low", "vlarb_high", "high_limit")


def compare_classes(resolved: Resolved, file: Path, policy: Path | None = None) -> Compared:
    """What reaches another lane, or a lane with another share, than in the scenario.

    ``file`` has OpenSM's options; ``policy`` is its QoS policy, by default the one that the options name, if it is
    there. Raises ``ScenarioError`` for files that cannot be read.
    """
    settings, notes, options = read_options(file)
    levels, _ = levels_of(resolved, approximate=True)
    users = _users(resolved, levels)
    differences = [*_lanes(resolved, settings, options, users), *_shares(resolved, settings, options, users)]
    counts = {"classes and jobs": sum(map(len, users.values())), "service levels": len(users)}
    place = policy or _named(options)
    if place is None:
        notes = [*notes, "service levels of paths are not compared: no QoS policy is given or found"]
    else:
        read = read_policy(place)
        differences += _paths(resolved, read, place, _of_paths(resolved, levels))
        counts["rules of the policy"] = len(read.rules)
        notes = [*notes, *read.notes]
        if any(group.guids for group in read.groups):
            notes.append("groups of port GUIDs are not compared: sm check of an exported folder does")
    return Compared(counts, tuple(differences), tuple(notes))


def _users(resolved: Resolved, levels: Mapping[str, int]) -> dict[int, list[str]]:
    """What has each service level."""
    found: dict[int, list[str]] = {}
    for one in resolved.tables["qos"].get("classes", ()):
        if one["service_level"] is not None:
            found.setdefault(one["service_level"], []).append(f"class {one['name']}")
    for job, level in levels.items():
        found.setdefault(level, []).append(f"job {job}")
    return dict(sorted(found.items()))


def _lanes(
    resolved: Resolved, settings: Settings, options: Options, users: Mapping[int, Sequence[str]]
) -> Iterator[Difference]:
    for level, names in users.items():
        lane = resolved.tables["qos"]["sl2vl"][level]
        given, found = settings.sl2vl[level], settings.in_force().sl2vl[level]
        if found == lane:
            continue
        key = "sl2vl" if given != lane else "max_op_vls"
        dropped = " (drops its packets)" if found == DATA_LANES else ""
        for name in names:
            what = f"{name}, service level {level}"
            yield _difference(options, key, what, f"lane {lane}", f"lane {found}{dropped}")


def _shares(
    resolved: Resolved, settings: Settings, options: Options, users: Mapping[int, Sequence[str]]
) -> Iterator[Difference]:
    meant, lanes, _ = settings_of(resolved, approximate=True, data_lanes=DATA_LANES, entries=MOST_ENTRIES)
    packet = sum(resolved.tables["network"][key] for key in ("mtu", "header"))
    in_force = settings.in_force()
    found = shares_of(in_force, packet)
    expected = {one.lane: one.exported for one in lanes}
    simulated = {one.lane: one.simulated for one in lanes}
    if not differ(found, expected) or not differ(found, simulated):
        return
    key = next((name for name in _TABLES if getattr(in_force, name) != getattr(meant, name)), "sl2vl")
    for level, names in users.items():
        lane = resolved.tables["qos"]["sl2vl"][level]
        share = float(found.get(lane, 0))
        # A level without its lane has a difference already.
        if in_force.sl2vl[level] == lane and differ({lane: share}, {lane: expected[lane]}):
            for name in names:
                what = f"{name}, lane {lane}"
                yield _difference(options, key, what, _share(simulated[lane]), _share(share))


def _share(share: float) -> str:
    return f"{percent(share)} of a link"


def _difference(options: Options, key: str, what: str, expected: str, found: str) -> Difference:
    """A difference at the line of the option that applies to all ports or to switches."""
    names = (key,) if key == "max_op_vls" else (f"swe_{key}", f"ca_{key}", key)
    name = next((name for name in names if name in options.lines), None)
    line = "" if name is None else f":{options.lines[name]}"
    option = key if key == "max_op_vls" else f"qos_{name or key}"
    return Difference(
        f"{options.file}{line}", "all", what, expected, found, option if name else f"{option}, {_DEFAULTS}"
    )


def _named(options: Options) -> Path | None:
    """The policy that the options name, or one of that name beside them."""
    if options.policy_file is None:
        return None
    places = (Path(options.policy_file), options.file.parent / Path(options.policy_file).name)
    return next((place for place in places if place.is_file()), None)


def _of_paths(resolved: Resolved, levels: Mapping[str, int]) -> dict[str, tuple[str, int]]:
    """By job what its paths are for, and their level: a class of all of its messages, or the job."""
    found = {job: (f"job {job}", level) for job, level in levels.items()}
    for one in reversed(resolved.tables["qos"].get("classes", ())):
        whole = all(one[key] is None for key in ("communicators", "operations", "above", "up_to"))
        if whole and one["service_level"] is not None:
            named = (f"class {one['name']}", one["service_level"])
            found |= dict.fromkeys(found if one["jobs"] is None else one["jobs"], named)
    return found


def _paths(
    resolved: Resolved, policy: Policy, file: Path, of_jobs: Mapping[str, tuple[str, int]]
) -> Iterator[Difference]:
    """Of each job the first path between ports of its hosts, one after the other, that has another level."""
    fabric = resolved.fabric
    members = {group.name: set(group.names) for group in policy.groups}
    anywhere: set[str] = set().union(*members.values()) if members else set()
    for job in resolved.jobs:
        name, level = of_jobs[job.name]
        ports = [names_of(fabric, host)[0] for host in dict.fromkeys(job.hosts)]
        if not any(str(port) in anywhere for port in ports):
            continue
        for one, other in pairwise(map(str, ports)):
            rule = next(
                (
                    rule
                    for rule in policy.rules
                    if one in members.get(rule.source or "", anywhere)
                    and other in members.get(rule.destination or "", anywhere)
                ),
                None,
            )
            found = policy.default if rule is None else policy.levels[rule.level]
            if found != level:
                line = "" if rule is None or rule.line is None else f":{rule.line}"
                cause = "level DEFAULT" if rule is None else f"qos-match-rule of level {rule.level}"
                expected, words = f"service level {level}", f"service level {found}"
                yield Difference(f"{file}{line}", f"{one} to {other}", f"{name}, paths", expected, words, cause)
                break
