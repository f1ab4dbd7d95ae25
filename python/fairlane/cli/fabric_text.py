"""Fabrics in words, for people."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import polars as pl

from fairlane.cli.options import report
from fairlane.fabric import Comparison, FabricDescription, Survey
from fairlane.fabric.coverage import Coverage, share_text
from fairlane.units import BANDWIDTH, DURATION
from fairlane.views.tables import Column, Table, columns
from fairlane.wording import plural, renamed, significant

MOST_PAIRS = 8  # pairs of groups that are listed, those with most differences


def fabric_lines(fabric: FabricDescription) -> Iterator[str]:
    """What ``fabric describe`` prints."""
    yield f"hosts      {fabric.hosts}{_adapters(fabric)}"
    yield f"switches   {sum(fabric.switches.values())}: {_layout(fabric)}"
    yield f"names      hosts {fabric.host_list}; switches {fabric.switch_list}"
    yield f"links      {sum(kind.links for kind in fabric.links)}"
    for kind in fabric.links:
        rate, latency = _rate(kind.bandwidth), DURATION.format(kind.latency)
        role = "" if kind.role in kind.name else f"  ({kind.role})"
        yield f"  {kind.name:18} {kind.links:8}  {rate}, {latency}{role}"
    least = "" if fabric.diameter_is_exact else "at least "
    yield f"diameter   {least}{plural(fabric.diameter, 'link')}"
    share = f", {fabric.bisection / fabric.full_bisection:.0%} of what the hosts can send"
    bound = "" if fabric.bisection_is_exact else "at most "
    used = fabric.usable_bisection / fabric.full_bisection if fabric.full_bisection else 0
    usable = f" (routing can use {used:.0%})" if fabric.usable_bisection < fabric.bisection else ""
    yield f"bisection  {bound}{_rate(fabric.bisection)}{share if fabric.full_bisection else ''}{usable}"
    yield f"routes     {routes_text(fabric.coverage)}"
    for idle in fabric.coverage.idle:
        rest = f" and {idle.links - len(idle.first)} more" if idle.links > len(idle.first) else ""
        yield f"  idle     {idle.links} of {idle.total} {idle.name}: {', '.join(idle.first)}{rest}"
    *first, last = fabric.virtual_channels
    if first:
        some = "; ".join(f"lane {lane}: {channels}" for lane, channels in enumerate(first))
        yield f"channels   of the routings, by virtual lane: {some}; lane {len(first)} and above: {last}"
    else:
        yield f"channels   {last} of the routing: as many lanes for each service level"
    for words in fabric.exceptions:
        yield f"exception  {words}"
    for words in fabric.coverage.warnings:
        yield f"warning    {words}"


def routes_text(coverage: Coverage) -> str:
    """The shares of minimal routes and paths: ``100% of host pairs have a minimal route; ...``."""
    measured, all_of_them = coverage.sources
    sample = "" if measured == all_of_them else f" (from {measured} of {all_of_them} switches)"
    paths = f"{share_text(coverage.minimal_paths)} of the minimal paths have no idle link{sample}"
    if coverage.minimal_routes is None:
        return paths
    return f"{share_text(coverage.minimal_routes)} of host pairs have a minimal route; {paths}"


def _adapters(fabric: FabricDescription) -> str:
    if len(fabric.adapters) == 1:
        return f", {fabric.rails} adapters each" if fabric.rails > 1 else ""
    words = ", ".join(f"{hosts} with {plural(count, 'adapter')}" for count, hosts in fabric.adapters.items())
    return f": {words}"


def lanes_text(pairs: Iterable[tuple[str, int]]) -> str:
    """How many virtual lanes a port needs, and for what: ``16 virtual lanes (...): 0, 1 x 6; 2, 3 x 2``."""
    channels = Counter(levels for levels, _ in pairs)
    alike: dict[int, list[str]] = {}
    for levels, count in channels.items():
        alike.setdefault(count, []).append(levels)
    kinds = [f"{', '.join(levels)} x {count}" for count, levels in alike.items()]
    total = sum(channels.values())
    return f"{plural(total, 'virtual lane')} (service levels x channels): {'; '.join(kinds)}"


def report_renamed(given: Sequence[str], names: Sequence[str]) -> None:
    """Reports on standard error which names Slurm does not take, and what they are called for it."""
    for words in renamed("host", given, names, " for Slurm"):
        report(words)


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
        words = f"{switches // size} groups of {size}{grid}"
        return f"{words}; {levels}" if len(fabric.switches) > 1 else words
    return levels


def survey_lines(found: Survey) -> Iterator[str]:
    """What ``fabric import`` prints."""
    cables = sum(count * hosts for count, hosts in found.adapters.items())
    yield f"hosts      {found.hosts}{f', with {cables} adapter ports' if cables > found.hosts else ''}"
    if set(found.adapters) != {1}:
        rails = ", ".join(f"{hosts} x {count}" for count, hosts in found.adapters.items())
        yield f"rails      {rails} (hosts x cables of each)"
    yield f"switches   {found.switches}"
    kinds = ", ".join(f"{count} {kind}" for kind, count in found.kinds.items())
    yield f"cables     {found.cables}: {kinds}"
    yield f"shape      {found.tree}"
    for level, names in found.levels.items():
        yield f"  level {level}  {len(names)}: {_shortened(names)}"
    counts = Counter(found.hosts_per_leaf.values())
    leaves = ", ".join(f"{count} x {hosts}" for hosts, count in sorted(counts.items(), reverse=True))
    yield f"hosts per leaf  {leaves} (leaves x hosts)"
    if found.oversubscription:
        least, most = min(found.oversubscription.values()), max(found.oversubscription.values())
        range_ = f"{least:.2f} : 1" if f"{least:.2f}" == f"{most:.2f}" else f"{least:.2f} : 1 to {most:.2f} : 1"
        yield f"oversubscription of leaves  {range_} (bandwidth to hosts : to switches)"
    yield f"anomalies  {len(found.anomalies) or 'none'}"
    for words in found.anomalies:
        yield f"  - {words}"


def _shortened(names: tuple[str, ...], most: int = 6) -> str:
    rest = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + rest


def comparison_lines(found: Comparison, first: str, second: str) -> Iterator[str | Table]:
    """What ``fabric compare`` prints."""
    yield f"first   {first}"
    yield f"second  {second}"
    as_many = _of(found.switches_with_as_many_hosts, found)
    yield f"hosts   {found.hosts[0]:,} and {found.hosts[1]:,}; {as_many} have equally many"
    sides = columns(first="first", second="second")
    same = Column("same", "same", note="Same: between the same two switches")
    classes = Column("class", "class")
    yield Table([classes, *sides, same], found.classes.to_dicts(), "Cables between switches")
    for name, alike in found.alike.iter_rows():
        ports = (_ports(found.ports, name, side) for side in ("first", "second"))
        yield f"ports of class {name}: {'; '.join(ports)}; equally many at {_of(alike, found)}"
    yield from _group_lines(found.groups)


def _of(count: int, found: Comparison) -> str:
    return f"{count:,} of {plural(found.switches, 'switch', 'switches')}"


def _ports(table: pl.DataFrame, name: str, side: str) -> str:
    rows = table.filter(table["class"] == name, table[side] > 0).select("ports", side).iter_rows()
    return f"{side} " + ", ".join(f"{switches:,} switches x {ports}" for ports, switches in rows)


def _group_lines(groups: pl.DataFrame) -> Iterator[str]:
    """Cables between groups: how many pairs have as many, and where they end alike."""
    if groups.is_empty():
        return
    pairs = plural(groups.height, "pair of groups", "pairs of groups")
    as_many = int((groups["first"] == groups["second"]).sum())
    alike = int((groups["first"] == groups["same"]).sum())
    yield f"{pairs}: equally many cables in {as_many}, all between the same switches in {alike}"
    counts = {key: sorted(groups[key].to_list()) for key in ("first", "second", "same")}
    ranges = (f"{key} {of_key[0]} to {of_key[-1]}" for key, of_key in counts.items())
    yield f"cables of a pair of groups: {', '.join(ranges)}"
    apart = groups.filter((groups["first"] != groups["same"]) | (groups["second"] != groups["same"]))
    for row in apart.sort("same", "a", "b").head(MOST_PAIRS).iter_rows(named=True):
        cables = f"{row['first']} and {row['second']} {row['class']}"
        yield f"  groups {row['a']} and {row['b']}: {cables}, {row['same']} between the same switches"
    if apart.height > MOST_PAIRS:
        yield f"  and {apart.height - MOST_PAIRS} more"
