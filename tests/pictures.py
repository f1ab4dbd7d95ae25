"""Checks of pictures: something is drawn, and no text is cut off.

Drawing takes most of the time of many tests, so a PNG is drawn only when a test looks at it: ``deferred``.
"""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import vl_convert
from matplotlib.figure import Figure
from matplotlib.image import imread
from matplotlib.text import Text

__all__ = ["assert_drawn", "assert_texts_fit", "deferred", "draw"]

_PNG = b"\x89PNG\r\n\x1a\n"
_DEFERRED = _PNG + b"deferred"
draw = vl_convert.vegalite_to_png


def deferred(spec: dict[str, Any], scale: float) -> bytes:
    """A placeholder of a picture with its specification, which ``assert_drawn`` draws."""
    return _DEFERRED + json.dumps({"spec": spec, "scale": scale}).encode()


def assert_drawn(path: Path) -> None:
    """The picture in the file has ink of several colours on a white ground, and margins without any."""
    content = path.read_bytes()
    if content.startswith(_DEFERRED):
        given = json.loads(content.removeprefix(_DEFERRED))
        content = draw(given["spec"], scale=given["scale"])
    pixels = (imread(io.BytesIO(content))[:, :, :3] * 255).astype(int)
    ink = pixels.min(axis=2) < 250
    assert 0.005 < ink.mean() < 0.9, f"{path.name}: {ink.mean():.1%} of it is drawn on"
    assert len(np.unique(pixels[ink][:: max(1, ink.sum() // 5000)] // 16, axis=0)) > 3, f"{path.name}: one colour"
    edge = np.concatenate([ink[0], ink[-1], ink[:, 0], ink[:, -1]])
    assert not edge.any(), f"{path.name}: cut off at its edge"


def assert_texts_fit(figure: Figure) -> None:
    """Every text of the figure is inside of it, but labels of ticks: those beyond the limits are not drawn."""
    figure.draw_without_rendering()
    axis_texts = {
        label
        for axes in figure.axes
        for axis in (axes.xaxis, axes.yaxis)
        for tick in [*axis.get_major_ticks(), *axis.get_minor_ticks()]
        for label in (tick.label1, tick.label2)
    }
    for text in set(figure.findobj(Text)) - axis_texts:
        assert isinstance(text, Text)
        if text.get_text().strip() and text.get_visible():
            box, whole = text.get_window_extent(), figure.bbox
            inside = min(box.x0, box.y0, whole.x1 - box.x1, whole.y1 - box.y1) > -1
            assert inside, f"{text.get_text()!r} is cut off"
