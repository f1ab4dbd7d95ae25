"""What the terminal shows of a sweep of loads."""

from __future__ import annotations

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from fairlane.cli.run_text import console_for_tables
from fairlane.engine.measured import PS
from fairlane.results.text import plural, seconds
from fairlane.saturation.results import ACCEPTED_IN_FULL, CONFIDENCE, FEW, Saturation

__all__ = ["print_saturation"]


def print_saturation(found: Saturation, console: Console | None = None) -> None:
    """Prints a row for each load, and where saturation lies."""
    console = console or console_for_tables()
    seeds = found.meta["seeds"]
    span = found.meta["duration_ps"] - found.meta["warm_up_ps"]
    what = f"{seconds(span * PS)} measured after {seconds(found.meta['warm_up_ps'] * PS)} of warm-up"
    console.print(f"{plural(found.points.height, 'load')} on {plural(len(seeds), 'seed')}, {what}\n")
    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0), show_edge=False)
    for heading in ("load", "offered", "accepted", "latency: mean", "50%", "99%", "99.9%", "saturated"):
        table.add_column(heading, justify="right", no_wrap=True)
    for row in found.points.iter_rows(named=True):
        accepted = f"{row['accepted']:.4f}{_half(row['accepted_low'], row['accepted_high'], 4)}"
        half = row["message_mean_ps_high"]
        mean = _time(row["message_mean_ps"])
        if half is not None and row["message_mean_ps"] is not None:
            mean += f" ± {_time((half - row['message_mean_ps_low']) / 2)}"
        quantiles = [_time(row[f"message_{name}_ps"]) for name in ("p50", "p99", "p999")]
        table.add_row(f"{row['load']:g}", f"{row['offered']:.4f}", accepted, mean, *quantiles, row["saturated"])
    console.print(table)
    for line in _remarks(found):
        console.print(Text(line, style="dim"), soft_wrap=True)
    if found.folder:
        console.print(Text.assemble("Everything is in ", (str(found.folder), "bold"), "."), soft_wrap=True)


def _remarks(found: Saturation) -> list[str]:
    """What the columns are, where saturation lies, and what is weak about the figures."""
    points = found.points
    lines = [
        "Offered, accepted: shares of the injection bandwidth of the sending ranks, headers included. Latency: of "
        f"messages delivered after the warm-up, from generation to last byte. ±: {CONFIDENCE:.0%} over seeds.",
        f"Saturated: the whole interval of accepted over offered is below {ACCEPTED_IN_FULL:.0%}; latencies there grow "
        "with the simulated time.",
    ]
    if points.height and points["accepted"].count():
        best = points.sort("accepted").row(-1, named=True)
        lines.append(
            f"{found.verdict()}. Highest accepted throughput: {best['accepted']:.3f} at load {best['load']:g}."
        )
    if len(found.meta["seeds"]) < 2:
        lines.append("One seed gives no confidence interval, so saturation is undecided: use --replicates 2 or more.")
    few = [row["load"] for row in points.iter_rows(named=True) if (row["message_count"] or 0) < FEW]
    if few:
        lines.append(f"Fewer than {FEW} messages at {', '.join(f'{load:g}' for load in few)}: use a longer --duration.")
    if found.meta["partial"]:
        lines.append("Interrupted: incomplete loads and seeds are left out.")
    return lines


def _time(picoseconds: float | None) -> str:
    return seconds(None if picoseconds is None else picoseconds * PS)


def _half(low: float | None, high: float | None, digits: int) -> str:
    return "" if low is None or high is None else f" ± {(high - low) / 2:.{digits}f}"
