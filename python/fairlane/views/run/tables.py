"""The tables of a run: its jobs, times per iteration, latencies, power."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial

import polars as pl

from fairlane.power import by_job
from fairlane.results.culprit import NOTICEABLE
from fairlane.results.latency import BUCKET_WIDTH
from fairlane.results.run import Run
from fairlane.results.views import distribution, spread_of_iterations
from fairlane.views.run.series import Series
from fairlane.views.tables import (
    Bad,
    Column,
    Faint,
    Good,
    Row,
    Table,
    change,
    columns,
    count,
    fixed,
    time_ps,
    with_interval,
)
from fairlane.wording import amount, number, percent, plural, seconds, with_half_width

MOST_NAMES = 12
"""With more jobs than this latencies are shown by workload."""
ABOUT_W = (
    "W: throughput change against the isolated run, the same job alone on its hosts. ±: 95% interval over iterations."
)
ABOUT_LATENCY = "±: 95% interval over simulated time. Messages: from the send call to the last byte"


def jobs_table(series: Series) -> Table:
    """One row per job: work, where its time went, and its work relative to being alone."""
    shown = [
        *series.run_column,
        Column("job", "name", left=True),
        Column("workload", "workload", left=True, wrap=True),
        *columns(str, ranks="ranks", iterations="iterations"),
        Column("time per\niteration", with_interval("seconds_per_iteration", seconds)),
        *columns(percent, compute_share="time in\ncompute", communication_share="time\nin MPI"),
        Column("W", _W("w")),
    ]
    rows = [row for name, run in series.runs.items() for row in _jobs(name, run)]
    data = pl.concat([run.jobs.select(pl.lit(name).alias("run"), pl.all()) for name, run in series.runs.items()])
    compared = sum(row["w"] is not None for row in rows)
    sentence = f"{compared} of {plural(len(rows), 'job')} are compared with their isolated run."
    return Table(shown, rows, "Jobs", note=ABOUT_W, sentence=sentence, data=data)


def _jobs(name: str, run: Run) -> Iterator[Row]:
    failed = [] if run.failures is None else run.failures.filter(~pl.col("isolated"))["job"].to_list()
    jobs = run.jobs.join(spread_of_iterations(run.completions), on="name", how="left", maintain_order="left")
    known = jobs.with_columns(failed=pl.col("job").is_in(failed))
    yield from ({"run": name, **row} for row in known.iter_rows(named=True))


class _W:
    """W of a row with its interval, in colour where it is beyond noise; rows are sorted by it."""

    def __init__(self, key: str) -> None:
        self.key = key

    def __call__(self, job: Row) -> str | None:
        if job["failed"]:
            return Bad("failed")
        w = job["w"]
        if w is None:
            return None
        low, high = job["w_low"], job["w_high"]
        text = with_half_width(w, low, high, change)
        if abs(w) < NOTICEABLE or (low is not None and low <= 0 <= high):
            return Faint(text)
        return Bad(text) if w < 0 else Good(text)


def iterations_tables(series: Series) -> Iterator[Table]:
    """One row per job whose iterations were kept: quantiles out to 99%, the slowest, and how many are far out."""
    rows = [
        {"run": name, **row}
        for name, run in series.runs.items()
        if run.iterations is not None and run.iterations["time_s"].count()
        for row in distribution(run.iterations).iter_rows(named=True)
    ]
    if not rows:
        return
    times = {"q1": "1%", "q25": "25%", "q50": "median", "q75": "75%", "q99": "99%", "max": "slowest"}
    last = Column("over 3 x\nmedian", "outliers", str)
    shown = [
        *series.run_column,
        Column("job", "name", left=True),
        Column("iterations", "count", str),
        *columns(seconds, **times),
        last,
    ]
    far = sum(row["outliers"] for row in rows)
    sentence = f"{plural(far, 'iteration')} of {sum(row['count'] for row in rows):,} over 3 times the median."
    yield Table(shown, rows, "Time per iteration, over all ranks", sentence=sentence)


def power_tables(series: Series) -> Iterator[Table]:
    """One row per job: its cap, how far that slows its sockets down, what a host draws, and the energy of all."""
    rows = [
        {"run": name, **row}
        for name, run in series.runs.items()
        if run.power is not None
        for row in by_job(run.power).iter_rows(named=True)
    ]
    if not rows:
        return
    shown = [
        *series.run_column,
        Column("job", "name", left=True),
        Column("hosts", "hosts"),
        Column("cap of a\nsocket", "cap_w", lambda cap: f"{cap:g} W"),
        *columns(percent, mean_frequency="frequency:\nmean", least_frequency="slowest\nsocket"),
        Column("power of\na host", "host_w", fixed(1, " W")),
        Column("energy", "energy_j", lambda joules: f"{number(joules)} J"),
    ]
    energy = number(sum(row["energy_j"] for row in rows))
    yield Table(shown, rows, "Power", sentence=f"{energy} J altogether.", note="–: no cap.")


def latency_tables(series: Series) -> Iterator[Table]:
    """A row per job (or workload), and one per traffic kind where there are several; without packets where narrow.

    Half the width of an interval is below its value: so there is room for those of all columns.
    """
    for name, run in series.runs.items():
        merged = run.latency_merged
        if merged is None or not merged.height:
            continue
        level = "workload" if run.jobs.height > MOST_NAMES else "job"
        names = run.jobs["workload" if level == "workload" else "name"].unique(maintain_order=True)
        found = merged.rename(lambda name: name.removesuffix("_ps"))
        kinds = found.filter(pl.col("level") == "kind")["label"].unique().sort()
        rows: list[Row | None] = _latency_rows(found, level, names)
        if len(kinds) > 1:
            rows += [None, *_latency_rows(found, "kind", kinds)]
        messages = int(merged.filter(of="message", level="job")["count"].sum())
        yield Table(
            _latency_columns(level),
            rows,
            f"{name}: latency" if series.several else "Latency",
            sparse=True,
            sentence=f"{messages:,} messages.",
        )


def _latency_columns(level: str) -> Sequence[Column]:
    quantiles = {"p50": "50%", "p99": "99%", "p999": "99.9%"}
    packets = partial(Column, drop=1)
    return [
        Column(level, "label"),
        Column("messages", "message_count", count, note=ABOUT_LATENCY),
        *(Column(heading, _latency(f"message_{key}")) for key, heading in ({"mean": "mean"} | quantiles).items()),
        Column("max", "message_max", time_ps),
        Column("packets", "packet_count", count, drop=2),
        packets("packet\nmean", _latency("packet_mean"), note="packets: from the offer to the adapter to the delivery"),
        packets("packet\n99%", _latency("packet_p99")),
    ]


def _latency(key: str) -> Callable[[Row], str | None]:
    """A latency of a row, and below it half the width of its interval, where it has one."""

    def written(row: Row) -> str | None:
        value, low, high = (row.get(f"{key}{end}") for end in ("", "_low", "_high"))
        if value is None:
            return None
        is_mean = key.endswith("_mean")
        of = key.removesuffix("_mean")
        spread = (row[f"{of}_p50"], row[f"{of}_min"], row[f"{of}_max"]) if is_mean else None
        words = amount(value, low, high, time_ps, spread, resolution=0.0 if is_mean else BUCKET_WIDTH)
        shown, mark, rest = words.partition(" ±" if " ±" in words else " (")
        return f"{shown}\n{mark.lstrip()}{rest}" if mark else shown

    return written


def _latency_rows(merged: pl.DataFrame, level: str, names: pl.Series) -> list[Row | None]:
    """Of each name the latencies of its messages and of its packets, in one row."""
    rows: dict[str, dict[str, object]] = {name: {"label": name} for name in names}
    for row in merged.filter(pl.col("level") == level).iter_rows(named=True):
        rows.setdefault(row["label"], {"label": row["label"]}).update(
            {f"{row['of']}_{key}": value for key, value in row.items()}
        )
    return list(rows.values())
