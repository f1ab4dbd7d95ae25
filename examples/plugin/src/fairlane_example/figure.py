"""A figure: how far each job came."""

from matplotlib.figure import Figure

from fairlane import Run


def draw(run: Run) -> Figure:
    """Iterations of every job, a bar each."""
    figure = Figure(figsize=(6, 0.6 + 0.4 * run.jobs.height), layout="constrained")
    axes = figure.add_subplot()
    axes.barh(run.jobs["name"], run.jobs["iterations"])
    axes.invert_yaxis()
    axes.set_xlabel("iterations")
    return figure
