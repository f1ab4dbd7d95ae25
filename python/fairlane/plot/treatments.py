"""The runs of a study in its figures: default runs in greys, treatments in colours."""

from dataclasses import dataclass
from typing import Any

import polars as pl
from matplotlib.axes import Axes
from matplotlib.legend import Legend
from matplotlib.patches import Patch

from fairlane.plot.style import PALETTE

DEFAULT = "default"
GREYS = ("#8c8c8c", "#bdbdbd", "#dedede")


@dataclass(frozen=True)
class RunKind:
    """The default runs over one baseline, or the runs with one treatment."""

    baseline: str
    treatment: str
    name: str  # what the legend calls them
    colour: str

    @property
    def is_default(self) -> bool:
        """Whether they are default runs."""
        return self.treatment == DEFAULT

    def rows(self, work: pl.DataFrame) -> pl.DataFrame:
        """Their rows of the table ``work``."""
        return work.filter(baseline=self.baseline, treatment=self.treatment)


def run_kinds(work: pl.DataFrame) -> list[RunKind]:
    """Those that the table ``work`` has rows of, default runs first."""
    pairs = list(work.select("baseline", "treatment").unique(maintain_order=True).iter_rows())
    default = [pair for pair in pairs if pair[1] == DEFAULT]
    treated = [pair for pair in pairs if pair[1] != DEFAULT]
    names = [f"default, {baseline or 'whole run'}" for baseline, _ in default]
    if len(default) == 1:
        names = [DEFAULT]
    colours = [GREYS[at % len(GREYS)] for at in range(len(default))]
    names += [treatment for _, treatment in treated]
    colours += [PALETTE[at % len(PALETTE)] for at in range(len(treated))]
    kinds = zip([*default, *treated], names, colours, strict=True)
    return [RunKind(baseline, treatment, name, colour) for (baseline, treatment), name, colour in kinds]


def draw_legend(axes: Axes, kinds: list[RunKind], columns: int, **place: Any) -> Legend:
    """A legend above the panel."""
    patches = [Patch(facecolor=kind.colour, label=kind.name) for kind in kinds]
    return axes.legend(handles=patches, fontsize=10, ncols=columns, borderaxespad=0.2, **place)
