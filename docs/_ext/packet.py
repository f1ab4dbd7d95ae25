"""Draws the timeline of one packet for the page on internals, from the same rules as its table."""

from math import atan2, degrees
from pathlib import Path
from typing import Any

import altair

from fairlane.views.picture import rendered
from fairlane.views.style import THEMES, Look

WIRE = 4122 * 8 / 100
"""Wire time of 4 KiB and a header at 100 Gbit/s, ns."""
LATENCY, SWITCH = 200, 100
"""Latency of a link and of the switch, ns."""
ROWS = ("NIC port", "switch port", "host")
WIDTH, HEIGHT = 720, 240
START = LATENCY + SWITCH
SENT, ARRIVED = START + WIRE, START + WIRE + LATENCY
END = ARRIVED + LATENCY + 80
COLOURS = {name: altair.ExprRef(f"palette{at}") for at, name in enumerate(("data", "credits"))}
"""Those of the theme."""
HEAD = "M0,0L-0.7,2L0.7,2Z"
"""The shape of an arrow's head, whose tip is its place."""


def write(folder: Path) -> None:
    """Writes ``packet.svg`` and ``packet-dark.svg``."""
    folder.mkdir(parents=True, exist_ok=True)
    chart = _chart()
    for name in THEMES:
        file = "packet.svg" if name == "light" else f"packet-{name}.svg"
        (folder / file).write_bytes(rendered(chart, Look(name, transparent=True, format="svg")))


def _chart() -> dict[str, Any]:
    labels = altair.Axis(values=[0, 1, 2], labelExpr=f"{list(ROWS)}[datum.value]", grid=False)
    ticks = [0, START, WIRE, SENT, ARRIVED, ARRIVED + LATENCY]
    times = altair.Axis(values=ticks, tickCount=20, format=",.6~r", labelAngle=-45, labelOverlap=False)
    x = altair.X("x:Q", title="time, ns", scale=altair.Scale(domain=[-20, END], nice=False), axis=times)
    y = altair.Y("y:Q", title=None, scale=altair.Scale(domain=[2.5, -0.5], nice=False), axis=labels)
    bars = [{"x": at, "x2": at + WIRE, "y": row - 0.17, "y2": row + 0.17} for row, at in enumerate((0, START))]
    arrows = [
        *_arrow((0, 0.17), (START, 0.83), "data"),
        *_arrow((SENT, 1.17), (ARRIVED, 1.95), "data"),
        *_arrow((SENT, 0.83), (SENT + LATENCY, 0), "credits"),
        *_arrow((ARRIVED, 1.95), (ARRIVED + LATENCY, 1), "credits"),
    ]
    notes = [
        _text(WIRE / 2, 0, "transmit", color="white", align="center"),
        _text(START + WIRE / 2, 1, "transmit", color="white", align="center"),
        _text(10, 0.75, f"head: {LATENCY} + {SWITCH} ns", color=COLOURS["data"]),
        _text(SENT - 160, 1.5, f"tail: {LATENCY} ns", color=COLOURS["data"]),
        _text(SENT + 140, 0.5, "credits return", color=COLOURS["credits"]),
        _text(ARRIVED + 140, 1.5, "credits return", color=COLOURS["credits"]),
        _text(ARRIVED + 15, 2.2, "deliver"),
    ]
    boxes = [_of(bar).mark_rect(color=COLOURS["data"]).encode(x2="x2", y2="y2") for bar in bars]
    host = _of({"x": ARRIVED, "y": 2}).mark_point(size=80, color=COLOURS["data"])
    layers = [one.encode(x=x, y=y) for one in (*boxes, *arrows, host, *notes)]
    found = altair.layer(*layers).properties(width=WIDTH, height=HEIGHT).to_dict()
    return {key: value for key, value in found.items() if key != "config"}


def _of(row: dict[str, float]) -> altair.Chart:
    return altair.Chart(altair.InlineData(values=[row]))


def _arrow(begin: tuple[float, float], end: tuple[float, float], kind: str) -> tuple[altair.Chart, altair.Chart]:
    """A line, dashed of credits, and its head."""
    (x, y), (x2, y2) = begin, end
    angle = degrees(atan2((x2 - x) * WIDTH / (END + 20), (y - y2) * HEIGHT / 3))
    line = _of({"x": x, "x2": x2, "y": y, "y2": y2})
    line = line.mark_rule(color=COLOURS[kind], strokeDash=[5, 3] if kind == "credits" else [1, 0])
    head = _of({"x": x2, "y": y2}).mark_point(shape=HEAD, size=60, color=COLOURS[kind])
    return line.encode(x2="x2", y2="y2"), head.encode(angle=altair.AngleValue(angle))


def _text(x: float, y: float, words: str, **look: Any) -> altair.Chart:
    mark: altair.Chart = _of({"x": x, "y": y}).mark_text(text=words, style="text", **{"align": "left", **look})
    return mark
