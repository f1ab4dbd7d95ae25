"""Traffic classes of a run: messages, packets and queueing delay by job and class, and who delays whom by class.

A message has the first class of the scenario that selects it, or none (null). Latencies are those of the table
``latency``; the slowdown is the mean latency of a class's messages by that in the job's isolated run. Queueing delay is
that of all packets of a class, at every link, as in the interference matrix.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import polars as pl

from fairlane.core.drive import Engine
from fairlane.core.tables import PS, Work, frame
from fairlane.results.latency import exact_of, summarize
from fairlane.results.schemas import RUN, types

_KEY = ("of", "job", "class")
_CLASS = ("job", "class")


@dataclass(frozen=True)
class ClassCounts:
    """What a simulation has counted by job and class, in the engine's own columns; "" is no class."""

    latency: pl.DataFrame
    histogram: pl.DataFrame
    bytes: pl.DataFrame
    interference: pl.DataFrame

    @classmethod
    def measured(cls, engine: Engine) -> Self | None:
        """What ``engine`` has counted so far; None if it does not count by class."""
        counted = frame(engine.table("class_bytes"))
        if not counted.height:
            return None
        histogram, interference = (frame(engine.table(f"class_{of}")) for of in ("latency_histogram", "interference"))
        return cls(exact_of(engine, "class_latency"), histogram, counted, interference)


def classes(names: Sequence[str], counts: ClassCounts, alone: Sequence[Work | None]) -> pl.DataFrame:
    """The classes table: a row for each job and class that selects messages of it, and for those without a class.

    ``names`` are those of the jobs; ``alone`` holds each job's isolated run, None where there is none.
    """
    summary = summarize(counts.latency, counts.histogram, _KEY).rename({"count": "number"})
    of = {name: summary.filter(pl.col("of") == name).drop("of") for name in ("message", "packet")}
    table = counts.bytes
    for name, rows in of.items():
        prefixed = rows.select(*_CLASS, pl.exclude(_CLASS).name.prefix(f"{name}_"))
        table = table.join(prefixed, on=_CLASS, how="left", maintain_order="left")
    victims = counts.interference.rename({"delayed": "job", "delayed_class": "class"})
    waiting = victims.group_by(_CLASS).agg(queueing_ps=pl.col("waiting").sum())
    isolated = [
        run.class_latency.with_columns(job=pl.lit(job, pl.UInt32))
        for job, run in enumerate(alone)
        if run is not None and run.class_latency is not None
    ]
    none = pl.DataFrame(schema={"class": pl.String, "isolated": pl.Float64, "job": pl.UInt32})
    joined = (
        table.join(waiting, on=_CLASS, how="left", maintain_order="left")
        .join(pl.concat([none, *isolated]), on=_CLASS, how="left", maintain_order="left")
        .filter((pl.col("class") != "") | (pl.col("packet_number") > 0))
    )
    shown = {
        f"{of}_{name}_ps": pl.col(f"{of}_{name}") for of in ("message", "packet") for name in ("mean", "p50", "p99")
    }
    queueing = pl.col("queueing_ps").fill_null(0)
    return joined.with_columns(
        _name(names, "job"),
        _none_as_null("class"),
        messages=pl.col("message_number").fill_null(0),
        packets=pl.col("packet_number").fill_null(0),
        queueing_ps=queueing,
        queueing_s=queueing * PS,
        isolated_message_mean_ps=pl.col("isolated"),
        slowdown=pl.col("message_mean") / pl.col("isolated"),
        **shown,
    ).select(pl.col(name).cast(kind) for name, kind in types(RUN["classes"]).items())


def class_interference(names: Sequence[str], counts: ClassCounts) -> pl.DataFrame:
    """The interference matrix by job and class: queueing delay of the victim's packets that the aggressor's caused."""
    raw = counts.interference.sort("delayed", "delaying", maintain_order=True)
    return raw.select(
        _name(names, "delayed").alias("victim"),
        _none_as_null("delayed_class").alias("victim_class"),
        _name(names, "delaying").alias("aggressor"),
        _none_as_null("delaying_class").alias("aggressor_class"),
        queueing_ps="waiting",
        queueing_s=pl.col("waiting") * PS,
    )


def _name(names: Sequence[str], column: str) -> pl.Expr:
    return pl.col(column).replace_strict(dict(enumerate(names)), return_dtype=pl.String).alias("name")


def _none_as_null(column: str) -> pl.Expr:
    return pl.when(pl.col(column) != "").then(pl.col(column)).alias(column)
