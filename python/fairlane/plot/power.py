"""How fast sockets run under their caps: a dot for every socket of each job's hosts."""

from fairlane.plot.boxes import draw_strips
from fairlane.plot.panels import Drawn, Given, Panels
from fairlane.plot.style import colours, percentages
from fairlane.results.run import Run


def draw(run: Run, axes: Given = None) -> Drawn | None:
    """A row for each job; None where the run knows nothing of power."""
    if run.power is None or not run.power.height:
        return None
    from fairlane.power import by_job

    jobs = by_job(run.power)
    names = jobs["name"].to_list()
    panels = Panels.of(axes, (12, 2.4 + 0.9 * len(names)))
    [panel] = panels.axes
    groups = [run.power.filter(run.power["name"] == name)["frequency_share"].to_numpy() for name in names]
    draw_strips(panel, groups, list(colours(names).values()))
    caps = ["no cap" if cap is None else f"{cap:g} W" for cap in jobs["cap_w"].to_list()]
    panel.set_yticks(range(len(names)), [f"{name}\n{cap}" for name, cap in zip(names, caps, strict=True)])
    panel.set(xlabel="Frequency of a socket, as a share of the full one", xlim=(None, 1.01))
    percentages(panel.xaxis)
    panel.grid(axis="x")
    slowest = jobs.sort("least_frequency", "name").row(0, named=True)
    title = "No socket is slowed down by its cap"
    if (share := slowest["least_frequency"]) < 1:
        title = f"{slowest['name']}: at {slowest['cap_w']:g} W its slowest socket runs at {share:.0%} of its frequency"
    return panels.headline_of_run(
        title, run, "A dot is a socket; box: quartiles and median, whiskers: the slowest and the fastest."
    )
