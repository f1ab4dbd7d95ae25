"""Methods of results, fabrics and analyses that draw, which import this when they are called."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from fairlane.model.fabric.view import Fabric
from fairlane.results.base import Results
from fairlane.sim.analysis.result import Analysis
from fairlane.views import analysis, kinds
from fairlane.views.page import notebook

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot(results: Results, figure: str | None, axes: "Axes | Sequence[Axes] | None") -> Any:
    """Draw a figure of results with Altair, or with Matplotlib on axes and where there is no view."""
    if axes is None and kinds.has_picture(results, figure):
        return kinds.plot(results, figure)
    from fairlane.views.drawing import show

    return show(results, figure, axes)


def html(results: Results) -> str | None:
    """Return the view of results in a notebook; None if they have none."""
    return kinds.html_of(results) if kinds.has_picture(results) else None


def plot_fabric(fabric: Fabric, axes: "Axes | Sequence[Axes] | None") -> Any:
    """Draw a fabric with Matplotlib."""
    from fairlane.views.drawing import draw_new
    from fairlane.views.drawing.fabric import draw

    return draw_new(fabric, "fabric", draw, axes)


def html_of_analysis(result: Analysis) -> str:
    """Return the view of an analysis in a notebook."""
    return notebook(analysis.view(result))
