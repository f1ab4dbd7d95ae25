"""What the terminal shows after a run: its jobs, latencies, power, who delayed whom, and where the folder is."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Literal

import polars as pl
from rich.text import Text

from fairlane.cli.options import stored
from fairlane.cli.terminal import Part, long
from fairlane.results.culprit import HINT, NOTICEABLE, LostTime, cell_of, headline, largest
from fairlane.results.latency import BUCKET_WIDTH
from fairlane.results.notes import notes
from fairlane.results.run import Run
from fairlane.results.views import Interference, distribution, spread_of_iterations
from fairlane.views.tables import Column, Row, Table, change, columns, fixed, time_ps, with_interval
from fairlane.wording import amount, number, percent, plural, seconds, short_percent, wall_time, with_half_width

MOST_COLUMNS = 12
"""With more jobs than this latencies and the matrix are shown by workload; the matrix also where it is too wide."""
ABOUT_W = (
    "W: throughput change against the isolated run, the same job alone on its hosts. ±: 95% interval over iterations."
)
ABOUT_LATENCY = "±: 95% interval over simulated time. Messages: from the send call to the last byte"
ABOUT_LOST = "±: 95% interval over iterations. Losses to several aggressors need not add up to the whole loss."
LOST_TITLE = "Lost time by victim and aggressor: how much longer an iteration takes than without the aggressor"
MOST_CELLS = 12
"""Cells of lost time that are listed where the table is too wide."""
ABOUT_PERCENT = "Packets queue concurrently: 200% is two queueing packets per rank, all the time."


def summary(run: Run) -> Iterator[Part]:
    """What ``run`` found."""
    yield _headline(run)
    yield jobs_table(run)
    if (words := headline(run)) is not None:
        yield Text(f"{words}.", style="bold")
    yield from (long(note, "yellow") for note in notes(run))
    if run.iterations is not None and run.iterations["time_s"].count():
        yield iterations_table(run.iterations)
    if run.latency_merged is not None and run.latency_merged.height:
        yield latency_table(run, run.latency_merged)
    if run.power is not None:
        yield power_table(run.power)
    if lost := LostTime.of(run):
        yield lost_table(run, lost)
    if run.interference["queueing_s"].sum() > 0:
        yield interference_table(run, by="workload" if run.jobs.height > MOST_COLUMNS else "job")
        if run.lost_time is None and run.jobs.height > 1:
            yield Text(HINT, style="dim")
    yield from _congestion_control(run)
    yield from (long(f"Note: {note}") for note in run.meta.notes)
    yield from stored(run.folder)


def jobs_table(run: Run) -> Table:
    """One row per job: work, where its time went, and its work relative to being alone."""
    shown = [
        Column("job", "name"),
        Column("workload", "workload", left=True, wrap=True),
        *columns(str, ranks="ranks", iterations="iterations"),
        Column("time per\niteration", with_interval("seconds_per_iteration", seconds)),
        *columns(percent, compute_share="time in\ncompute", communication_share="time\nin MPI"),
        Column("W", _coloured),
    ]
    failed = [] if run.failures is None else run.failures.filter(~pl.col("isolated"))["job"].to_list()
    jobs = run.jobs.join(spread_of_iterations(run.completions), on="name", how="left", maintain_order="left")
    return Table(shown, jobs.with_columns(failed=pl.col("job").is_in(failed)).to_dicts(), note=ABOUT_W)


def iterations_table(iterations: pl.DataFrame) -> Table:
    """One row per job whose iterations were kept: quantiles out to 99%, the slowest, and how many are far out."""
    times = {"q1": "1%", "q25": "25%", "q50": "median", "q75": "75%", "q99": "99%", "max": "slowest"}
    last = Column("over 3 x\nmedian", "outliers", str)
    shown = [*columns(name="job"), Column("iterations", "count", str), *columns(seconds, **times), last]
    return Table(shown, distribution(iterations).to_dicts(), "Time per iteration, over all ranks")


def power_table(power: pl.DataFrame) -> Table:
    """One row per job: its cap, how far that slows its sockets down, what a host draws, and the energy of all."""
    from fairlane.power import by_job

    shown = [
        *columns(name="job", hosts="hosts"),
        Column("cap of a\nsocket", lambda job: "none" if job["cap_w"] is None else f"{job['cap_w']:g} W"),
        *columns(percent, mean_frequency="frequency:\nmean", least_frequency="slowest\nsocket"),
        Column("power of\na host", "host_w", fixed(1, " W")),
        Column("energy", "energy_j", lambda joules: f"{number(joules)} J"),
    ]
    return Table(shown, by_job(power).to_dicts(), "Power")


def latency_table(run: Run, merged: pl.DataFrame) -> Table:
    """A row per job (or workload), and one per traffic kind where there are several; without packets where narrow.

    Half the width of an interval is below its value: so there is room for those of all columns.
    """
    level = "workload" if run.jobs.height > MOST_COLUMNS else "job"
    names = run.jobs["workload" if level == "workload" else "name"].unique(maintain_order=True)
    found = merged.rename(lambda name: name.removesuffix("_ps"))
    kinds = found.filter(pl.col("level") == "kind")["label"].unique().sort()
    rows: list[Row | None] = _latency_rows(found, level, names)
    if len(kinds) > 1:
        rows += [None, *_latency_rows(found, "kind", kinds)]
    quantiles = {"p50": "50%", "p99": "99%", "p999": "99.9%"}
    packets = partial(Column, drop=1)
    shown = [
        Column(level, "label"),
        Column("messages", "message_count", note=ABOUT_LATENCY),
        *(Column(heading, _latency(f"message_{key}")) for key, heading in ({"mean": "mean"} | quantiles).items()),
        Column("max", "message_max", time_ps),
        Column("packets", "packet_count", drop=2),
        packets("packet\nmean", _latency("packet_mean"), note="packets: from the offer to the adapter to the delivery"),
        packets("packet\n99%", _latency("packet_p99")),
    ]
    return Table(shown, rows, "Latency", sparse=True)


def _latency(key: str) -> Callable[[Row], Text | None]:
    """A latency of a row, and below it half the width of its interval, where it has one."""

    def written(row: Row) -> Text | None:
        value, low, high = (row.get(f"{key}{end}") for end in ("", "_low", "_high"))
        if value is None:
            return None
        is_mean = key.endswith("_mean")
        of = key.removesuffix("_mean")
        spread = (row[f"{of}_p50"], row[f"{of}_min"], row[f"{of}_max"]) if is_mean else None
        words = amount(value, low, high, time_ps, spread, resolution=0.0 if is_mean else BUCKET_WIDTH)
        shown, mark, rest = words.partition(" ±" if " ±" in words else " (")
        return Text.assemble(shown, (f"\n{mark.lstrip()}{rest}" if mark else "", "dim"))

    return written


def _latency_rows(merged: pl.DataFrame, level: str, names: pl.Series) -> list[Row | None]:
    """Of each name the latencies of its messages and of its packets, in one row."""
    rows: dict[str, dict[str, object]] = {name: {"label": name} for name in names}
    for row in merged.filter(pl.col("level") == level).iter_rows(named=True):
        rows[row["label"]] |= {f"{row['of']}_{key}": value for key, value in row.items()}
    return list(rows.values())


def interference_table(run: Run, by: Literal["job", "workload"] = "job") -> Table:
    """Rows are victims, columns aggressors: the queueing delay, and its percentage of the row's rank-seconds."""
    by_workload = by == "workload"
    matrix = Interference.of(run, by)
    factor, unit = matrix.unit()
    totals = matrix.others.sum(axis=1)
    amounts = {"others": totals, "itself": matrix.own}
    keys = [_key(index) for index in range(len(matrix.labels))]
    shares = matrix.share(matrix.others)
    sums = {name: (amount, matrix.share(amount)) for name, amount in amounts.items()}
    rows: list[Row] = []
    for row, label in enumerate(matrix.labels):
        cells = {
            key: Text("·", style="dim") if row == at and not by_workload else _cell(value / factor, share)
            for at, (key, value, share) in enumerate(zip(keys, matrix.others[row], shares[row], strict=True))
        }
        for (name, (delay, share)), style in zip(sums.items(), ("bold", "dim"), strict=True):
            cells[name] = _cell(delay[row] / factor, share[row], style)
        rows.append({"victim": f"{keys[row]} {label}", **cells})
    whose = "victims of one workload" if by_workload else "the victim"
    return Table(
        [Column("victim \\ aggressor", "victim"), *(Column(key, key) for key in [*keys, *sums])],
        rows,
        f"Who delays whom: queueing delay, {unit}; percent of the rank time of {whose}",
        ABOUT_PERCENT,
        otherwise=None if by_workload else partial(interference_table, run, "workload"),
    )


def lost_table(run: Run, lost: LostTime) -> Table:
    """Rows are victims, columns aggressors: time lost per iteration, half its interval's width, and its share.

    Letters are those of the interference matrix.
    """
    letters = {name: _key(number) for number, name in enumerate(run.jobs["name"])}
    rows: list[Row] = [
        {"victim": f"{letters[name]} {name}"}
        | {aggressor: _lost_cell(lost, row, column) for column, aggressor in enumerate(lost.aggressors)}
        for row, name in enumerate(lost.victims)
    ]
    return Table(
        [Column("victim \\ aggressor", "victim"), *(Column(letters.get(it, it), it) for it in lost.aggressors)],
        rows,
        f"{LOST_TITLE}; percent of the victim's time",
        ABOUT_LOST,
        otherwise=partial(lost_list, lost),
    )


def lost_list(lost: LostTime) -> Table:
    """The largest cells of the same, a row each."""
    cells = [cell_of(lost, *at) | {"certain": lost.certain[at]} for at in largest(lost, MOST_CELLS)]
    shown = [
        Column("victim", "victim"),
        Column("aggressor", "aggressor", left=True),
        Column("lost time", lambda row: with_half_width(row["lost_s"], row["lost_s_low"], row["lost_s_high"], seconds)),
        Column("share", "share", change),
    ]
    return Table(shown, cells, f"{LOST_TITLE}, the largest", ABOUT_LOST)


def _lost_cell(lost: LostTime, row: int, column: int) -> Text | None:
    """A cell of the table of lost time; dim where it is within noise."""
    cell = cell_of(lost, row, column)
    if cell["lost_s"] is None:
        return None
    lost_time = with_half_width(cell["lost_s"], cell["lost_s_low"], cell["lost_s_high"], seconds).replace(" ±", "\n±")
    return Text(f"{change(cell['share'])}\n{lost_time}", style="" if lost.certain[row, column] else "dim")


def frame_parts(frame: pl.DataFrame, *, on_terminal: bool) -> Iterator[Part]:
    """The answer to a query: a table on a terminal, CSV where the output goes elsewhere."""
    if on_terminal:
        numeric = {name: kind.is_numeric() for name, kind in frame.schema.items()}
        yield Table([Column(name, name, _value, left=not right) for name, right in numeric.items()], frame.to_dicts())
        return
    nested = [name for name, kind in frame.schema.items() if kind.is_nested()]  # CSV has neither lists nor records
    texts = [[None if value is None else str(value) for value in frame[name].to_list()] for name in nested]
    flat = [pl.Series(name, text, pl.String) for name, text in zip(nested, texts, strict=True)]
    yield frame.with_columns(flat).write_csv().removesuffix("\n")


def _value(value: object) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _headline(run: Run) -> Text:
    meta = run.meta
    partial_ = (f" of {seconds(meta.duration_ps * 1e-12)}: interrupted, results are partial", "bold red")
    return Text.assemble(
        (meta.scenario, "bold"),
        f": {seconds(meta.simulated_s)} simulated",
        *([partial_] if meta.partial else []),
        f", {plural(run.jobs.height, 'job')}, {_hops(meta.packet_hops)}, seed {meta.seed}\n",
        *([(_time_spent(run), "dim")] if meta.timings else []),
    )


def _congestion_control(run: Run) -> Iterator[Part]:
    """How many packets congestion control marked and sent, if there are any."""
    totals = run.meta.totals or {}
    marked, sent = totals.get("packets_marked", 0), totals.get("control_packets", 0)
    if marked or sent:
        notices = f"{plural(sent, 'acknowledgement or CNP', 'acknowledgements and CNPs')} sent"
        yield long(f"Congestion control: {plural(marked, 'packet')} marked by switches, {notices}")


def _hops(hops: int) -> str:
    return plural(hops, "packet-hop") if hops < 100_000 else f"{hops / 1e6:,.1f} million packet-hops"


def _time_spent(run: Run) -> str:
    """Where the wall time went, the engine's speed in the co-run."""
    spent = run.meta.timings
    if spent is None:
        return ""
    parts = {"set-up": spent.set_up_s, "calibration": spent.calibration_s, "simulation": spent.simulation_s}
    more = {"tables": spent.writing_s, "figures": spent.figures_s}
    known = parts | {name: value for name, value in more.items() if value is not None}
    each = ", ".join(f"{name} {wall_time(value)}" for name, value in known.items())
    lines = f"Wall time {wall_time(sum(known.values()))}: {each}\n"
    if not spent.engine_s:
        return lines
    speed = f"{run.meta.packet_hops / spent.engine_s / 1e6:.1f} M packet-hops/s"
    return f"{lines}Engine, co-run {wall_time(spent.engine_s)}: {speed}\n"


def _cell(value: float, share: float, style: str = "") -> Text:
    if value == 0:
        return Text("0", style="dim")
    return Text(f"{number(value)}\n{short_percent(share)}", style=style)


def _key(index: int) -> str:
    return chr(ord("A") + index) if index < 26 else str(index + 1)


def _coloured(job: Row) -> Text | None:
    """W with its interval, in colour where it is beyond noise."""
    if job["failed"]:
        return Text("failed", style="red")
    w = job["w"]
    if w is None:
        return None
    low, high = job["w_low"], job["w_high"]
    is_noise = abs(w) < NOTICEABLE or (low is not None and low <= 0 <= high)
    return Text(with_half_width(w, low, high, change), style="dim" if is_noise else "red" if w < 0 else "green")
