"""Heat maps: a matrix in colours whose order survives any colour vision and a grey printer, with its colour bar."""

from collections.abc import Mapping
from typing import Literal

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import LinearSegmentedColormap, Normalize
from matplotlib.figure import Figure
from matplotlib.ticker import Formatter

from fairlane.views import heat as views

HEAT = LinearSegmentedColormap.from_list("heat", list(views.HEAT))
EMPTY = "#eeeeee"  # colour of masked cells


def draw_heat(
    axes: Axes,
    values: npt.NDArray[np.float64],
    norm: Normalize,
    *,
    label: str = "",
    aspect: Literal["equal", "auto"] = "equal",
    ticks: Mapping[float, str] | Formatter | None = None,
) -> None:
    """Draws ``values`` (masked ones grey) and a colour bar beside them.

    ``ticks`` are labels by value, or a format of the ticks that the bar has anyway.
    """
    axes.imshow(values, cmap=HEAT.with_extremes(bad=EMPTY), norm=norm, aspect=aspect, interpolation="nearest")
    axes.spines[:].set_visible(False)
    figure = axes.get_figure(root=True)
    assert isinstance(figure, Figure), "axes are in a figure"
    bar = figure.colorbar(ScalarMappable(norm, HEAT), ax=axes, shrink=0.8, aspect=30, pad=0.02, label=label)
    if isinstance(ticks, Formatter):
        bar.formatter = ticks
        bar.update_ticks()
    elif ticks is not None:
        bar.set_ticks(list(ticks), labels=list(ticks.values()))
        bar.minorticks_off()
    bar.outline.set_visible(False)
