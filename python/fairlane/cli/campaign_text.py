"""What campaign fit, predict, compare and map print."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from fairlane.cli.terminal import Part
from fairlane.views.tables import Column, Table, fixed, with_interval, with_ratio
from fairlane.wording import data_size, percent, plural, seconds

if TYPE_CHECKING:
    from fairlane.campaign.comparing import Comparison
    from fairlane.campaign.robustness import Mapped


_CELL = (
    Column("victim, aggressor", lambda row: f"{row['victim']}, {row['aggressor']}"),
    Column("nodes", "nodes"),
    Column("size", "msg_bytes", data_size),
)


def fitted(rows: list[dict[str, Any]], shown: dict[str, str], error: float) -> Iterator[Part]:
    """Isolated cells as measured and simulated, and the fitted values."""
    times = [Column(name, name, seconds) for name in ("measured", "simulated")]
    yield Table([Column("cell", "cell"), *times, Column("ratio", "ratio", fixed(2))], rows, "Isolated runs: medians")
    yield f"Mean error: {percent(error)}"
    yield from (f"{name} = {value}" for name, value in shown.items())


def predicted(rows: list[dict[str, Any]]) -> Iterator[Part]:
    """Predicted times of cells."""
    columns = [
        *_CELL,
        *(Column(name, with_interval(f"{name}_s", seconds)) for name in ("median", "mean", "p99")),
        Column("iterations", "iterations"),
    ]
    yield Table(columns, rows, "Predicted time of an iteration")


def compared(found: "Comparison") -> Iterator[Part]:
    """Measured and predicted times of cells, their ratios to isolated runs, and the bars."""

    def pair(name: str) -> list[Column]:
        measured = Column(f"{name}\nmeasured", f"measured_{name}_s", seconds)
        return [measured, Column("\npredicted", f"predicted_{name}_s", seconds)]

    columns = [
        *_CELL,
        *pair("median"),
        *pair("mean"),
        *pair("p99"),
        Column("ratio of means\nmeasured", "measured_mean_ratio", fixed(2)),
        Column("\npredicted", with_ratio("predicted_mean_ratio", fixed(2))),
        Column("verdict", "verdict", left=True),
    ]
    yield Table(columns, found.table.to_dicts(), f"Measured, and predicted by {found.registration.name}")
    for name, bars in found.parts.items():
        yield f"Cells that were {name}:"
        for bar in bars:
            yield f"  {'–' if bar.holds is None else 'yes' if bar.holds else 'no'}  {bar.what}: {bar.text}"
    yield f"Measured figures: {'; '.join(found.cells.campaign.sources)}."


def mapped(found: "Mapped") -> Iterator[Part]:
    """Of each cell the share of points at which it is predicted, and what decides."""
    indices = found.indices.to_dicts()
    for row in found.cells.iter_rows(named=True):
        yield f"{row['says']}: predicted at {percent(row['share'])} of the points"
        of = sorted(
            (it for it in indices if it["claim"] == row["claim"] and it["beyond_chance"]), key=lambda it: -it["index"]
        )
        if of:
            yield "  decided by " + ", ".join(f"{it['parameter']} ({it['index']:.2f})" for it in of)
    for words, count in found.excluded.items():
        yield f"{plural(count, 'further point')} cannot be: {words}"
    yield from (f"left out: {words}" for words in found.failed)
