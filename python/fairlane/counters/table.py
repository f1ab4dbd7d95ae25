"""Counters as a table with a row for each port."""

from collections.abc import Iterable

import polars as pl

from fairlane.counters.base import COUNTERS, PortCounters
from fairlane.counters.located import Located


def table_of(ports: Iterable[PortCounters | Located]) -> pl.DataFrame:
    """Name, port, GUID and LID of each port, and its counters in their own units; empty where the source has none."""
    rows = []
    for it in ports:
        one = it.counters if isinstance(it, Located) else it
        name, number = (it.name, it.port) if isinstance(it, Located) else (one.name, one.number)
        guid = None if one.guid is None else f"0x{one.guid:016x}"
        rows.append({"name": name, "port": number, "guid": guid, "lid": one.lid, **_values(one)})
    kinds = {"name": pl.String, "port": pl.UInt32, "guid": pl.String, "lid": pl.UInt32}
    table = pl.DataFrame(rows, schema={**kinds, **dict.fromkeys(COUNTERS, pl.UInt64)})
    return table.select(name for name in table.columns if name in kinds or table[name].count())


def _values(port: PortCounters) -> dict[str, int | None]:
    return {name: port.values.get(name) for name in COUNTERS}
