"""Fabrics: what one consists of, what was found in the file of a real one, and how two differ cable by cable."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import polars as pl

from fairlane.core.units import BANDWIDTH, DURATION
from fairlane.core.wording import plural, significant, some
from fairlane.model.fabric.compare import Comparison
from fairlane.model.fabric.survey import Survey
from fairlane.model.fabric.view import Coverage, FabricDescription, share_text
from fairlane.views.model import View
from fairlane.views.tables import Column, Row, Table, columns, terms

MOST_PAIRS = 8
"""Pairs of groups that a terminal lists, those with most differences."""
_MOST_NAMES = 6
"""Switches of a level that are named."""


def described(fabric: FabricDescription) -> View:
    """Hosts, switches, links, bisection and routes."""
    links = [asdict(kind) for kind in fabric.links]
    shown = [
        Column("class", "name"),
        Column("role", "role", left=True),
        Column("links", "links"),
        Column("bandwidth", "bandwidth", _rate),
        Column("latency", "latency", DURATION.format),
    ]
    total = sum(kind.links for kind in fabric.links)
    switches = sum(fabric.switches.values())
    return View(
        title="Fabric",
        headline=f"{plural(fabric.hosts, 'host')}, {plural(switches, 'switch', 'switches')}, {plural(total, 'link')}",
        facts=[],
        parts=[
            terms(dict(_description(fabric)), "Fabric", sentence=f"{plural(fabric.hosts, 'host')}."),
            Table(shown, links, "Links", sentence=f"{total:,} links of {plural(len(links), 'class', 'classes')}."),
        ],
        remarks=[
            *(f"Exception: {line}" for line in fabric.exceptions),
            *(f"Warning: {line}" for line in fabric.coverage.warnings),
        ],
    )


def _description(fabric: FabricDescription) -> Iterator[tuple[str, str]]:
    yield "hosts", f"{fabric.hosts}{_adapters(fabric)}"
    yield "switches", f"{sum(fabric.switches.values())}: {_layout(fabric)}"
    yield "names", f"hosts {fabric.host_list}; switches {fabric.switch_list}"
    least = "" if fabric.diameter_is_exact else "at least "
    yield "diameter", f"{least}{plural(fabric.diameter, 'link')}"
    share = (
        f", {fabric.bisection / fabric.full_bisection:.0%} of what the hosts can send" if fabric.full_bisection else ""
    )
    bound = "" if fabric.bisection_is_exact else "at most "
    used = fabric.usable_bisection / fabric.full_bisection if fabric.full_bisection else 0
    usable = f" (routing can use {used:.0%})" if fabric.usable_bisection < fabric.bisection else ""
    yield "bisection", f"{bound}{_rate(fabric.bisection)}{share}{usable}"
    yield "routes", routes_text(fabric.coverage)
    for idle in fabric.coverage.idle:
        rest = f" and {idle.links - len(idle.first)} more" if idle.links > len(idle.first) else ""
        yield f"idle {idle.name}", f"{idle.links} of {idle.total}: {', '.join(idle.first)}{rest}"
    *first, last = fabric.virtual_channels
    if first:
        lanes = "; ".join(f"lane {lane}: {channels}" for lane, channels in enumerate(first))
        yield "channels", f"of the routings, by virtual lane: {lanes}; lane {len(first)} and above: {last}"
    else:
        yield "channels", f"{last} of the routing: as many lanes for each service level"


def routes_text(coverage: Coverage) -> str:
    """The shares of minimal routes and paths: ``100% of host pairs have a minimal route; ...``."""
    measured, all_of_them = coverage.sources
    sample = "" if measured == all_of_them else f" (from {measured} of {all_of_them} switches)"
    paths = f"every link of {share_text(coverage.minimal_paths)} of the minimal paths is used by some route{sample}"
    if coverage.minimal_routes is None:
        return paths
    return f"{share_text(coverage.minimal_routes)} of host pairs have a minimal route; {paths}"


def lanes_text(pairs: Iterable[tuple[str, int]]) -> str:
    """Say how many virtual lanes a port needs: ``16 virtual lanes: 6 channels each for service levels 0, 1; ...``."""
    channels = Counter(levels for levels, _ in pairs)
    alike: dict[int, list[str]] = {}
    for levels, count in channels.items():
        alike.setdefault(count, []).append(levels)
    kinds = [
        f"{plural(count, 'channel')}{' each' if len(levels) > 1 else ''} for service level"
        f"{'s' if len(levels) > 1 else ''} {', '.join(levels)}"
        for count, levels in alike.items()
    ]
    return f"{plural(sum(channels.values()), 'virtual lane')}: {'; '.join(kinds)}"


def _adapters(fabric: FabricDescription) -> str:
    if len(fabric.adapters) == 1:
        return f", {fabric.rails} adapters each" if fabric.rails > 1 else ""
    counts = ", ".join(f"{hosts} with {plural(count, 'adapter')}" for count, hosts in fabric.adapters.items())
    return f": {counts}"


def _rate(bandwidth: int) -> str:
    """Exact if that is short, else to five digits."""
    exact = BANDWIDTH.format(bandwidth)
    return exact if len(exact) <= 12 else f"{significant(bandwidth / 8e9, 5)} GB/s"


def _layout(fabric: FabricDescription) -> str:
    plan: Mapping[str, Any] = fabric.plan
    switches = sum(fabric.switches.values())
    if plan["kind"] == "grid":
        shape = {"ring": "torus", "open": "mesh", "full": "HyperX"}[plan["line"]]
        return f"{shape} of {' x '.join(map(str, plan['sides']))}"
    levels = ", ".join(f"{count} at level {level}" for level, count in fabric.switches.items())
    if plan["kind"] == "groups":
        size, row = plan["switches"], plan["row"]
        grid = f" ({row} x {size // row})" if row != size else ""
        groups = f"{switches // size} groups of {size}{grid}"
        return f"{groups}; {levels}" if len(fabric.switches) > 1 else groups
    return levels


def surveyed(survey: Survey, file: str) -> View:
    """Show the content of the file of a real fabric, and its faults."""
    return View(
        title=f"{file}: fabric",
        headline=f"{plural(survey.hosts, 'host')}, {plural(survey.switches, 'switch', 'switches')}, {survey.tree}",
        facts=[],
        parts=[terms(dict(_survey(survey)), "Fabric", sentence=f"{plural(survey.cables, 'cable')}.")],
        remarks=[f"Anomaly: {line}" for line in survey.anomalies],
    )


def _survey(survey: Survey) -> Iterator[tuple[str, str]]:
    cables = sum(count * hosts for count, hosts in survey.adapters.items())
    yield "hosts", f"{survey.hosts}{f', with {cables} adapter ports' if cables > survey.hosts else ''}"
    if set(survey.adapters) != {1}:
        rails = ", ".join(f"{hosts} x {count}" for count, hosts in survey.adapters.items())
        yield "rails", f"{rails} (hosts x cables of each)"
    yield "switches", str(survey.switches)
    kinds = ", ".join(f"{count} {kind}" for kind, count in survey.kinds.items())
    yield "cables", f"{survey.cables}: {kinds}"
    yield "shape", survey.tree
    for level, names in survey.levels.items():
        yield f"level {level}", f"{len(names)}: {some(names, _MOST_NAMES)}"
    counts = Counter(survey.hosts_per_leaf.values())
    leaves = ", ".join(f"{count} x {hosts}" for hosts, count in sorted(counts.items(), reverse=True))
    yield "hosts per leaf", f"{leaves} (leaves x hosts)"
    if survey.oversubscription:
        least, most = min(survey.oversubscription.values()), max(survey.oversubscription.values())
        range_ = f"{least:.2f} : 1" if f"{least:.2f}" == f"{most:.2f}" else f"{least:.2f} : 1 to {most:.2f} : 1"
        yield "oversubscription", f"{range_} (bandwidth of leaves to hosts : to switches)"
    yield "anomalies", str(len(survey.anomalies) or "none")


def compared(comparison: Comparison, first: str, second: str) -> View:
    """Two fabrics of as many switches, cable by cable."""
    as_many = _of(comparison.switches_with_as_many_hosts, comparison)
    sides = columns(first="first", second="second")
    same = Column("same", "same", note="same: between the same two switches")
    rows = comparison.classes.to_dicts()
    cables = sum(row["same"] for row in rows)
    table = Table(
        [Column("class", "class"), *sides, same], rows, "Cables between switches", sentence=f"{cables:,} are the same."
    )
    return View(
        title="Two fabrics",
        headline=f"{comparison.hosts[0]:,} and {comparison.hosts[1]:,} hosts; {as_many} have equally many",
        facts=[f"first: {first}", f"second: {second}"],
        parts=[table, *_pairs(comparison.groups)],
        remarks=[*_port_lines(comparison), *_group_lines(comparison.groups)],
    )


def _of(count: int, comparison: Comparison) -> str:
    return f"{count:,} of {plural(comparison.switches, 'switch', 'switches')}"


def _port_lines(comparison: Comparison) -> Iterator[str]:
    for name, alike in comparison.alike.iter_rows():
        ports = (_ports(comparison.ports, name, side) for side in ("first", "second"))
        yield f"Ports of class {name}: {'; '.join(ports)}; equally many at {_of(alike, comparison)}."


def _ports(table: pl.DataFrame, name: str, side: str) -> str:
    rows = table.filter(table["class"] == name, table[side] > 0).select("ports", side).iter_rows()
    return f"{side} " + ", ".join(f"{switches:,} switches x {ports}" for ports, switches in rows)


def _group_lines(groups: pl.DataFrame) -> Iterator[str]:
    """Say how many pairs of groups have as many cables, and where they end alike."""
    if groups.is_empty():
        return
    pairs = plural(groups.height, "pair of groups", "pairs of groups")
    as_many = int((groups["first"] == groups["second"]).sum())
    alike = int((groups["first"] == groups["same"]).sum())
    yield f"{pairs}: equally many cables in {as_many}, all between the same switches in {alike}."
    counts = {key: sorted(groups[key].to_list()) for key in ("first", "second", "same")}
    ranges = (f"{key} {of_key[0]} to {of_key[-1]}" for key, of_key in counts.items())
    yield f"Cables of a pair of groups: {', '.join(ranges)}."


def _pairs(groups: pl.DataFrame) -> Iterator[Table]:
    """Pairs of groups whose cables differ, those with fewest in common first."""
    if groups.is_empty():
        return
    apart = groups.filter((groups["first"] != groups["same"]) | (groups["second"] != groups["same"]))
    rows: Sequence[Row] = apart.sort("same", "a", "b").to_dicts()
    if rows:
        shown = columns(a="group", b="group", first="first", second="second", same="same")
        said = f"{plural(len(rows), 'pair')} of groups differ."
        yield Table(
            [*shown, Column("class", "class", left=True)], rows, "Groups that differ", sentence=said, most=MOST_PAIRS
        )
