"""How long iterations take: a box out to 99% for each job, what is beyond, and the mean with its interval."""

from collections.abc import Sequence

from fairlane.plot.boxes import draw_boxes, draw_means
from fairlane.plot.panels import Drawn, Given, Panels
from fairlane.plot.style import colours, plain_logarithms
from fairlane.results.run import Run
from fairlane.results.views import distribution
from fairlane.statistics import Estimate
from fairlane.views.scales import is_wide
from fairlane.wording import seconds, time_unit


def draw(run: Run, axes: Given = None) -> Drawn | None:
    """A row for each job whose iterations were kept; None without any."""
    if run.iterations is None or not run.iterations["time_s"].count():
        return None
    known = run.iterations.drop_nulls("time_s")
    names = known["name"].unique(maintain_order=True).to_list()
    table = distribution(run.iterations)
    shortest, longest = float(table["min"].to_numpy().min()), float(table["max"].to_numpy().max())
    wide = is_wide(shortest, longest)
    factor, unit = time_unit(shortest if wide else float(table["q99"].to_numpy().max()))
    panels = Panels.of(axes, (12, 2.2 + 0.9 * len(names)))
    [panel] = panels.axes
    groups = [known.filter(known["name"] == name)["time_s"].to_numpy() / factor for name in names]
    draw_boxes(panel, groups, list(colours(names).values()), horizontal=True)
    draw_means(panel, _means(run, names, factor), range(len(names)), horizontal=True)
    panel.set_yticks(range(len(names)), names)
    panel.set_xlabel(f"Time per iteration [{unit}]" + (", logarithmic" if wide else ""))
    if wide:
        plain_logarithms(panel.xaxis, shortest / factor, longest / factor)
    else:
        panel.set_xlim(left=0)
    worst = table.with_columns(ratio=table["max"] / table["q50"]).sort("ratio", "name").row(-1, named=True)
    title = f"{worst['name']}: median {seconds(worst['q50'])}, the slowest iteration {worst['ratio']:.1f} times that"
    boxes = "Boxes, over all ranks: quartiles and median; whiskers: 1% and 99%; dots: iterations beyond."
    means = "Diamonds: mean time per iteration of the job (of its last rank), with its 95% interval."
    return panels.headline_of_run(title, run, f"{boxes} {means}")


def _means(run: Run, names: Sequence[str], factor: float) -> list[Estimate | None]:
    """The mean time per iteration of each job, in units of ``factor`` seconds; None where it has none."""
    columns = [f"seconds_per_iteration{end}" for end in ("", "_low", "_high")]
    known = {name: values for name, *values in run.jobs.select("name", *columns).iter_rows()}
    scaled = ([None if it is None else it / factor for it in known[name]] for name in names)
    return [None if value is None else Estimate(value, low, high) for value, low, high in scaled]
