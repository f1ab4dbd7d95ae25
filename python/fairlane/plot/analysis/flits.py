"""How flits are spread over the links, in the co-run and in the isolated run (compare Smith et al. 2018, Fig. 9)."""

import polars as pl
from matplotlib.patches import Patch

from fairlane.analysis.flits import FLIT_BYTES
from fairlane.analysis.result import Analysis
from fairlane.plot.boxes import Floats, draw_boxes
from fairlane.plot.legend import legend_above
from fairlane.plot.panels import Drawn, Given, Panels
from fairlane.plot.style import PALETTE, bare
from fairlane.wording import significant


def draw(found: Analysis, axes: Given = None) -> Drawn | None:
    """Boxes of the flits of all links by class, for each stretch."""
    classes = found.chosen.flits["class"].unique(maintain_order=True).to_list()
    stretches = [stretch for stretch in (found.isolated, found.chosen) if stretch is not None]
    colours = [PALETTE[0], PALETTE[1]] if len(stretches) > 1 else [PALETTE[1]]
    panels = Panels.of(axes, (11, 2.2 + 0.75 * len(classes)))
    [panel] = panels.axes
    width = 0.7 / len(stretches)
    for number, (stretch, colour) in enumerate(zip(stretches, colours, strict=True)):
        groups = [_flits(stretch.flits, name) for name in classes]
        shift = (number - (len(stretches) - 1) / 2) * width
        places = [place + shift for place in range(len(classes))]
        draw_boxes(panel, groups, [colour] * len(classes), positions=places, width=0.85 * width, horizontal=True)
    panel.set_yticks(range(len(classes)), classes)
    ends = (len(classes) - 0.4, -0.6)
    panel.set(ylim=ends, xlabel=f"Million flits of {FLIT_BYTES} bytes on a link", xlim=(0, None))
    bare(panel)
    names = [f"{stretch.span.name}: {significant(_total(stretch.flits) / 1e6)} million flits" for stretch in stretches]
    handles = [Patch(color=colour, label=name) for colour, name in zip(colours, names, strict=True)]
    legend_above(panel, handles=handles)
    note = "All jobs; boxes: quartiles and median; whiskers: 1% and 99%; dots: links beyond."
    return panels.headline_of_run(_title(found), found.run, note)


def _flits(table: pl.DataFrame, name: str) -> Floats:
    found: Floats = table.filter(pl.col("class") == name)["flits"].cast(pl.Float64).to_numpy() / 1e6
    return found


def _total(table: pl.DataFrame) -> int:
    return int(table["flits"].sum())


def _title(found: Analysis) -> str:
    if found.isolated is None:
        return f"Flits on the links, {found.chosen.span.name}"
    here, alone = _total(found.chosen.flits), _total(found.isolated.flits)
    return f"In the co-run the links carry {here / max(alone, 1):.2f} times the flits of the isolated run"
