"""Draws the timeline of one packet for the page on internals, from the same rules as its table."""

from pathlib import Path

import matplotlib as mpl
from matplotlib.figure import Figure

WIRE = 4122 * 8 / 100
"""Wire time of 4 KiB and a header at 100 Gbit/s, ns."""
LATENCY, SWITCH = 200, 100
"""Latency of a link and of the switch, ns."""
ROWS = ("NIC port", "switch port", "host")


def write(folder: Path) -> None:
    """Writes ``packet.svg`` and ``packet-dark.svg``."""
    folder.mkdir(parents=True, exist_ok=True)
    mpl.rcParams["svg.hashsalt"] = "packet"
    for name, ink, bar in (("packet.svg", "#222222", "#1f5f8b"), ("packet-dark.svg", "#dddddd", "#4f9bc9")):
        _figure(ink, bar).savefig(folder / name, transparent=True, metadata={"Date": None})


def _figure(ink: str, bar: str) -> Figure:
    figure = Figure(figsize=(9, 3.4), layout="constrained")
    axes = figure.subplots()
    start = LATENCY + SWITCH
    credit = "#c05a00"
    for row, left in enumerate((0, start)):
        axes.barh(row, WIRE, left=left, height=0.34, color=bar)
        axes.text(left + WIRE / 2, row, "transmit", color="white", ha="center", va="center", fontsize=9)
    arrived = start + WIRE + LATENCY
    axes.plot(arrived, 2, "o", color=bar)
    axes.text(arrived + 15, 2.12, "deliver", color=ink, va="top", fontsize=9)
    sent, returned = {"color": bar}, {"color": credit, "linestyle": "--"}
    for begin, end, style in (
        ((0.0, 0.17), (start, 0.83), sent),
        ((start + WIRE, 1.17), (arrived, 1.95), sent),
        ((start + WIRE, 0.83), (start + WIRE + LATENCY, 0.0), returned),
        ((arrived, 1.95), (arrived + LATENCY, 1.0), returned),
    ):
        axes.annotate("", end, begin, arrowprops={"arrowstyle": "-|>", "shrinkA": 0, "shrinkB": 0, **style})
    notes = [
        (10, 0.8, f"head: {LATENCY} + {SWITCH} ns", bar),
        (start + WIRE - 160, 1.55, f"tail: {LATENCY} ns", bar),
        (start + WIRE + 140, 0.55, "credits return", credit),
        (arrived + 140, 1.55, "credits return", credit),
    ]
    for x, y, words, colour in notes:
        axes.text(x, y, words, color=colour, fontsize=9)
    ticks = [0, start, WIRE, start + WIRE, arrived, arrived + LATENCY]
    axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks], fontsize=9, rotation=30)
    axes.set_yticks(range(3), ROWS)
    axes.set_xlim(-20, arrived + LATENCY + 80)
    axes.set_ylim(2.5, -0.5)
    axes.set_xlabel("time, ns")
    axes.tick_params(colors=ink)
    axes.xaxis.label.set_color(ink)
    for tick in ticks:
        axes.axvline(tick, color=ink, alpha=0.15, linewidth=0.8)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    for side in ("bottom", "left"):
        axes.spines[side].set_color(ink)
    return figure
