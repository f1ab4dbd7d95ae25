"""The columns of every stored table, with their types: what loading a folder expects. A table may have more.

Their versions are ``run.SCHEMA_VERSION`` and ``study.STUDY_SCHEMA_VERSION``, which grow with every change.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl

__all__ = ["ANALYSIS", "RUN", "RUN_KEYS", "STUDY", "STUDY_KEYS", "Schema"]

Schema = Mapping[str, Any]
"""Columns that a table has at least, and their types."""

RUN: Mapping[str, Schema] = {
    "calls": {
        "job": pl.UInt32,
        "name": pl.String,
        "call": pl.String,
        "count": pl.UInt64,
        "time_ps": pl.UInt64,
        "seconds": pl.Float64,
    },
    "counters": {
        "iteration": pl.UInt64,
        "iterations": pl.UInt64,
        "seconds": pl.Float64,
        "at_ps": pl.UInt64,
    },
    "departures": {
        "time_ps": pl.UInt64,
        "waited_ps": pl.UInt64,
        "link": pl.UInt32,
        "lane": pl.UInt8,
        "job": pl.UInt32,
        "name": pl.String,
        "token": pl.UInt32,
        "stage": pl.UInt8,
        "packet": pl.UInt32,
        "bytes": pl.UInt32,
        "class": pl.String,
        "role": pl.String,
    },
    "interference": {
        "delayed": pl.String,
        "delaying": pl.String,
        "waiting_ps": pl.UInt64,
        "seconds": pl.Float64,
        "share_of_time": pl.Float64,
    },
    "iterations": {
        "job": pl.UInt32,
        "name": pl.String,
        "rank": pl.UInt32,
        "iteration": pl.UInt32,
        "at_ps": pl.UInt64,
        "seconds": pl.Float64,
    },
    "jobs": {
        "job": pl.UInt32,
        "name": pl.String,
        "workload": pl.String,
        "ranks": pl.UInt32,
        "iterations": pl.UInt64,
        "span_ps": pl.UInt64,
        "seconds_per_iteration": pl.Float64,
        "compute_share": pl.Float64,
        "communication_share": pl.Float64,
        "isolated_iterations": pl.UInt64,
        "isolated_seconds_per_iteration": pl.Float64,
        "compared_iterations": pl.UInt64,
        "compared_ps": pl.UInt64,
        "isolated_compared_ps": pl.UInt64,
        "w": pl.Float64,
        "w_iterations": pl.Float64,
        "enough_ps": pl.UInt64,
    },
    "messages": {
        "message": pl.UInt64,
        "token": pl.UInt32,
        "from_rank": pl.UInt32,
        "to_rank": pl.UInt32,
        "bytes": pl.UInt64,
        "tag": pl.Int64,
        "collective": pl.Boolean,
        "eager": pl.Boolean,
        "sent_at_ps": pl.UInt64,
        "posted_at_ps": pl.UInt64,
        "received_at_ps": pl.UInt64,
        "acknowledged_at_ps": pl.UInt64,
    },
    "ports": {
        "link": pl.UInt32,
        "lane": pl.UInt8,
        "bytes": pl.UInt64,
        "packets": pl.UInt64,
        "waiting_ps": pl.UInt64,
        "stalled_ps": pl.UInt64,
        "max_queue": pl.UInt32,
        "port_active_ps": pl.UInt64,
        "port_stalled_ps": pl.UInt64,
        "mean_queue": pl.Float64,
        "port_active_share": pl.Float64,
        "port_stalled_share": pl.Float64,
        "port_idle_share": pl.Float64,
        "from_vertex": pl.String,
        "to_vertex": pl.String,
        "class": pl.String,
        "role": pl.String,
        "from_level": pl.UInt32,
        "to_level": pl.UInt32,
        "bandwidth": pl.UInt64,
        "latency_ps": pl.UInt64,
        "rail": pl.UInt8,
        "from_name": pl.String,
        "from_port": pl.UInt32,
        "to_name": pl.String,
        "to_port": pl.UInt32,
        "link_name": pl.String,
    },
    "power": {
        "name": pl.String,
        "host": pl.UInt32,
        "socket": pl.UInt8,
        "ranks": pl.UInt32,
        "efficiency": pl.Float64,
        "cap_w": pl.Float64,
        "frequency": pl.Float64,
        "busy_s": pl.Float64,
        "seconds": pl.Float64,
        "energy_j": pl.Float64,
        "mean_w": pl.Float64,
        "host_name": pl.String,
    },
    "ranks": {
        "job": pl.UInt32,
        "name": pl.String,
        "rank": pl.UInt32,
        "host": pl.UInt32,
        "iterations": pl.UInt64,
        "first_mark_ps": pl.UInt64,
        "last_mark_ps": pl.UInt64,
        "compute_ps": pl.UInt64,
        "communication_ps": pl.UInt64,
        "late_partner_ps": pl.UInt64,
        "network_ps": pl.UInt64,
        "messages_sent": pl.UInt64,
        "bytes_sent": pl.UInt64,
        "finished": pl.Boolean,
        "finished_at_ps": pl.UInt64,
        "host_name": pl.String,
    },
    "samples": {
        "from_ps": pl.UInt64,
        "to_ps": pl.UInt64,
        "link": pl.UInt32,
        "lane": pl.UInt8,
        "bytes": pl.UInt64,
        "packets": pl.UInt64,
        "waiting_ps": pl.UInt64,
        "stalled_ps": pl.UInt64,
        "port_active_ps": pl.UInt64,
        "port_stalled_ps": pl.UInt64,
        "mean_queue": pl.Float64,
        "port_active_share": pl.Float64,
        "port_stalled_share": pl.Float64,
        "port_idle_share": pl.Float64,
        "class": pl.String,
        "role": pl.String,
        "link_name": pl.String,
    },
    "waits": {
        "rank": pl.UInt32,
        "call": pl.String,
        "since_ps": pl.UInt64,
        "end_ps": pl.UInt64,
        "partner_at_ps": pl.UInt64,
        "message": pl.UInt64,
        "receiver": pl.Boolean,
    },
}
"""The tables of a run. With ``observe.onward_waiting``, ``ports`` has a column ``onward_waiting_ps``; ``counters`` has
one for each counter and virtual channel."""
RUN_KEYS = ("job", "name", "workload", "rank", "ranks", "span_ps", "link", "lane", "delayed", "delaying", "iteration")
"""Columns of a run's tables that are never null."""

_POINT: Schema = {"point": pl.UInt32, "case": pl.String, "placement": pl.UInt32, "seed": pl.UInt64}
STUDY: Mapping[str, Schema] = {
    "runs": {
        **_POINT,
        "baseline": pl.String,
        "treatment": pl.String,
        "job": pl.String,
        "simulation": pl.UInt32,
        "packet_hops": pl.UInt64,
        "digest": pl.String,
        "failed": pl.Boolean,
    },
    "work": {
        **_POINT,
        "baseline": pl.String,
        "treatment": pl.String,
        "job": pl.UInt32,
        "name": pl.String,
        "workload": pl.String,
        "ranks": pl.UInt32,
        "iterations": pl.UInt64,
        "span_ps": pl.UInt64,
        "seconds_per_iteration": pl.Float64,
        "default_iterations": pl.UInt64,
        "default_seconds_per_iteration": pl.Float64,
        "isolated_iterations": pl.UInt64,
        "isolated_seconds_per_iteration": pl.Float64,
        "compared_iterations": pl.UInt64,
        "compared_ps": pl.UInt64,
        "isolated_compared_ps": pl.UInt64,
        "w": pl.Float64,
        "improvement": pl.Float64,
        "enough_ps": pl.UInt64,
        "w_iterations": pl.Float64,
        "improvement_iterations": pl.Float64,
        "iterations_per_second": pl.Float64,
    },
    "periods": {**_POINT, "treatment": pl.String, "name": pl.String, "period": pl.UInt32, "iterations": pl.UInt64},
    "failures": {**_POINT, "treatment": pl.String, "job": pl.String, "error": pl.String, "scenario": pl.String},
    "effects": {
        "name": pl.String,
        "term": pl.String,
        "degrees": pl.UInt32,
        "factor": pl.Float64,
        "share": pl.Float64,
        "p": pl.Float64,
    },
}
"""The tables of a study. Each has a column for every parameter, too."""
STUDY_KEYS = ("point", "placement", "seed", "treatment", "name", "workload", "ranks", "iterations", "term")
"""Columns of a study's tables that are never null."""

ANALYSIS: Mapping[str, Schema] = {
    "iterations": RUN["iterations"],
    "messages": RUN["messages"],
    "waits": RUN["waits"],
    "departures": {name: kind for name, kind in RUN["departures"].items() if name not in ("name", "class", "role")},
}
"""The tables that an analysis keeps in a run's folder."""
