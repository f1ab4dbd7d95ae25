"""Queueing delay between jobs on axes of the caller's; files, pages and notebooks have ``views.run.interference``."""

import numpy as np
from matplotlib.colors import LogNorm, Normalize
from matplotlib.ticker import FuncFormatter

from fairlane.plot.heat import draw_heat
from fairlane.plot.panels import Drawn, Given, Panels
from fairlane.results.culprit import HINT, headline
from fairlane.results.run import Run
from fairlane.results.views import Interference
from fairlane.views.heat import Heat
from fairlane.wording import significant


def draw(run: Run, axes: Given = None) -> Drawn | None:
    """Rows are victims, columns aggressors; None when the run did not observe it or no packet waited."""
    matrix = Interference.of(run)
    if not matrix.others.any():
        return None
    count = len(matrix.labels)
    panels = Panels.of(axes, (max(9.0, 4.8 + 0.5 * count), max(4.5, 2.8 + 0.5 * count)))
    [panel] = panels.axes
    shares = matrix.share(matrix.others)
    scale = Heat.of(shares.ravel())
    norm = LogNorm(scale.low, scale.high, clip=True) if scale.log else Normalize(0, scale.high)
    label = "queueing delay, % of the victim's rank time"
    percents = FuncFormatter(lambda value, _: significant(100 * value))
    draw_heat(panel, np.ma.masked_array(shares, np.eye(count, dtype=bool)), norm, label=label, ticks=percents)
    panel.set_xticks(range(count), matrix.labels, rotation=40, ha="right", rotation_mode="anchor")
    panel.set_yticks(range(count), matrix.labels)
    panel.set(xlabel="aggressor", ylabel="victim")
    return panels.headline_of_run(headline(run) or "", run, HINT)
