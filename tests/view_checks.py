"""What holds for every view: each writer can write it, and names cannot break out of a page."""

from __future__ import annotations

import re
from io import StringIO
from pathlib import Path

from rich.console import Console

from fairlane.cli.terminal import show
from fairlane.views.model import Chart, Custom, View
from fairlane.views.page import notebook, page
from fairlane.views.picture import picture
from fairlane.views.style import Look
from pictures import assert_drawn
from report_runs import EVIL

__all__ = ["assert_complete"]


def assert_complete(view: View, folder: Path, most: int | None = None) -> None:
    """Sentences have numbers, charts are Vega-Lite, the first ``most`` pictures are drawn, a terminal has all words."""
    for part in view.parts:
        assert part.sentence.endswith("."), part.title
        assert re.search(r"\d|No ", part.sentence), part.sentence
        if isinstance(part, Chart):
            spec = part.spec.to_dict()  # raises if it is not Vega-Lite
            assert "empty" not in spec["datasets"], "every layer has data"
    for name, charts in list(view.pictures.items())[:most]:
        (folder / f"{name}.png").write_bytes(picture(view, charts, Look()))
        assert_drawn(folder / f"{name}.png")
    text = page(view)
    assert EVIL not in text + notebook(view)
    scripts = 4 if any(isinstance(part, Custom) for part in view.parts) else 3  # with the map of their modules
    assert len(re.findall("<script", text)) == len(re.findall("</script", text)) == scripts
    written = StringIO()
    show([view], Console(width=200, file=written))
    assert view.headline in written.getvalue()
    assert all(line in written.getvalue() for line in view.remarks)
