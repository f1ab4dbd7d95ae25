"""The columns of every stored table, with their types: what loading a folder expects. A table may have more.

Names end in their unit: ``_ps`` are exact picoseconds, ``_s`` seconds, ``_bps`` bits per second, ``_w`` watts, ``_j``
joules; ``bytes`` are bytes, ``_share`` is a share of one. Their versions are ``run.SCHEMA_VERSION`` and
``study.STUDY_SCHEMA_VERSION``, which grow with every change.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl


@dataclass(frozen=True)
class Optional:
    """The type of a column whose cells may be empty; those of all others are full."""

    type: Any


Schema = Mapping[str, Any]
"""Columns that a table has at least, and their types, each a type of Polars or ``Optional``."""


def types(schema: Schema) -> dict[str, Any]:
    """The types of the columns alone, as Polars takes them."""
    return {name: kind.type if isinstance(kind, Optional) else kind for name, kind in schema.items()}


_TEXT, _BOOL, _NUMBER = pl.String, pl.Boolean, pl.Float64
_ID, _LANE, _COUNT, _PS = pl.UInt32, pl.UInt8, pl.UInt64, pl.UInt64
_MAYBE_COUNT, _MAYBE_PS, _MAYBE_NUMBER = Optional(_COUNT), Optional(_PS), Optional(_NUMBER)

_JOB: Schema = {"job": _ID, "name": _TEXT}
_LINK: Schema = {"class": _TEXT, "role": _TEXT, "link_name": _TEXT}
_LATENCY: Schema = {"of": _TEXT, **_JOB, "kind": _TEXT}
_INTERFERENCE: Schema = {"victim": _TEXT, "aggressor": _TEXT, "queueing_ps": _PS, "queueing_s": _NUMBER}
_LANE_COUNTERS: Schema = {
    "link": _ID,
    "lane": _LANE,
    "bytes": _COUNT,
    "packets": _COUNT,
    "queueing_ps": _PS,
    "stalled_ps": _PS,
    "port_active_ps": _PS,
    "port_stalled_ps": _PS,
    "mean_queue": _NUMBER,
    "port_active_share": _NUMBER,
    "port_stalled_share": _NUMBER,
    "port_idle_share": _NUMBER,
}
_COMPARED: Schema = {
    "isolated_iterations": _MAYBE_COUNT,
    "isolated_seconds_per_iteration": _MAYBE_NUMBER,
    "compared_iterations": _MAYBE_COUNT,
    "compared_ps": _MAYBE_PS,
    "isolated_compared_ps": _MAYBE_PS,
    "w": _MAYBE_NUMBER,
}
"""A job against its isolated run."""
_ENOUGH: Schema = {"ten_iterations_ps": _MAYBE_PS, "stop_ps": _MAYBE_PS}
_WORK: Schema = {
    **_JOB,
    "workload": _TEXT,
    "ranks": _ID,
    "iterations": _COUNT,
    "span_ps": _PS,
    "seconds_per_iteration": _MAYBE_NUMBER,
}

ALWAYS: Mapping[str, Schema] = {
    "jobs": {
        **_WORK,
        "compute_share": _MAYBE_NUMBER,
        "communication_share": _MAYBE_NUMBER,
        **_COMPARED,
        "w_iterations": _MAYBE_NUMBER,
        **_ENOUGH,
    },
    "ranks": {
        **_JOB,
        "rank": _ID,
        "host": _ID,
        "host_name": _TEXT,
        "iterations": _COUNT,
        "first_mark_ps": _PS,
        "last_mark_ps": _PS,
        "compute_ps": _PS,
        "communication_ps": _PS,
        "late_partner_ps": _PS,
        "network_ps": _PS,
        "messages_sent": _COUNT,
        "bytes_sent": _COUNT,
        "finished": _BOOL,
        "finished_at_ps": _PS,
    },
    "calls": {**_JOB, "call": _TEXT, "count": _COUNT, "time_ps": _PS, "time_s": _NUMBER},
    "ports": {
        **_LANE_COUNTERS,
        "max_queue": _ID,
        "from_vertex": _TEXT,
        "to_vertex": _TEXT,
        **_LINK,
        "from_level": _ID,
        "to_level": _ID,
        "bandwidth_bps": _COUNT,
        "latency_ps": _PS,
        "rail": Optional(_LANE),
        "from_name": _TEXT,
        "from_port": _ID,
        "to_name": _TEXT,
        "to_port": _ID,
    },
    "interference": {**_INTERFERENCE, "share_of_time": _MAYBE_NUMBER},
}
"""The tables of every run. With ``observe.input_queueing``, ``ports`` has a column ``input_queueing_ps``."""

ON_DEMAND: Mapping[str, Schema] = {
    "latency": {
        **_LATENCY,
        "count": _COUNT,
        "mean_ps": _NUMBER,
        **dict.fromkeys(("min_ps", "p50_ps", "p90_ps", "p99_ps", "p999_ps", "max_ps"), _PS),
    },
    "latency_histogram": {**_LATENCY, "low_ps": _PS, "high_ps": _PS, "count": _COUNT},
    "samples": {"from_ps": _PS, "to_ps": _PS, **_LANE_COUNTERS, **_LINK},
    "iterations": {**_JOB, "rank": _ID, "iteration": _ID, "at_ps": _PS, "time_s": _MAYBE_NUMBER},
    "power": {
        "name": _TEXT,
        "host": _ID,
        "host_name": _TEXT,
        "socket": _LANE,
        "ranks": _ID,
        "dynamic_power_factor": _NUMBER,
        "cap_w": _MAYBE_NUMBER,
        "frequency_share": _NUMBER,
        "busy_s": _NUMBER,
        "time_s": _NUMBER,
        "energy_j": _NUMBER,
        "mean_w": _NUMBER,
    },
    "counters": {"iteration": _COUNT, "iterations": _COUNT, "time_s": _NUMBER, "at_ps": _PS},
    "port_interference": {"link": _ID, **_INTERFERENCE, **_LINK},
    "messages": {
        "message": _COUNT,
        "token": _ID,
        "from_rank": _ID,
        "to_rank": _ID,
        "bytes": _COUNT,
        "tag": pl.Int64,
        "collective": _BOOL,
        "eager": _BOOL,
        "sent_at_ps": _PS,
        "posted_at_ps": _MAYBE_PS,
        "received_at_ps": _MAYBE_PS,
        "acknowledged_at_ps": _MAYBE_PS,
    },
    "waits": {
        "rank": _ID,
        "call": _TEXT,
        "since_ps": _PS,
        "end_ps": _PS,
        "partner_at_ps": _PS,
        "message": _MAYBE_COUNT,
        "receiver": _BOOL,
    },
    "departures": {
        "time_ps": _PS,
        "queueing_ps": _PS,
        "link": _ID,
        "lane": _LANE,
        **_JOB,
        "token": _ID,
        "stage": _LANE,
        "packet": _ID,
        "bytes": _ID,
        **_LINK,
    },
}
"""The tables that a run has if its scenario asks for them (see ``observe``). ``counters`` has a column for each counter
and virtual channel, too."""
RUN: Mapping[str, Schema] = {**ALWAYS, **ON_DEMAND}
"""All tables of a run."""

_POINT: Schema = {"point": _ID, "case": Optional(_TEXT), "placement": _ID, "seed": _COUNT}
STUDY: Mapping[str, Schema] = {
    "runs": {
        **_POINT,
        "baseline": _TEXT,
        "treatment": _TEXT,
        "job": Optional(_TEXT),
        "simulation": _ID,
        "packet_hops": _MAYBE_COUNT,
        "digest": Optional(_TEXT),
        "failed": _BOOL,
    },
    "work": {
        **_POINT,
        "baseline": _TEXT,
        "treatment": _TEXT,
        **_WORK,
        "default_iterations": _MAYBE_COUNT,
        "default_seconds_per_iteration": _MAYBE_NUMBER,
        **_COMPARED,
        "improvement": _MAYBE_NUMBER,
        **_ENOUGH,
        "w_iterations": _MAYBE_NUMBER,
        "improvement_iterations": _MAYBE_NUMBER,
        "iterations_per_second": _MAYBE_NUMBER,
    },
    "periods": {**_POINT, "treatment": _TEXT, "name": _TEXT, "period": _ID, "iterations": _COUNT},
    "failures": {**_POINT, "treatment": _TEXT, "job": Optional(_TEXT), "error": _TEXT, "scenario": _TEXT},
    "effects": {
        "name": _TEXT,
        "term": _TEXT,
        "degrees": _ID,
        **dict.fromkeys(("factor", "share", "p"), _MAYBE_NUMBER),
    },
}
"""The tables of a study. Each but the last has a column for every parameter, too."""

ANALYSIS: Mapping[str, Schema] = {
    "iterations": ON_DEMAND["iterations"],
    "messages": ON_DEMAND["messages"],
    "waits": ON_DEMAND["waits"],
    "departures": {name: kind for name, kind in ON_DEMAND["departures"].items() if name not in {"name", *_LINK}},
}
"""The tables that an analysis keeps in a run's folder."""
