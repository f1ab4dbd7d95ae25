"""What the terminal shows after a run: a table of jobs, who delayed whom, and where the folder is."""

from __future__ import annotations

import sys
from typing import Literal

import polars as pl
from rich.box import SIMPLE_HEAD
from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from fairlane.cli.latency_text import latency_table
from fairlane.results.interference import Interference
from fairlane.results.iterations import distribution
from fairlane.results.notes import notes
from fairlane.results.run import Run
from fairlane.results.text import number, percent, plural, seconds, short_percent, wall_time

MOST_COLUMNS = 12
"""With more jobs than this the matrix is shown by workload, as it is where the console is too narrow."""
NOTICEABLE = 0.005
"""Changes of work below this are not coloured."""
WIDE = 1000
"""Columns of a console on which every table fits."""
ABOUT_W = "W: throughput change against the isolated run, the same job alone on its hosts, at the same iteration."
ABOUT_PERCENT = "Packets queue concurrently: 200% is two queueing packets per rank, all the time."


def print_summary(run: Run, console: Console | None = None) -> None:
    """Prints what ``run`` found, to standard output unless a ``console`` is given."""
    console = console or console_for_tables()
    console.print(_headline(run))
    console.print(jobs_table(run) if _fits(console, jobs_table(run)) else jobs_table(run, gap=0))
    console.print(Text(ABOUT_W, style="dim"))
    for note in notes(run):
        console.print(Text(note, style="yellow"), soft_wrap=True)
    if run.iterations is not None and run.iterations["seconds"].count():
        console.print(iterations_table(run.iterations))
    many = run.jobs.height > MOST_COLUMNS
    latency = latency_table(run, by_workload=many)
    if latency is not None:
        fits = _fits(console, latency.renderables[1])
        console.print(latency if fits else latency_table(run, by_workload=many, packets=False))
    if run.power is not None:
        console.print(power_table(run.power))
    if run.interference["seconds"].sum() > 0:
        between_jobs = run.jobs.height <= MOST_COLUMNS and _fits(console, interference_table(run))
        console.print(interference_table(run, by="job" if between_jobs else "workload"))
    for note in run.meta.notes:
        console.print(Text(f"Note: {note}"), soft_wrap=True)
    if run.folder:
        console.print(Text.assemble("Everything is in ", (str(run.folder), "bold"), "."), soft_wrap=True)


def print_frame(frame: pl.DataFrame, console: Console | None = None) -> None:
    """Prints the answer to a query: a table on a terminal, CSV where the output goes elsewhere."""
    console = console or console_for_tables()
    if not console.is_terminal:
        console.file.write(_flat(frame).write_csv())
        return
    table = Table(box=SIMPLE_HEAD)
    for name, dtype in frame.schema.items():
        table.add_column(name, justify="right" if dtype.is_numeric() else "left")
    for row in frame.iter_rows():
        table.add_row(*[f"{value:.6g}" if isinstance(value, float) else _plain(value) for value in row])
    console.print(table)


def _flat(frame: pl.DataFrame) -> pl.DataFrame:
    """Lists and records as text: CSV has neither."""
    nested = [name for name, dtype in frame.schema.items() if dtype.is_nested()]
    return frame.with_columns(
        pl.Series(name, [None if value is None else str(value) for value in frame[name].to_list()], pl.String)
        for name in nested
    )


def _fits(console: Console, shown: RenderableType) -> bool:
    """Whether nothing of it has to be cut off."""
    return console.measure(shown, options=console.options.update_width(WIDE)).maximum <= console.width


def jobs_table(run: Run, gap: int = 1) -> Table:
    """One row per job: work, where its time went, and its work relative to being alone."""
    table = Table(box=SIMPLE_HEAD, padding=(0, gap, 0, 0), show_edge=False)
    table.add_column("job", no_wrap=True)
    table.add_column("workload")
    for heading in ("ranks", "iterations", "time per\niteration", "time in\ncompute", "time\nin MPI", "W"):
        table.add_column(heading, justify="right", no_wrap=True)
    for job in run.jobs.iter_rows(named=True):
        table.add_row(
            job["name"],
            job["workload"],
            str(job["ranks"]),
            str(job["iterations"]),
            seconds(job["seconds_per_iteration"]),
            percent(job["compute_share"]),
            percent(job["communication_share"]),
            Text(percent(job["w"], signed=True), style=_change_style(job["w"])),
        )
    return table


def iterations_table(iterations: pl.DataFrame) -> Group:
    """One row per job whose iterations were kept: quantiles out to 99%, the slowest, and how many are far out."""
    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0), show_edge=False)
    table.add_column("job", no_wrap=True)
    for heading in ("iterations", "1%", "25%", "median", "75%", "99%", "slowest", "over 3 x\nmedian"):
        table.add_column(heading, justify="right", no_wrap=True)
    for job in distribution(iterations).iter_rows(named=True):
        times = [seconds(job[key]) for key in ("q1", "q25", "q50", "q75", "q99", "greatest")]
        table.add_row(job["name"], str(job["count"]), *times, str(job["outliers"]))
    return Group(Text("\nTime per iteration, over all ranks", style="bold"), table)


def power_table(power: pl.DataFrame) -> Group:
    """One row per job: its cap, how far that slows its sockets down, what a host draws, and the energy of all."""
    from fairlane.power import by_job

    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0), show_edge=False)
    table.add_column("job", no_wrap=True)
    for heading in ("hosts", "cap of a\nsocket", "frequency:\nmean", "slowest\nsocket", "power of\na host", "energy"):
        table.add_column(heading, justify="right", no_wrap=True)
    for job in by_job(power).iter_rows(named=True):
        cap = "none" if job["cap_w"] is None else f"{job['cap_w']:g} W"
        shares = [percent(job[key]) for key in ("mean_frequency", "least_frequency")]
        table.add_row(
            job["name"], str(job["hosts"]), cap, *shares, f"{job['host_w']:.1f} W", f"{number(job['energy_j'])} J"
        )
    return Group(Text("\nPower", style="bold"), table)


def interference_table(run: Run, by: Literal["job", "workload"] = "job") -> Group:
    """Rows are victims, columns aggressors: the queueing delay, and its percentage of the row's rank-seconds."""
    by_workload = by == "workload"
    matrix = Interference.of(run, by)
    factor, unit = matrix.unit()
    whose = "victims of one workload" if by_workload else "the victim"
    title = f"Who delays whom: queueing delay, {unit}; percent of the rank time of {whose}"
    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0), show_edge=False)
    table.add_column("victim \\ aggressor", no_wrap=True)
    keys = [_key(index) for index in range(len(matrix.labels))]
    for key in [*keys, "others", "itself"]:
        table.add_column(key, justify="right", no_wrap=True)
    shares, totals = matrix.share(matrix.others), matrix.others.sum(axis=1)
    total_shares, own_shares = matrix.share(totals), matrix.share(matrix.own)
    for row, label in enumerate(matrix.labels):
        cells = [
            _cell(value / factor, share) if by_workload or row != column else Text("·", style="dim")
            for column, (value, share) in enumerate(zip(matrix.others[row], shares[row], strict=True))
        ]
        others = _cell(totals[row] / factor, total_shares[row], "bold")
        own = _cell(matrix.own[row] / factor, own_shares[row], "dim")
        table.add_row(f"{keys[row]} {label}", *cells, others, own)
    return Group(Text(f"\n{title}", style="bold"), table, Text(ABOUT_PERCENT, style="dim"))


def _headline(run: Run) -> Text:
    meta = run.meta
    partial = (f" of {seconds(meta.duration_ps * 1e-12)}: interrupted, results are partial", "bold red")
    return Text.assemble(
        (meta.scenario, "bold"),
        f": {seconds(meta.simulated_s)} simulated",
        *([partial] if meta.partial else []),
        f", {plural(run.jobs.height, 'job')}, {_hops(meta.packet_hops)}, seed {meta.seed}\n",
        *([(_time_spent(run), "dim")] if meta.timings else []),
    )


def _hops(count: int) -> str:
    return plural(count, "packet-hop") if count < 100_000 else f"{count / 1e6:,.1f} million packet-hops"


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


def _change_style(w: float | None) -> str:
    if w is None or abs(w) < NOTICEABLE:
        return "dim"
    return "red" if w < 0 else "green"


def _plain(value: object) -> str:
    return "" if value is None else str(value)


def console_for_tables() -> Console:
    """Standard output; wide enough for the tables where it is not a terminal."""
    return Console() if sys.stdout.isatty() else Console(width=140)
