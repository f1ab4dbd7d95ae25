"""Advice: alternatives of rails, service level and placement for an application with neighbours, the best first."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial

from fairlane.core.wording import percent, plural, seconds, significant
from fairlane.study.shipped.advice.measure import MIN_MARKS
from fairlane.study.shipped.advice.results import Advice, name_of
from fairlane.views.charts import Axis, Layer, chart, described, drawing, hollow, whiskers
from fairlane.views.model import Chart, View, lines_of, provenance_of, remarks_of, title_of
from fairlane.views.rows import Rows
from fairlane.views.tables import Column, Row, Table, change, columns

PICTURES = {"advice": "time per iteration of alternatives, with intervals"}
"""Its pictures, and what they show."""
MOST_DRAWN = 10
"""Alternatives in the chart: the best ones, and the worst."""
_MS = 1e-3


def view(advices: Mapping[str, Advice], show: int = 5) -> View:
    """The alternatives, of which a terminal has the best ``show`` and the worst."""
    known = {name: advice for name, advice in advices.items() if advice.alternatives.height}
    return View(
        title=title_of(advices, "advice"),
        headline="\n".join(lines_of(advices, Advice.headline)),
        facts=[f"{name}: {fact}" if len(advices) > 1 else fact for name in known for fact in _facts(known[name])],
        parts=[part for advice in known.values() for part in _parts(advice, show)],
        remarks=remarks_of(advices, lambda advice: [*advice.repeated(), *_remarks(advice)]),
        provenance=provenance_of(advices),
    )


def _parts(advice: Advice, show: int) -> Iterator[Chart | Table]:
    rows = advice.alternatives.to_dicts()
    without = "incomplete" if advice.meta["partial"] else "too few iterations"
    worst = without if rows[-1]["iteration_ms"] is None else seconds(rows[-1]["iteration_ms"] * _MS)
    said = f"{advice.headline()}; the worst of {len(rows)}: {name_of(rows[-1])}, {worst}."
    yield from _chart(advice, rows, said)
    yield _table(rows, show, said, without)


def _facts(advice: Advice) -> Iterator[str]:
    job, seeds = advice.meta["job"], len(advice.meta["seeds"])
    many = f"{job}: {advice.alternatives.height} alternatives"
    within = f"the interval is for {advice.meta['coverage']:.0%} of run times"
    if advice.meta["by_model"]:
        yield f"{many}, by the model, from one isolated simulation of {job} and one of its neighbours; {within}"
        yield "neighbours are simulated, with the advised alternative only"
        return
    each = f"simulated with {seeds} seeds each" if seeds > 1 else "simulated with one seed each, so without an interval"
    yield f"{many}, {each}, at least {plural(advice.iterations, 'iteration')}; {within} with other seeds"
    yield f"neighbours: change of their rates by {job}"


def _remarks(advice: Advice) -> Iterator[str]:
    few = advice.neighbour_iterations
    if not advice.meta["by_model"] and few is not None and few < MIN_MARKS:
        only = f"One of the neighbours has done {plural(few, 'iteration')} only"
        yield f"{only}: its change is roughly that of bytes; longer simulations are more exact."
    check = advice.checked
    if advice.meta["partial"]:
        yield "Interrupted: alternatives are ranked by the simulations that are complete, and are not checked."
    elif check is None and advice.meta["check"]:
        yield f"Not checked: in {advice.meta['check']} no alternative completed two iterations."
    if check is None:
        return
    yield f"Checked by simulations of {check.length} with {plural(check.seeds, 'other seed')}:"
    rank = f"the advice has rank {check.rank} of {check.table.height}"
    yield f"  {rank}; its regret is {check.regret:.1%} against the best"
    yield f"  ({check.best}), that of a random alternative {check.random_regret:.1%}"
    if check.coverage == check.coverage:  # not so without intervals
        yield f"  {check.coverage:.0%} of these run times are in their intervals"


def _table(rows: Sequence[Row], show: int, said: str, without: str) -> Table:
    """The best alternatives, and the worst one; ``without`` stands in place of a time that is not known."""

    def time(key: str, without: str | None, row: Row) -> str | None:
        return without if row[key] is None else f"{significant(row[key], 4)} ms"

    def interval(row: Row) -> str | None:
        ends = [row["low_ms"], row["high_ms"]]
        shown = [significant(end, 4) for end in ends if end is not None]
        return f"{' to '.join(shown)} ms" if len(set(shown)) > 1 else None

    shown = [*rows[:show], *([rows[-1]] if len(rows) > show else [])]
    figures = [
        Column("iteration", partial(time, "iteration_ms", without)),
        Column("interval", interval),
        Column("isolated", partial(time, "isolated_ms", None)),
        Column("neighbours", "neighbours", change),
    ]
    heads = [*columns(rails="rails", service_level="level"), Column("placement", "placement", left=True)]
    note = f"The last is the worst; {len(rows) - show - 1} between are not shown." if len(rows) > show else ""
    return Table([*heads, *figures], shown, note=note, sentence=said)


def _chart(advice: Advice, rows: Sequence[Row], said: str) -> Iterator[Chart]:
    known = [row for row in rows if row["iteration_ms"] is not None]
    shown = known if len(known) <= MOST_DRAWN else [*known[: MOST_DRAWN - 1], known[-1]]
    if not shown:
        return
    rest = f" {len(known) - len(shown)} before the last are left out." if len(known) > len(shown) else ""
    isolated = " Hollow: isolated." if any(row["isolated_ms"] for row in shown) else ""
    names = [name_of(row) for row in shown]
    yield Chart(
        "advice",
        "Time per iteration",
        drawing(Rows(names).height, _layers(shown, Rows(names)), zoom=("x",)),
        said,
        f"Bars: intervals for {advice.meta['coverage']:.0%} of run times.{isolated}{rest}",
        rows,
        wide=True,
    )


def _layers(rows: Sequence[Row], places: Rows) -> Iterator[Layer]:
    keys = {"time": "iteration_ms", "low": "low_ms", "high": "high_ms", "isolated": "isolated_ms"}
    times = ({name: None if row[key] is None else row[key] * _MS for name, key in keys.items()} for row in rows)
    placed = [
        places.place({**row, **of, "name": name_of(row)}, name_of(row)) for row, of in zip(rows, times, strict=True)
    ]
    axis = Axis.over(placed, " ".join(keys), "Time per iteration", "time", zero=False)
    told = columns(seconds, time="iteration", low="from", high="to", isolated="isolated")
    neighbours = Column("neighbours", "neighbours", percent)
    shown, tooltip = described(placed, [Column("alternative", "name"), *told, neighbours])
    base = chart(shown).encode(y=places.y("at"))
    yield whiskers(base, axis, "low", "high", vertical=False)
    if any(row["isolated"] is not None for row in shown):
        apart = base.transform_filter("isValid(datum.isolated)").encode(x=axis.x("isolated"))
        yield hollow(apart, tooltip=tooltip)
    yield base.mark_point(size=70).encode(x=axis.x("time"), tooltip=tooltip)
