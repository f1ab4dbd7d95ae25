"""Flow completion times of a recorded job whose messages are flows: each has a tag of its own, as in lists of flows.

The completion time is from the call of the send to the delivery of the last byte. The ideal is what the flow would take
if nothing else used the fabric: the CPU time of the send, the latencies of the links and switches of the route from
host to host, and all bytes with the headers of their packets at the bandwidth of the slowest link of the route; within
a host, the latency of its memory and the bytes at its bandwidth, those of NVLink for a job with NCCL. The slowdown is
the completion time by the ideal.
"""

from collections.abc import Mapping
from typing import Any

import numpy
import polars as pl

from fairlane.model.fabric import Fabric
from fairlane.results.run import Run, resolved

QUANTILES: Mapping[str, float] = {"p50": 0.5, "p95": 0.95, "p99": 0.99}
"""The quantiles of ``by_size``, by name."""


def flows(run: Run) -> pl.DataFrame | None:
    """A row for each flow: ``from_rank``, ``to_rank``, ``bytes``, ``time_ps``, ``ideal_ps``, ``slowdown``.

    ``time_ps`` and ``slowdown`` are null where the flow had not come by the end of the run. None if the run has no
    record of a job (``observe.record``), if its messages are no flows, or if what was simulated is not known.
    """
    table = run.messages
    if table is None or not table.height or table["collective"].any():
        return None
    spec = resolved(run)
    if spec is None or table.select("from_rank", "to_rank", "tag").is_duplicated().any():
        return None
    job = spec["jobs"][spec["observe"]["record"]["job"]]
    hosts = job["hosts"]
    fabric = Fabric.build(spec["fabric"])
    pairs = table.select("from_rank", "to_rank").unique(maintain_order=True)
    memory = _memory(spec["mpi"], job.get("nccl"))
    routes = [
        memory if hosts[a] == hosts[b] else _route(fabric, hosts[a], hosts[b], spec["network"])
        for a, b in pairs.iter_rows()
    ]
    columns = {"latency": pl.Int64, "bandwidth": pl.Float64, "header": pl.Int64}
    ways = pairs.with_columns(pl.DataFrame(routes, columns, orient="row"))
    size = pl.col("bytes").cast(pl.Int64)
    packets = ((size + spec["network"]["mtu"] - 1) // spec["network"]["mtu"]).clip(1)
    wire = 8e12 * (size + packets * pl.col("header")) / pl.col("bandwidth")
    sending = pl.Series(numpy.interp(table["bytes"].to_numpy(), *_overheads(spec["mpi"])))
    time = pl.col("received_at_ps").cast(pl.Int64) - pl.col("sent_at_ps").cast(pl.Int64)
    ends = ["from_rank", "to_rank"]
    joined = table.with_columns(sending=sending).join(ways, on=ends, how="left", maintain_order="left")
    return joined.select(
        "from_rank", "to_rank", bytes=size, time_ps=time, ideal_ps=pl.col("sending") + pl.col("latency") + wire
    ).with_columns(slowdown=pl.col("time_ps") / pl.col("ideal_ps"))


def by_size(table: pl.DataFrame) -> pl.DataFrame:
    """The flows of each decade of sizes: ``low`` and ``high``, bytes, how many, and quantiles of time and slowdown.

    Of n values in order a quantile q is number ceil(q n). Flows that had not come count in ``missing`` only.
    """
    decade = pl.col("bytes").clip(1).cast(pl.Float64).log10().floor().cast(pl.Int64)
    values = {
        f"{column}_{name}": pl.col(column).drop_nulls().sort().slice(_place(column, quantile), 1).first()
        for column in ("time_ps", "slowdown")
        for name, quantile in QUANTILES.items()
    }
    grouped = table.group_by(decade=decade).agg(
        low=pl.col("bytes").min(),
        high=pl.col("bytes").max(),
        count=pl.col("time_ps").count(),
        missing=pl.col("time_ps").null_count(),
        **values,
    )
    return grouped.sort("decade").drop("decade")


def _place(column: str, quantile: float) -> pl.Expr:
    # Hundredths are whole numbers: no rounding where quantile * n is one.
    count = pl.col(column).count().cast(pl.Int64)
    return ((count * round(quantile * 100) + 99) // 100 - 1).clip(0)


def _route(fabric: Fabric, source: int, destination: int, network: Mapping[str, Any]) -> tuple[int, float, int]:
    """Latency in ps, bandwidth of the slowest link in bit/s, and bytes of a packet's header."""
    links = fabric.route(source, destination)
    latency = sum(int(fabric.links["latency"][link]) for link in links) + network["switch_latency"] * (len(links) - 1)
    return latency, min(float(fabric.links["bandwidth"][link]) for link in links), network["header"]


def _memory(mpi: Mapping[str, Any], nccl: Mapping[str, Any] | None) -> tuple[int, float, int]:
    """The same from rank to rank within a host: there are no packets."""
    of, name = (mpi, "memory") if nccl is None else (nccl, "scale_up")
    return of[f"{name}_latency"], of[f"{name}_bandwidth"], 0


def _overheads(mpi: Mapping[str, Any]) -> tuple[list[int], list[int]]:
    """Sizes in ascending order, and the CPU time of a send of each, ps."""
    later = mpi["send_overheads"]
    return [0, *(overhead["size"] for overhead in later)], [
        mpi["send_overhead"],
        *(overhead["time"] for overhead in later),
    ]
