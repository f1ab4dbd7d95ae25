"""What campaign fit, predict and map print."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from fairlane.cli.terminal import Part
from fairlane.views.tables import Column, Table, fixed, with_interval
from fairlane.wording import percent, plural, seconds

if TYPE_CHECKING:
    from fairlane.campaign.robustness import Mapped


def fitted(rows: list[dict[str, Any]], shown: dict[str, str], error: float) -> Iterator[Part]:
    """Isolated cells as measured and simulated, and the fitted values."""
    times = [Column(name, name, seconds) for name in ("measured", "simulated")]
    yield Table([Column("cell", "cell"), *times, Column("ratio", "ratio", fixed(2))], rows, "Isolated runs: medians")
    yield f"Mean error: {percent(error)}"
    yield from (f"{name} = {value}" for name, value in shown.items())


def predicted(rows: list[dict[str, Any]]) -> Iterator[Part]:
    """Predicted times of cells."""
    from fairlane.campaign.view import CELL

    columns = [
        *CELL,
        *(Column(name, with_interval(f"{name}_s", seconds)) for name in ("median", "mean", "p99")),
        Column("iterations", "iterations"),
    ]
    yield Table(columns, rows, "Predicted time of an iteration")


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
