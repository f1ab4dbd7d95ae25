"""Comparing two results by job."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

from typer import Argument

from fairlane.cli.command import Answer

if TYPE_CHECKING:
    from fairlane.cli.tables import Part, Row
    from fairlane.comparison import Comparison

_HELP = "The folder of a run or a study; FOLDER:TREATMENT is one treatment of a study, FOLDER:default its default runs."


def compare(
    a: Annotated[str, Argument(metavar="A", help=_HELP)],
    b: Annotated[str, Argument(metavar="B", help="What A is compared with, of the same kind.")],
) -> Answer:
    """Compare two runs, studies or treatments: the change of each job with its interval, and what is beyond noise."""
    from fairlane.comparison import compare as compared

    found = compared(a, b)
    facts = {
        "a": found.first.name,
        "b": found.second.name,
        "replicates": found.replicates,
        "moved": found.moved,
        "changes": found.table,
    }
    return Answer(facts, _parts(found))


def _parts(found: "Comparison") -> "Iterator[Part]":
    from rich.text import Text

    from fairlane.cli.tables import Column, Table, change, columns, long
    from fairlane.comparison.changes import LATENCY, summary
    from fairlane.wording import listed, seconds, with_half_width

    def changed(row: "Row") -> Text:
        shown = with_half_width(row["change"], row["change_low"], row["change_high"], change)
        certain = row["beyond_noise"]
        return Text(shown, style="dim" if not certain else "green" if row["change"] > 0 else "red")

    def verdict(row: "Row") -> str | None:
        if row["beyond_noise"] is None:
            return None
        better = "lower latency" if row["of"] == LATENCY else "faster"
        worse = "higher latency" if row["of"] == LATENCY else "slower"
        return (better if row["change"] > 0 else worse) if row["beyond_noise"] else "within noise"

    yield f"A: {found.first.name}"
    yield f"B: {found.second.name}"
    several = [
        Column(name, name, left=True)
        for name in ("condition", "treatment")
        if found.table[name].null_count() < found.table.height
    ]
    shown = [
        *several,
        Column("job", "name", left=True),
        Column("workload", "workload", left=True, wrap=True),
        *columns(seconds, before="A: time per\niteration", after="B: time per\niteration"),
        Column("change", changed),
        Column("verdict", verdict, left=True),
    ]
    over = {"iterations": "other iterations on the same hosts", "placement": "placements", "seed": "seeds"}
    about = f"Change of throughput, B against A. ±: 95% interval over {over[found.replicates]}."
    if (found.table["of"] == LATENCY).any():
        about += " Of jobs without iterations: mean message latency."
    yield Table(shown, found.table.to_dicts(), note=about)
    if found.overall is not None:
        mean = found.overall
        yield f"Mean over all rows: {with_half_width(mean.value, mean.low, mean.high, change)}"
    yield Text(summary(found), style="bold")
    if found.moved:
        words = (
            f"On other hosts in B: {listed(found.moved)}. What other placements would give is not part of the intervals"
        )
        yield long(f"{words}; two studies with several placements would show it.", "yellow")
    if found.only_in_one:
        yield long(f"Only in one of the two: {listed(found.only_in_one)}.", "yellow")
    if found.failed:
        yield long(f"Failed in one of the two, and not compared: {listed(found.failed)}.", "yellow")
