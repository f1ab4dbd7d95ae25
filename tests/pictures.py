"""What can be said of a picture without looking at it: that something is drawn, and that no text is cut off."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from matplotlib.image import imread
from matplotlib.text import Text

__all__ = ["assert_drawn", "assert_texts_fit"]


def assert_drawn(path: Path) -> None:
    """The picture in the file has ink of several colours on a white ground, and margins without any."""
    pixels = (imread(path)[:, :, :3] * 255).astype(int)
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
