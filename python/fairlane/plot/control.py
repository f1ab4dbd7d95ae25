"""What a controller gains from period to period: each job a line, their mean a thick one, adopted settings marked."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from matplotlib.ticker import MaxNLocator

from fairlane.plot.panels import Drawn, Given, Panels
from fairlane.plot.style import INK, colours, percentages

if TYPE_CHECKING:
    from fairlane.controller import Outcome


def draw(outcomes: "Sequence[Outcome]", title: str, axes: Given = None) -> Drawn:
    """The improvement over the default of the same period."""
    jobs = list(dict.fromkeys(job for outcome in outcomes for job in outcome.treated.jobs))
    panels = Panels.of(axes, (11, 5.5))
    [panel] = panels.axes
    for job, colour in colours(jobs).items():
        seen = [outcome for outcome in outcomes if job in outcome.treated.jobs]
        gains = [gain if (gain := outcome.improvement(job)) is not None else float("nan") for outcome in seen]
        panel.plot([outcome.period for outcome in seen], gains, color=colour, linewidth=0.9, alpha=0.7, label=job)
    means = [outcome.mean_improvement for outcome in outcomes]
    panel.plot([outcome.period for outcome in outcomes], means, color=INK, linewidth=2.4, label="mean")
    adopted = [(outcome.period, outcome.mean_improvement) for outcome in outcomes if outcome.accepted]
    if adopted:
        panel.scatter(*zip(*adopted, strict=True), color=INK, zorder=4, label="adopted")
    panel.axhline(0, color=INK, linestyle="--", linewidth=1.2)
    percentages(panel.yaxis, signed=True)
    panel.set(xlabel="period", ylabel="Improvement over default")
    panel.xaxis.set_major_locator(MaxNLocator(integer=True))
    panel.grid(axis="y")
    panel.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
    return panels.headline(title, "Throughput of each job against its default run of the same period.")
