"""The traffic of a job from port counters of its hosts: how much each sends.

Counters say how much a host sends, and not to whom: destinations are random ranks of the same job, at random times. A
job that is modelled so loads links like the real one on average; what it suffers is seen in the latency of its
messages, because its load does not wait for anything.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

import polars as pl

from fairlane.errors import Problem, ScenarioError

COLUMNS = ("time_s", "host", "sent_bytes")


def read_rates(file: Path) -> dict[str, float]:
    """Bytes per second that each host sent, from the first to the last sample.

    Raises ``ScenarioError`` if the file is not as described in ``Profile.counters``.
    """
    try:
        table = pl.read_csv(file, schema_overrides={"time_s": pl.Float64, "host": pl.String, "sent_bytes": pl.Float64})
    except (OSError, pl.exceptions.PolarsError) as error:
        words = f"cannot be read as CSV: {str(error).partition(chr(10))[0]}"
        raise ScenarioError(Problem.of_file(file, words, allowed=f"columns {', '.join(COLUMNS)}")) from None
    if lacking := [name for name in COLUMNS if name not in table.columns]:
        raise ScenarioError(Problem.of_file(file, f"has no column {lacking[0]}", allowed=", ".join(COLUMNS)))
    table = table.drop_nulls(COLUMNS).sort("time_s")
    change = [pl.col(name).last() - pl.col(name).first() for name in ("time_s", "sent_bytes")]
    found = table.group_by("host").agg(*change, least=pl.col("sent_bytes").diff().min())
    rates: dict[str, float] = {}
    for host, seconds, sent, least in found.select("host", "time_s", "sent_bytes", "least").iter_rows():
        if not seconds or (least is not None and least < 0):
            words = "has one sample only" if not seconds else "has a counter that goes back"
            raise ScenarioError(Problem.of_file(file, f"host {host}: {words}", allowed="two samples that grow"))
        rates[host] = sent / seconds
    return rates


def load_of(rates: Mapping[str, float], hosts: Sequence[str], bandwidth: float, file: Path) -> float:
    """The mean load of a job's hosts, as a share of ``bandwidth`` (bits per second) of a host's link.

    Raises ``ScenarioError`` if a host has no samples, or sent more than its link can carry.
    """
    lacking = [host for host in hosts if host not in rates]
    if lacking:
        unknown = Problem.unknown("host", "host in the counters", lacking[0], list(rates), lacking[0])
        raise ScenarioError(unknown.at(str(file), None))
    load = sum(rates[host] for host in hosts) * 8 / (bandwidth * len(hosts))
    if load > 1:
        words = f"its hosts sent {load:.2f} times what their links can carry"
        raise ScenarioError(Problem.of_file(file, words, allowed="counters in bytes, and the bandwidth of the fabric"))
    return load
