"""Counters as a table with a row for each port."""

from collections.abc import Iterable

import polars as pl

from fairlane.counters.base import COUNTERS, PortCounters
from fairlane.counters.located import Located


def table_of(ports: Iterable[PortCounters | Located]) -> pl.DataFrame:
    """Name, device, port, GUID and LID of each port, and its counters in their own units.

    Empty where the source has none; a column without a value is left out, but for those that name a port.
    """
    rows = []
    for it in ports:
        one = it.counters if isinstance(it, Located) else it
        name, number = (it.name, it.port) if isinstance(it, Located) else (one.name, one.number)
        guid = None if one.guid is None else f"0x{one.guid:016x}"
        names = {"name": name, "device": one.device or None, "port": number}
        rows.append({**names, "guid": guid, "lid": one.lid, **_values(one)})
    kinds = {"name": pl.String, "port": pl.UInt32, "guid": pl.String, "lid": pl.UInt32}
    counters = dict.fromkeys(COUNTERS, pl.UInt64)
    table = pl.DataFrame(rows, schema={"name": pl.String, "device": pl.String, **kinds, **counters})
    return table.select(name for name in table.columns if name in kinds or table[name].count())


def _values(port: PortCounters) -> dict[str, int | None]:
    return {name: port.values.get(name) for name in COUNTERS}
