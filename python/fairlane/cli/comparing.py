"""Two fabrics compared: fabric compare."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fairlane.cli.command import AsJson, print_json

if TYPE_CHECKING:
    import polars as pl

    from fairlane.fabric import Comparison, Fabric

__all__ = ["compare_fabrics"]

MOST_PAIRS = 8
"""Pairs of groups that are listed, those with most differences."""

_SOURCE = "A scenario (.toml), a fabric's file as fabric import reads, or TOPOLOGY[:KEY=VALUE]..."


def compare_fabrics(
    first: Annotated[str, typer.Argument(metavar="FIRST", help=_SOURCE, show_default=False)],
    second: Annotated[str, typer.Argument(metavar="SECOND", help="The other fabric, likewise.", show_default=False)],
    as_json: AsJson = False,
) -> None:
    """Compare two fabrics cable by cable. Both must have the same number of switches; switches are compared by number.

    For example: fairlane fabric compare edison-links.txt.xz cascade:preset=edison
    """
    from fairlane.fabric import compare

    found = compare(_fabric(first), _fabric(second))
    if as_json:
        print_json(_tables(found))
        return
    for line in _lines(found, first, second):
        typer.echo(line)


def _fabric(source: str) -> Fabric:
    """The fabric that an argument names."""
    from fairlane.fabric import Fabric, read_wiring
    from fairlane.fabric.table import FabricTable
    from fairlane.scenario.scenario import Scenario

    path = Path(source)
    if path.suffix == ".toml":
        from fairlane.inputs import code

        with code.listing():  # the fabric is all that is looked at
            return Fabric.build(Scenario.load(path).fabric.spec)
    if path.exists():
        return read_wiring(path).fabric()
    topology, *assignments = source.split(":")
    return Fabric.build(FabricTable.read({"topology": topology}, assignments).spec)


def _tables(found: Comparison) -> dict[str, Any]:
    counts = {"hosts": found.hosts, "switches": found.switches}
    counts["switches_with_as_many_hosts"] = found.switches_with_as_many_hosts
    return {**counts, "classes": found.classes, "groups": found.groups, "ports": found.ports, "alike": found.alike}


def _lines(found: Comparison, first: str, second: str) -> Iterator[str]:
    yield f"first      {first}"
    yield f"second     {second}"
    as_many = _of(found.switches_with_as_many_hosts, found)
    yield f"hosts      {found.hosts[0]:,} and {found.hosts[1]:,}; {as_many} have equally many"
    yield f"cables between switches   {'first':>8} {'second':>8} {'same':>8}   (same: between the same two switches)"
    for row in found.classes.iter_rows(named=True):
        yield f"  {row['class']:23} {row['first']:8,} {row['second']:8,} {row['same']:8,}"
    for name, alike in found.alike.iter_rows():
        sides = (_ports(found.ports, name, side) for side in ("first", "second"))
        yield f"ports of class {name}: {'; '.join(sides)}; equally many at {_of(alike, found)}"
    yield from _group_lines(found.groups)


def _of(count: int, found: Comparison) -> str:
    from fairlane.results.text import plural

    return f"{count:,} of {plural(found.switches, 'switch', 'switches')}"


def _ports(table: pl.DataFrame, name: str, side: str) -> str:
    rows = table.filter(table["class"] == name, table[side] > 0).select("ports", side).iter_rows()
    return f"{side} " + ", ".join(f"{switches:,} switches x {ports}" for ports, switches in rows)


def _group_lines(groups: pl.DataFrame) -> Iterator[str]:
    """Cables between groups: how many pairs have as many, and where they end alike."""
    from fairlane.results.text import plural

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
