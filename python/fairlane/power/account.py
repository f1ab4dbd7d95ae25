"""Power and energy of sockets, from the time that ranks computed and waited: the table ``power`` of a run.

A socket draws its idle power all the time that its job is there, and while a rank computes its part of the dynamic
power at its frequency; in MPI it draws the share ``waiting`` of that.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from fairlane.power.model import JobPower

if TYPE_CHECKING:
    import polars as pl

_PS = 1e-12


def power(
    names: Sequence[str],
    jobs: Sequence[JobPower],
    ranks: pl.DataFrame,
    now: int,
    stays: Sequence[tuple[int, int | None]] | None = None,
) -> pl.DataFrame:
    """One row for each job and socket of its hosts, after ``now`` picoseconds.

    ``ranks`` has, in picoseconds, ``compute`` and ``communication`` of each ``job`` and ``rank``. ``stays`` has the
    times at which each job starts and, if it departs, stops.
    """
    import polars as pl

    rows: list[tuple[object, ...]] = []
    for number, (name, job) in enumerate(zip(names, jobs, strict=True)):
        own = ranks.filter(pl.col("job") == number).sort("rank")
        start, stop = stays[number] if stays else (0, None)
        span = max(0, (now if stop is None else min(now, stop)) - start)
        rows += _rows(name, job, own["compute"].to_list(), own["communication"].to_list(), span)
    whole = {"host": pl.UInt32, "socket": pl.UInt8, "ranks": pl.UInt32}
    real = ("dynamic_power_factor", "cap_w", "frequency_share", "busy_s", "time_s", "energy_j", "mean_w")
    return pl.DataFrame(rows, schema={"name": pl.String, **whole, **dict.fromkeys(real, pl.Float64)}, orient="row")


def _rows(
    name: str, job: JobPower, compute: list[int], communication: list[int], span: int
) -> list[tuple[object, ...]]:
    residents: dict[tuple[int, int], list[int]] = {}
    for rank, (host, places) in enumerate(zip(job.hosts, job.places(), strict=True)):
        for place in places:
            residents.setdefault((host, place), []).append(rank)
    frequencies, seconds = job.frequencies(), span * _PS
    rows: list[tuple[object, ...]] = []
    for host in sorted(job.sockets):
        for number, socket in enumerate(job.sockets[host]):
            own = residents.get((host, number), [])
            # A rank on several sockets runs all of them at the speed of the slowest.
            drawn = [socket.dynamic(frequencies[rank]) / len(own) for rank in own]
            busy = [(compute[rank] + job.waiting * communication[rank]) * _PS for rank in own]
            energy = socket.idle * seconds + sum(part * time for part, time in zip(drawn, busy, strict=True))
            frequency = min((frequencies[rank] for rank in own), default=socket.frequency(job.cap))
            mean_busy = sum(busy) / len(busy) if busy else 0.0
            watts = energy / seconds if seconds else None
            facts = (len(own), socket.factor, job.cap, frequency, mean_busy)
            rows.append((name, host, number, *facts, seconds, energy, watts))
    return rows


def by_job(table: pl.DataFrame) -> pl.DataFrame:
    """One row per job: hosts, cap of a socket, frequencies, mean power of a host, energy of all its hosts."""
    import polars as pl

    return table.group_by("name", maintain_order=True).agg(
        pl.col("host").n_unique().alias("hosts"),
        pl.col("cap_w").first(),
        pl.col("frequency_share").min().alias("least_frequency"),
        pl.col("frequency_share").mean().alias("mean_frequency"),
        (pl.col("mean_w").sum() / pl.col("host").n_unique()).alias("host_w"),
        pl.col("energy_j").sum(),
    )
