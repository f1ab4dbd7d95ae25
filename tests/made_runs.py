"""Runs whose tables are made by hand, for tests of what is shown of them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import numpy as np
import polars as pl

from fairlane.results.run import Run, RunMeta, Source
from fairlane.results.schemas import RUN, types

__all__ = ["latencies", "make_run"]


def make_run(jobs: int, ports: int = 8) -> Run:
    """Jobs of two workloads; job a waits a + 2 b seconds for job b; ports of four classes, ever busier."""
    names = [f"job-{job}" for job in range(jobs)]
    cells = [(a, b) for a in range(jobs) for b in range(jobs)]
    waits = [float(a + 2 * b) for a, b in cells]
    classes = {"host up": (0, 1), "host down": (1, 0), "leaf up": (1, 2), "leaf down": (2, 1)}
    links = [name for name in classes for _ in range(ports)]
    levels = [classes[name] for name in links]
    share = np.linspace(0, 0.9, len(links))
    return Run(
        source=Source("", "{}"),
        meta=RunMeta(
            version="0",
            scenario="drawn",
            seed=1,
            digest="",
            duration_ps=10**13,
            simulated_ps=10**13,
            packet_hops=1,
            wall_s=1,
            cpu_s=1,
            started=datetime(2024, 1, 1, tzinfo=UTC),
            partial=False,
        ),
        jobs=pl.DataFrame(
            {
                "job": range(jobs),
                "name": names,
                "workload": ["flood" if job % 2 else "pairs" for job in range(jobs)],
                "ranks": [4] * jobs,
                "iterations": [20] * jobs,
                "compute_share": [0.25] * jobs,
                "communication_share": [0.75] * jobs,
                "span_ps": [10**13] * jobs,
                "isolated_iterations": [20] * jobs,
                "compared_iterations": [9 if job == 1 else 20 for job in range(jobs)],
                "ten_iterations_ps": pl.Series(
                    [11 * 10**9 if job == 1 else None for job in range(jobs)], dtype=pl.UInt64
                ),
                "stop_ps": pl.Series([None] * jobs, dtype=pl.UInt64),
                "seconds_per_iteration": [4e-5 + 1e-5 * job for job in range(jobs)],
                "seconds_per_iteration_low": [None if job == 1 else 3e-5 for job in range(jobs)],
                "seconds_per_iteration_high": [None if job == 1 else 6e-5 for job in range(jobs)],
                "w": [-0.01 * job for job in range(jobs)],
                "w_low": [-0.012 * job for job in range(jobs)],
                "w_high": [None if job % 3 == 2 else -0.008 * job for job in range(jobs)],
            }
        ),
        ranks=pl.DataFrame(schema=types(RUN["ranks"])),
        completions=pl.DataFrame(schema=types(RUN["completions"])),
        calls=pl.DataFrame(schema=types(RUN["calls"])),
        ports=pl.DataFrame(
            {
                "link": range(len(links)),
                "lane": [0] * len(links),
                "link_name": [f"{name} {at}" for at, name in enumerate(links)],
                "from_vertex": ["host 0"] * len(links),
                "to_vertex": ["switch 0"] * len(links),
                "class": links,
                "role": [name.split()[-1] for name in links],
                "from_name": ["host 0"] * len(links),
                "rail": pl.Series([None] * len(links), dtype=pl.UInt8),
                "from_level": [level for level, _ in levels],
                "to_level": [level for _, level in levels],
                "bandwidth_bps": [1] * len(links),
                **{name: [1] * len(links) for name in ("latency_ps", "bytes", "packets", "queueing_ps", "stalled_ps")},
                **{name: [1] * len(links) for name in ("port_active_ps", "port_stalled_ps")},
                "max_queue": [1] * len(links),
                "mean_queue": [0.1] * len(links),
                "port_active_share": share,
                "port_stalled_share": share / 10,
                "port_idle_share": 1 - 1.1 * share,
            }
        ),
        interference=pl.DataFrame(
            {
                "victim": [names[a] for a, _ in cells],
                "aggressor": [names[b] for _, b in cells],
                "queueing_s": waits,
                "share_of_time": [wait / 40 for wait in waits],
            },
            schema={"victim": pl.String, "aggressor": pl.String, "queueing_s": pl.Float64, "share_of_time": pl.Float64},
        ),
    )


_NAMES = ("mean", "p50", "p99", "p999")


def latencies(jobs: int, factor: float = 4) -> pl.DataFrame:
    """Messages of jobs whose 99% quantile is 10 us and more; the last job has no intervals."""
    rows: list[dict[str, Any]] = [
        {"of": of, "level": level, "label": f"{level}-{number}", "count": 1000, "min_ps": 1, "max_ps": 10**9}
        | {f"{name}_ps": at * (1000 if of == "packet" else 1) for name, at in zip(_NAMES, places, strict=True)}
        | {f"{name}_low_ps": None if number == jobs - 1 else at * 0.9 for name, at in zip(_NAMES, places, strict=True)}
        | {f"{name}_high_ps": None if number == jobs - 1 else at * 1.2 for name, at in zip(_NAMES, places, strict=True)}
        for of in ("message", "packet")
        for level in ("job", "workload")
        for number in range(jobs)
        for places in [[10**6 * (1 + number) * 10 * share for share in (2 / factor, 1 / factor, 1.0, 1.0)]]
    ]
    return pl.DataFrame(rows, infer_schema_length=None)
