"""A figure: how far each job came."""

from fairlane import Run
from fairlane.views.drawing.runs import Drawn, Given, Panels


def draw(run: Run, axes: Given = None) -> Drawn:
    """Iterations of every job, a bar each: in a new figure, or on axes of the caller's."""
    panels = Panels.of(axes, (6, 1.8 + 0.4 * run.jobs.height))
    [panel] = panels.axes
    panel.barh(run.jobs["name"], run.jobs["iterations"])
    panel.invert_yaxis()
    panel.set_xlabel("iterations")
    panels.headline_of_run("How far each job came", run)
    return panels.drawn
