"""The columns of every stored table, with their types: what loading a folder expects. A table may have more.

Names end in their unit: ``_ps`` are exact picoseconds, ``_s`` seconds, ``_bps`` bits per second, ``_gb_s`` 10^9 bytes
per second, ``_w`` watts, ``_j`` joules; ``bytes`` are bytes, ``_share`` is a share of one. Columns with ``_low`` and
``_high`` at the end, or before the unit, are the 95% interval of the column of that name, empty where there are too few
values to say.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl

SCHEMA_VERSION = 10
"""Version of the columns and of the folder of a run; grows when either changes."""
STUDY_SCHEMA_VERSION = 7
"""Version of the columns and of the folder of a study."""


@dataclass(frozen=True)
class Optional:
    """The type of a column whose cells may be empty; those of all others are full."""

    type: Any


Schema = Mapping[str, Any]
"""Columns that a table has at least, and their types, each a type of Polars or ``Optional``."""


def types(schema: Schema) -> dict[str, Any]:
    """The types of the columns alone, as Polars takes them."""
    return {name: kind.type if isinstance(kind, Optional) else kind for name, kind in schema.items()}


def _all(kind: Any, names: str) -> Schema:
    """Columns of one type."""
    return dict.fromkeys(names.split(), kind)


def _pace(of: str) -> Schema:
    """A time per iteration with its interval; ``of`` is a prefix for another run's."""
    return _all(_MAYBE_NUMBER, " ".join(f"{of}seconds_per_iteration{end}" for end in ("", "_low", "_high")))


_TEXT, _BOOL, _NUMBER = pl.String, pl.Boolean, pl.Float64
_ID, _LANE, _COUNT, _PS = pl.UInt32, pl.UInt8, pl.UInt64, pl.UInt64
_MAYBE_COUNT, _MAYBE_PS, _MAYBE_NUMBER = Optional(_COUNT), Optional(_PS), Optional(_NUMBER)

_JOB: Schema = {"job": _ID, "name": _TEXT}
_LINK: Schema = _all(_TEXT, "class role link_name")
_LATENCY: Schema = {"of": _TEXT, **_JOB, "kind": _TEXT}
_LATENCIES: Schema = {
    "count": _COUNT,
    "mean_ps": _NUMBER,
    **_all(_MAYBE_NUMBER, "mean_low_ps mean_high_ps"),
    **_all(_PS, "min_ps p50_ps p90_ps p99_ps p999_ps max_ps"),
    **_all(_MAYBE_PS, "p50_low_ps p50_high_ps p90_low_ps p90_high_ps"),
    **_all(_MAYBE_PS, "p99_low_ps p99_high_ps p999_low_ps p999_high_ps"),
}
_INTERFERENCE: Schema = {**_all(_TEXT, "victim aggressor"), "queueing_ps": _PS, "queueing_s": _NUMBER}
_LANE_COUNTERS: Schema = {
    "link": _ID,
    "lane": _LANE,
    **_all(_COUNT, "bytes packets"),
    **_all(_PS, "queueing_ps stalled_ps port_active_ps port_stalled_ps"),
    **_all(_NUMBER, "mean_queue port_active_share port_stalled_share port_idle_share"),
}
_COMPARED: Schema = {
    "isolated_iterations": _MAYBE_COUNT,
    **_pace("isolated_"),
    "compared_iterations": _MAYBE_COUNT,
    **_all(_MAYBE_PS, "compared_ps isolated_compared_ps"),
    "warm_up": _MAYBE_COUNT,
    **_all(_MAYBE_NUMBER, "w w_low w_high"),
}
"""A job against its isolated run."""
_ENOUGH: Schema = _all(_MAYBE_PS, "ten_iterations_ps stop_ps")
_WORK: Schema = {
    **_JOB,
    "workload": _TEXT,
    "ranks": _ID,
    "iterations": _COUNT,
    "span_ps": _PS,
    **_pace(""),
}

ALWAYS: Mapping[str, Schema] = {
    "jobs": {
        **_WORK,
        **_all(_MAYBE_NUMBER, "compute_share communication_share"),
        **_COMPARED,
        "w_iterations": _MAYBE_NUMBER,
        **_ENOUGH,
    },
    "ranks": {
        **_JOB,
        **_all(_ID, "rank host"),
        "host_name": _TEXT,
        "iterations": _COUNT,
        **_all(_PS, "first_mark_ps last_mark_ps compute_ps communication_ps late_partner_ps network_ps"),
        **_all(_COUNT, "messages_sent bytes_sent"),
        "finished": _BOOL,
        "finished_at_ps": _PS,
    },
    "completions": {**_JOB, "iteration": _COUNT, **_all(_PS, "at_ps elapsed_ps"), "timed": _BOOL},
    "calls": {**_JOB, "call": _TEXT, "count": _COUNT, "time_ps": _PS, "time_s": _NUMBER},
    "ports": {
        **_LANE_COUNTERS,
        "max_queue": _ID,
        **_all(_TEXT, "from_vertex to_vertex"),
        **_LINK,
        **_all(_ID, "from_level to_level"),
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
    "lost_time": {
        **_all(_TEXT, "victim aggressor"),
        **_all(_COUNT, "compared_iterations compared_ps without_compared_ps warm_up"),
        **_all(_NUMBER, "lost_s"),
        **_all(_MAYBE_NUMBER, "lost_low_s lost_high_s"),
        "lost_share": _NUMBER,
        **_all(_MAYBE_NUMBER, "w_without w_without_low w_without_high"),
    },
    "latency": {**_LATENCY, **_LATENCIES},
    "latency_merged": {**_all(_TEXT, "of level label"), **_LATENCIES},
    "latency_histogram": {**_LATENCY, "low_ps": _PS, "high_ps": _PS, "count": _COUNT},
    "classes": {
        **_JOB,
        "class": Optional(_TEXT),
        **_all(_COUNT, "messages packets bytes"),
        **_all(_MAYBE_NUMBER, "message_mean_ps"),
        **_all(_MAYBE_PS, "message_p50_ps message_p99_ps"),
        **_all(_MAYBE_NUMBER, "packet_mean_ps"),
        **_all(_MAYBE_PS, "packet_p50_ps packet_p99_ps"),
        "queueing_ps": _PS,
        "queueing_s": _NUMBER,
        **_all(_MAYBE_NUMBER, "isolated_message_mean_ps slowdown"),
    },
    "class_interference": {
        "victim": _TEXT,
        "victim_class": Optional(_TEXT),
        "aggressor": _TEXT,
        "aggressor_class": Optional(_TEXT),
        "queueing_ps": _PS,
        "queueing_s": _NUMBER,
    },
    "samples": {"from_ps": _PS, "to_ps": _PS, **_LANE_COUNTERS, **_LINK},
    "iterations": {**_JOB, "rank": _ID, "iteration": _ID, "at_ps": _PS, "time_s": _MAYBE_NUMBER},
    "collectives": {
        **_JOB,
        "operation": _TEXT,
        **_all(_COUNT, "bytes repetitions"),
        **_all(_NUMBER, "time_s algbw_gb_s busbw_gb_s"),
    },
    "serving": {
        **_JOB,
        "metric": _TEXT,
        "count": _COUNT,
        **_all(_MAYBE_NUMBER, "mean_s p50_s p99_s objective_s within_share"),
    },
    "power": {
        "name": _TEXT,
        "host": _ID,
        "host_name": _TEXT,
        "socket": _LANE,
        "ranks": _ID,
        "dynamic_power_factor": _NUMBER,
        "cap_w": _MAYBE_NUMBER,
        **_all(_NUMBER, "frequency_share busy_s time_s energy_j mean_w"),
    },
    "counters": {**_all(_COUNT, "iteration iterations"), "time_s": _MAYBE_NUMBER, "at_ps": _PS},
    "counters_before": {"iteration": _COUNT, **_all(_PS, "window_ps from_ps to_ps")},
    "port_interference": {"link": _ID, **_INTERFERENCE, **_LINK},
    "messages": {
        "message": _COUNT,
        **_all(_ID, "token from_rank to_rank"),
        "bytes": _COUNT,
        "tag": pl.Int64,
        **_all(_BOOL, "collective eager"),
        "sent_at_ps": _PS,
        **_all(_MAYBE_PS, "posted_at_ps received_at_ps acknowledged_at_ps"),
    },
    "waits": {
        "rank": _ID,
        "call": _TEXT,
        **_all(_PS, "since_ps end_ps partner_at_ps"),
        "message": _MAYBE_COUNT,
        "receiver": _BOOL,
    },
    "departures": {
        **_all(_PS, "time_ps queueing_ps"),
        "link": _ID,
        "lane": _LANE,
        **_JOB,
        "token": _ID,
        "stage": _LANE,
        **_all(_ID, "packet bytes"),
        **_LINK,
    },
    "failures": {
        **_JOB,
        "isolated": _BOOL,
        "time_ps": _PS,
        **_all(_ID, "from_host to_host"),
        **_all(_TEXT, "from_name to_name"),
    },
    "sweeps": {
        "time_ps": _PS,
        "routing": Optional(_TEXT),
        "reason": Optional(_TEXT),
        "links_down": _COUNT,
        "hosts_cut_off": _ID,
        "cut_off": _TEXT,
    },
    "pauses": {
        "link": _ID,
        "lane": _LANE,
        "first_ps": _PS,
        "pauses": _COUNT,
        **_all(_PS, "paused_ps longest_ps"),
        "paused_share": _NUMBER,
        "peak_bytes": _ID,
        **_all(_BOOL, "nic storm"),
        **_all(_COUNT, "expired dropped"),
        **_LINK,
    },
}
"""The tables that a run has if its scenario asks for them (see ``observe``); ``failures`` and ``sweeps`` if faults
caused any, ``pauses`` if priority flow control paused a lane. ``counters`` has a column for each counter and virtual
channel, too."""
RUN: Mapping[str, Schema] = {**ALWAYS, **ON_DEMAND}
"""All tables of a run."""

_POINT: Schema = {"point": _ID, "case": Optional(_TEXT), "placement": _ID, "seed": _COUNT}
STUDY: Mapping[str, Schema] = {
    "runs": {
        **_POINT,
        **_all(_TEXT, "baseline treatment"),
        "job": Optional(_TEXT),
        "simulation": _ID,
        "packet_hops": _MAYBE_COUNT,
        "digest": Optional(_TEXT),
        "failed": _BOOL,
    },
    "work": {
        **_POINT,
        **_all(_TEXT, "baseline treatment"),
        "same_as": _ID,
        **_WORK,
        "default_iterations": _MAYBE_COUNT,
        **_pace("default_"),
        **_COMPARED,
        **_all(_MAYBE_NUMBER, "improvement improvement_low improvement_high"),
        **_ENOUGH,
        **_all(_MAYBE_NUMBER, "w_iterations improvement_iterations"),
        **_all(_MAYBE_NUMBER, "iterations_per_second iterations_per_second_low iterations_per_second_high"),
    },
    "periods": {**_POINT, "treatment": _TEXT, "name": _TEXT, "period": _ID, "iterations": _COUNT},
    "failures": {**_POINT, "treatment": _TEXT, "job": Optional(_TEXT), "error": _TEXT, "scenario": _TEXT},
    "effects": {**_all(_TEXT, "name term"), "degrees": _ID, **_all(_MAYBE_NUMBER, "factor share p")},
}
"""The tables of a study. Each but the last has a column for every parameter, too."""

VERDICTS: Schema = {
    **_all(_TEXT, "claim where paper check verdict numbered why line"),
    **_all(_TEXT, "variant variant_title"),
    "deciding": _BOOL,
    **_all(_TEXT, "claim_verdict claim_words"),
    "missing": pl.List(pl.String),
    "replicates": _ID,
    "clause": _ID,
    **_all(_TEXT, "clause_verdict clause_why"),
    "near_certain": _BOOL,
    **_all(_ID, "clause_held clause_replicates"),
    "number": Optional(_ID),
    **_all(_TEXT, "measured band reported"),
    "replicate": Optional(_ID),
    **_all(_MAYBE_NUMBER, "value low high"),
    "in_band": Optional(_BOOL),
    **_all(_TEXT, "text scaled simulator"),
    **_all(_MAYBE_NUMBER, "median min max"),
}
"""The verdicts of a reproduction: a row for each number of a clause and replicate; a clause without a number has one.

Columns up to ``line`` are those of the claim: its last word in ``verdict``, with the number of replicates in
``numbered``, the reason in ``why``. Those up to ``replicates`` are of the claim by one variant, ``deciding`` is the one
with the last word. ``clause_held`` counts the replicates in which all numbers of the clause are in their bands;
``median``, ``min`` and ``max`` are over replicates.
"""

_CLAUSE: Schema = {"claim": _TEXT, "clause": pl.Int64}
_HELD: Schema = {**_all(pl.Int64, "points held"), **_all(_NUMBER, "share share_low share_high")}
MAP: Mapping[str, Schema] = {
    "robustness": {
        "point": pl.Int64,
        **_CLAUSE,
        "measured": _TEXT,
        "value": _NUMBER,
        **_all(_MAYBE_NUMBER, "low high margin"),
        "holds": _BOOL,
    },
    "robustness-clauses": {
        **_CLAUSE,
        **_all(_TEXT, "says verdict"),
        "near_certain": _BOOL,
        **_HELD,
        **_all(pl.Int64, "default_points default_held"),
        "chance": _MAYBE_NUMBER,
        "decided_by": Optional(_TEXT),
    },
    "robustness-indices": {
        **_CLAUSE,
        "parameter": _TEXT,
        **_all(_NUMBER, "index index_low index_high p"),
        "beyond_chance": _BOOL,
        **_all(_MAYBE_NUMBER, "index_of_holding p_of_holding"),
    },
    "robustness-levels": {**_CLAUSE, **_all(_TEXT, "parameter level"), **_HELD},
}
"""The tables of a robustness map, which are CSV files: every number at every point, with columns for the parameters;
clauses; first-order indices of the margin, and of whether the clause holds; shares by level, or third of a range.

Points below 1 are the defaults. Clauses that are near certain can hardly fail by their form; ``chance`` is the variance
at the defaults over that over all points. Repeats of the defaults with the same results, bit for bit, count once.
"""

ANALYSIS: Mapping[str, Schema] = {
    **{name: ON_DEMAND[name] for name in ("iterations", "messages", "waits")},
    "departures": {name: kind for name, kind in ON_DEMAND["departures"].items() if name not in {"name", *_LINK}},
}
"""The tables that an analysis keeps in a run's folder."""

_MAYBE_ID = Optional(_ID)
TIMELINE: Mapping[str, Schema] = {
    "operations": {
        **_all(_ID, "job rank"),
        "number": _COUNT,
        "call": _TEXT,
        "since_ps": _PS,
        "end_ps": _MAYBE_PS,
        "bytes": _COUNT,
        "blocks": _ID,
        **_all(_MAYBE_ID, "peer context slot"),
    },
    "request_ends": {
        **_all(_ID, "job rank"),
        "operation": _COUNT,
        "slot": _ID,
        "at_ps": _PS,
        "receive": _BOOL,
        "message": _MAYBE_COUNT,
    },
    "communicators": _all(_ID, "job context place rank"),
    "messages": {"job": _ID, **ON_DEMAND["messages"]},
    "waits": {"job": _ID, **ON_DEMAND["waits"]},
    "causes": {"message": _COUNT, "aggressor": _MAYBE_ID, "queueing_ps": pl.Int64},
}
"""What ranks did in a time range of a run, as an export of timelines keeps it in the run's folder: their operations one
after another, the requests that these ended, the members of communicators by context, messages, waits, and the
queueing delay of each message's packets by the job that caused it."""
