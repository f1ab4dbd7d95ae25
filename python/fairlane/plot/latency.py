"""Latencies of messages: mean and quantiles of each job or workload, with their 95% intervals."""

from typing import Any

import numpy as np
import polars as pl

from fairlane.engine.tables import PS
from fairlane.plot.boxes import Floats
from fairlane.plot.legend import legend_above
from fairlane.plot.panels import Drawn, Given, Panels
from fairlane.plot.style import PALETTE, bare, plain_logarithms
from fairlane.results.latency import BUCKET_WIDTH
from fairlane.results.run import Run
from fairlane.views.scales import is_wide
from fairlane.wording import amount, plural, seconds, time_unit

MARKS = {"mean": ("mean", "D"), "p50": ("50%", "o"), "p99": ("99%", "s"), "p999": ("99.9%", "^")}
"""What is shown, by column: its name in the legend, and its marker."""
MOST_ROWS = 40  # with more jobs, rows are workloads; of more workloads, those with the longest tails are shown
ROW_INCHES = 0.42


def draw(run: Run, axes: Given = None) -> Drawn | None:
    """A row for each job, or for each workload of many jobs; None where no message was counted."""
    if run.latency_merged is None:
        return None
    level = "job" if run.jobs.height <= MOST_ROWS else "workload"
    messages = run.latency_merged.filter(pl.col("of") == "message", pl.col("level") == level, pl.col("count") > 0)
    if messages.is_empty():
        return None
    shown = messages.top_k(MOST_ROWS, by="p99_ps")
    shown = messages.join(shown.select("label"), on="label", how="semi", maintain_order="left")
    values = {key: _seconds(shown, key) for key in MARKS}
    every = np.concatenate(list(values.values()), axis=None)
    low, high = float(np.min(every[every > 0], initial=np.inf)), float(every.max())
    wide = is_wide(low, high)
    factor, unit = time_unit((low * high) ** 0.5 if wide else high)
    panels = Panels.of(axes, (12, 2.2 + ROW_INCHES * shown.height))
    [panel] = panels.axes
    step = 0.7 / len(MARKS)
    for at, (key, (words, marker)) in enumerate(MARKS.items()):
        value, *ends = values[key] / factor
        reach = np.maximum([value - ends[0], ends[1] - value], 0)
        y = np.arange(shown.height) + step * (at - (len(MARKS) - 1) / 2)
        look: dict[str, Any] = {"markersize": 5, "elinewidth": 1.6, "capsize": 2.5}
        panel.errorbar(value, y, xerr=reach, fmt=marker, color=PALETTE[at], label=words, **look)
    panel.set_yticks(range(shown.height), shown["label"].to_list())
    panel.set_ylim(shown.height - 0.5, -0.5)
    panel.set_xlabel(f"Latency of messages [{unit}]" + (", logarithmic" if wide else ""))
    if wide:
        plain_logarithms(panel.xaxis, low / factor, high / factor)
    else:
        panel.set_xlim(left=0)
    bare(panel)
    legend_above(panel, len(MARKS))
    left = messages.height - shown.height
    note = (
        "From the send call to the delivery of the last byte. Whiskers: 95% intervals over batches of simulated time."
    )
    if left:
        note += f" The {plural(left, 'workload')} with the shortest tails (99%) are in the table latency_merged."
    return panels.headline_of_run(_title(shown), run, note)


def _seconds(shown: pl.DataFrame, key: str) -> Floats:
    """Value and ends of the interval of each row, s; where there is no interval both ends are the value.

    Of a mean whose interval reaches zero they are the median and the range, as in the terminal.
    """
    value, low = pl.col(f"{key}_ps").cast(pl.Float64), pl.col(f"{key}_low_ps")
    ends = [pl.col(f"{key}_{end}_ps").fill_null(value).alias(end) for end in ("low", "high")]
    wide = low.is_not_null() & (low.cast(pl.Float64) <= 0) if key == "mean" else pl.lit(value=False)
    spread = [pl.col(f"{name}_ps").cast(pl.Float64) for name in ("p50", "min", "max")]
    numbers = [
        pl.when(wide).then(of_spread).otherwise(number.cast(pl.Float64)).alias(name)
        for name, number, of_spread in zip(("value", "low", "high"), (value, *ends), spread, strict=True)
    ]
    return shown.select(numbers).to_numpy().T.astype(np.float64) * PS


def _title(shown: pl.DataFrame) -> str:
    """The longest tail."""
    worst = shown.sort("p99_ps", "label").row(-1, named=True)
    value, low, high = (worst[name] for name in ("p99_ps", "p99_low_ps", "p99_high_ps"))
    tail = amount(value, low, high, lambda time: seconds(time * PS), resolution=BUCKET_WIDTH)
    return f"{worst['label']} has the longest tail: 99% within {tail}"
