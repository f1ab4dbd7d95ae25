"""Traffic classes: messages, packets and queueing delay by job and class, and who delays whom by class."""

from collections.abc import Iterator
from typing import Any

import polars as pl

from fairlane.core.tables import PS
from fairlane.core.wording import data_size, number, percent, seconds, time_unit
from fairlane.results.run import Run
from fairlane.views.charts import picked
from fairlane.views.heat import MOST_NUMBERS, Heat
from fairlane.views.model import Chart
from fairlane.views.run.interference import heat_map
from fairlane.views.run.series import Series
from fairlane.views.tables import Column, Table, columns, count, fixed, time_ps

PICTURES = {"classes": "queueing delay by traffic class of victim and aggressor"}
"""Its pictures, and what they show."""
NONE = "no class"
"""What stands for messages that no class selects."""
MOST_CELLS = 12
"""Pairs of classes that are listed."""
MOST_LABELS = 60
"""With more jobs and classes than this there is no picture of the pairs."""
ABOUT = "slowdown: mean latency of messages by that in the isolated run"


def tables(series: Series) -> Iterator[Table]:
    """Of each run a row for each job and class, and the pairs of classes with the largest queueing delay."""
    for name, run in series.runs.items():
        if run.classes is None or not run.classes.height:
            continue
        of = f"{name}: " if series.several else ""
        shown = [
            Column("job", "name"),
            Column("class", "class", left=True),
            Column("messages", "messages", count, note=ABOUT),
            *columns(time_ps, message_mean_ps="mean", message_p50_ps="50%", message_p99_ps="99%"),
            Column("packets", "packets", count, drop=2),
            Column("packet\n99%", "packet_p99_ps", time_ps, drop=1),
            Column("bytes", "bytes", data_size, drop=2),
            Column("queueing", "queueing_s", seconds),
            Column("slowdown", "slowdown", fixed(2)),
        ]
        rows = run.classes.with_columns(pl.col("class").fill_null(NONE)).to_dicts()
        yield Table(shown, rows, f"{of}Traffic classes", sentence=_sentence(run))
        yield from _pairs(run, of)


def _pairs(run: Run, of: str) -> Iterator[Table]:
    rows = _cells(run)
    if not rows:
        return
    total = sum(row["queueing_s"] for row in rows)
    largest = sorted(rows, key=lambda row: (-row["queueing_s"], row["victim"], row["aggressor"]))[:MOST_CELLS]
    shown = [
        Column("victim", "victim"),
        Column("aggressor", "aggressor", left=True),
        Column("queueing", "queueing_s", seconds),
        Column("of all", lambda row: row["queueing_s"] / total, percent),
    ]
    more = ", the largest" if len(rows) > len(largest) else ""
    yield Table(shown, largest, f"{of}Queueing delay by class of victim and aggressor{more}")


def charts(series: Series) -> Iterator[Chart]:
    """Of each run the queueing delay by class of victim and aggressor."""
    for name, run in series.runs.items():
        cells = _cells(run)
        labels = _labels(run)
        if not cells or len(labels) > MOST_LABELS:
            continue
        suffix, of = (f"-{name}", f"{name}: ") if series.several else ("", "")
        yield Chart(
            f"classes{suffix}",
            f"{of}{'q' if of else 'Q'}ueueing delay by traffic class",
            heat_map(*_drawn(cells, labels), "queueing delay, share of all", _told()),
            _sentence(run),
            "The delay of packets of a class (row) that packets of another (column) caused, as a share of all queueing "
            f"delay.{_below(cells, labels)}",
            picked(cells, "victim aggressor queueing_s"),
            picture="classes",
        )


def _told() -> list[Column]:
    delay = Column("queueing delay", "queueing_s", seconds)
    return [*columns(victim="victim", aggressor="aggressor"), delay, Column("of all", "share", percent)]


def _unit(cells: list[dict[str, Any]]) -> tuple[float, str]:
    return time_unit(max(row["queueing_s"] for row in cells))


def _below(cells: list[dict[str, Any]], labels: list[str]) -> str:
    return f" Small numbers: {_unit(cells)[1]}." if len(labels) <= MOST_NUMBERS else ""


def _drawn(cells: list[dict[str, Any]], labels: list[str]) -> tuple[list[dict[str, Any]], Heat, list[str], list[str]]:
    """Cells with colours and texts, the scale, and the names of rows and columns."""
    total = sum(row["queueing_s"] for row in cells)
    heat = Heat.of([row["queueing_s"] / total for row in cells])
    factor, _ = _unit(cells)
    rows = []
    for row in cells:
        share = row["queueing_s"] / total
        text = {"text": percent(share), "below": number(row["queueing_s"] / factor)}
        rows.append({**row, "share": share, **text, "shade": heat.shade(share), "ink": heat.text(share)})
    return rows, heat, labels, labels


def _labels(run: Run) -> list[str]:
    """The names of jobs with their classes, in the order of the table."""
    return [] if run.classes is None else [label(*row) for row in run.classes.select("name", "class").iter_rows()]


def label(job: str, of_class: str | None) -> str:
    """A job and a class in words."""
    return f"{job}: {of_class or NONE}"


def _cells(run: Run) -> list[dict[str, Any]]:
    """The queueing delay of each pair of labels, where there is any."""
    if run.class_interference is None:
        return []
    return [
        {"victim": label(victim, its), "aggressor": label(aggressor, other), "queueing_s": delay}
        for victim, its, aggressor, other, delay in run.class_interference.select(
            "victim", "victim_class", "aggressor", "aggressor_class", "queueing_s"
        ).iter_rows()
    ]


def _sentence(run: Run) -> str:
    """Which class is slowed down most, or has the longest tail where no job is compared with its isolated run."""
    assert run.classes is not None, "invariant: only runs with classes"
    for key, words in (("slowdown", "is slowed down most"), ("message_p99_ps", "has the longest tail")):
        known = run.classes.drop_nulls(key).sort(key, "name", maintain_order=True)
        if known.height:
            row = known.row(-1, named=True)
            value = f"{row[key]:.2f} times" if key == "slowdown" else f"99% within {seconds(row[key] * PS)}"
            return f"{label(row['name'], row['class'])} {words}: {value}."
    return "No message of a class was delivered."
