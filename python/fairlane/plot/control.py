"""What a controller gains from period to period: each job a line, their mean a thick one, adopted settings marked."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from matplotlib.figure import Figure

from fairlane.plot.style import INK, canvas, colours, percentages

if TYPE_CHECKING:
    from fairlane.controller import Outcome

__all__ = ["draw"]


def draw(outcomes: "Sequence[Outcome]", title: str) -> Figure:
    """The improvement over the default of the same period."""
    jobs = list(dict.fromkeys(job for outcome in outcomes for job in outcome.treated.jobs))
    figure = canvas(11, 5.5)
    axes = figure.add_subplot()
    for job, colour in colours(jobs).items():
        seen = [outcome for outcome in outcomes if job in outcome.treated.jobs]
        gains = [gain if (gain := outcome.improvement(job)) is not None else float("nan") for outcome in seen]
        axes.plot([outcome.period for outcome in seen], gains, color=colour, linewidth=0.9, alpha=0.7, label=job)
    means = [outcome.mean_improvement for outcome in outcomes]
    axes.plot([outcome.period for outcome in outcomes], means, color=INK, linewidth=2.4, label="mean")
    adopted = [(outcome.period, outcome.mean_improvement) for outcome in outcomes if outcome.accepted]
    if adopted:
        axes.scatter(*zip(*adopted, strict=True), color=INK, zorder=4, label="adopted")
    axes.axhline(0, color=INK, linestyle="--", linewidth=1.2)
    percentages(axes.yaxis, signed=True)
    axes.set_xlabel("period")
    axes.set_ylabel("Improvement over default")
    axes.grid(axis="y")
    axes.legend(frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5))
    figure.suptitle(title, x=0.012, ha="left", fontsize=16, fontweight="bold")
    return figure
