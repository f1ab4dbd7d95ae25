"""Two fabrics compared cable by cable: which pairs of switches are joined in both, and where the rest ends."""

from collections import Counter
from dataclasses import dataclass

import polars as pl

from fairlane.core.errors import Problem, ScenarioError
from fairlane.model.fabric.view import Fabric


@dataclass(frozen=True)
class Comparison:
    """Comparison of two fabrics with equally many switches; switches are matched by number."""

    hosts: tuple[int, int]
    """Hosts of either."""
    switches: int
    """Switches of each."""
    switches_with_as_many_hosts: int
    """Switches that have equally many adapters of hosts in both."""
    classes: pl.DataFrame
    """Cables between switches by class: ``first``, ``second``, ``same`` (between the same two switches)."""
    groups: pl.DataFrame
    """The same by pair of groups, ``a`` and ``b``, and class; no rows if not both are fabrics of equal groups."""
    ports: pl.DataFrame
    """By class, and number of its ``ports`` at a switch: how many switches have so many in ``first`` and ``second``."""
    alike: pl.DataFrame
    """By class: ``switches`` that have equally many ports of it in both."""


def compare(first: Fabric, second: Fabric) -> Comparison:
    """Compares two fabrics. Raises ``ScenarioError`` if they do not have equally many switches."""
    if first.switches != second.switches:
        message = (
            f"one has {first.switches} switches and the other {second.switches}: they are compared switch by switch"
        )
        raise ScenarioError(Problem("fabrics", message, allowed="equally many switches"))
    cables = [_cables(fabric) for fabric in (first, second)]
    joined = _joined(cables[0], cables[1], ["class", "a", "b"])
    same = pl.min_horizontal("first", "second").alias("same")
    pairs = joined.with_columns(same)
    counts = pl.col("first", "second", "same").sum()
    used = _joined(_ports(cables[0]), _ports(cables[1]), ["class", "switch"])
    every = used.select("class").unique().join(pl.DataFrame({"switch": range(first.switches)}), how="cross")
    used = every.join(used, on=["class", "switch"], how="left").fill_null(0)
    hosts = [_adapters(fabric) for fabric in (first, second)]
    return Comparison(
        hosts=(first.hosts, second.hosts),
        switches=first.switches,
        switches_with_as_many_hosts=sum(hosts[0][at] == hosts[1][at] for at in range(first.switches)),
        classes=pairs.group_by("class", maintain_order=True).agg(counts),
        groups=_by_groups(pairs, first, second),
        ports=_histogram(used),
        alike=used.group_by("class").agg((pl.col("first") == pl.col("second")).sum().alias("switches")).sort("class"),
    )


def _cables(fabric: Fabric) -> pl.DataFrame:
    """The cables between switches: their class, and their ends, the lower number first."""
    names = fabric.classes
    table = pl.DataFrame({key: fabric.links[key] for key in ("from_switch", "to_switch", "class")})
    a, b = pl.col("from_switch"), pl.col("to_switch")
    kept = table.filter(a >= 0, b >= 0, a < b)
    named = pl.Series([names[kind] for kind in kept["class"]], dtype=pl.String)
    return kept.select(named.alias("class"), a.alias("a"), b.alias("b"))


def _adapters(fabric: Fabric) -> Counter[int]:
    """Count the adapters of hosts at each switch."""
    return Counter(at for host in range(fabric.hosts) for at in fabric.adapter_switches(host).tolist() if at >= 0)


def _ports(cables: pl.DataFrame) -> pl.DataFrame:
    """Every cable at both of its switches."""
    ends = (cables.select("class", pl.col(end).alias("switch")) for end in ("a", "b"))
    return pl.concat(ends)


def _joined(first: pl.DataFrame, second: pl.DataFrame, keys: list[str]) -> pl.DataFrame:
    """Count each combination of keys in either."""
    counts = [table.group_by(keys).len(name) for table, name in ((first, "first"), (second, "second"))]
    joined = counts[0].join(counts[1], on=keys, how="full", coalesce=True)
    return joined.with_columns(pl.col("first", "second").fill_null(0)).sort(keys)


def _by_groups(pairs: pl.DataFrame, first: Fabric, second: Fabric) -> pl.DataFrame:
    size = first.plan.get("switches")
    if size is None or second.plan.get("switches") != size:
        return pairs.clear().select("a", "b", "class", "first", "second", "same")
    of_groups = pairs.with_columns(pl.col("a", "b") // size)
    sums = of_groups.group_by("a", "b", "class").agg(pl.col("first", "second", "same").sum())
    return sums.filter(pl.col("a") != pl.col("b")).sort("a", "b", "class")


def _histogram(used: pl.DataFrame) -> pl.DataFrame:
    """Count the switches by their number of ports of a class, in either fabric."""
    first, second = (used.select("class", pl.col(side).alias("ports")) for side in ("first", "second"))
    return _joined(first, second, ["class", "ports"])
