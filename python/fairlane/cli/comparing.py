"""Comparing two results by job."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated

from typer import Argument

from fairlane.cli.command import Answer

if TYPE_CHECKING:
    from fairlane.cli.terminal import Part
    from fairlane.comparison import Comparison
    from fairlane.views.tables import Row

_MOST_KEYS = 8
"""Of scenarios, that are listed where they differ."""
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
        "differs": found.differs,
        "without": found.without,
        "points": found.points,
        "changes": found.table,
    }
    return Answer(facts, _parts(found))


def _parts(found: "Comparison") -> "Iterator[Part]":
    from rich.text import Text

    from fairlane.comparison.changes import LATENCY, summary
    from fairlane.views.tables import Column, Table, change, columns
    from fairlane.wording import seconds, with_half_width

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
    latencies = (found.table["of"] == LATENCY).any()
    of = "time per\niteration, or latency" if latencies else "time per\niteration"
    shown = [
        *several,
        Column("job", "name", left=True),
        Column("workload", "workload", left=True, wrap=True),
        *columns(seconds, before=f"A: {of}", after=f"B: {of}"),
        Column("change", changed),
        Column("verdict", verdict, left=True),
    ]
    over = {"iterations": "other iterations on the same hosts", "placement": "placements", "seed": "seeds"}
    about = f"Change of throughput, B against A. ±: 95% interval over {over[found.replicates]}."
    if latencies:
        about += " Of jobs without iterations: mean message latency; positive where it is lower in B."
    yield Table(shown, found.table.to_dicts(), note=about)
    if found.overall is not None:
        mean = found.overall
        shown_mean = with_half_width(mean.value, mean.low, mean.high, change)
        yield f"Mean of all jobs over {over[found.replicates]}: {shown_mean}"
    yield Text(summary(found), style="bold")
    yield from _notes(found)


def _notes(found: "Comparison") -> "Iterator[Part]":
    """What limits the comparison."""
    from fairlane.cli.terminal import long
    from fairlane.wording import listed, plural

    if found.differs:
        yield long(f"The scenarios differ in {_several(found.differs)}.", "dim")
    if found.points is not None and found.points[0] < max(found.points):
        common, first, second = found.points
        yield long(f"Compared at the {plural(common, 'point')} that both have; A has {first}, B {second}.", "yellow")
    if found.without:
        yield long(f"Nothing to compare, no iterations or messages in common: {listed(found.without)}.", "yellow")
    if found.moved:
        words = (
            f"On other hosts in B: {listed(found.moved)}. What other placements would give is not part of the intervals"
        )
        yield long(f"{words}; two studies with several placements would show it.", "yellow")
    if found.only_in_one:
        yield long(f"Only in one of the two: {listed(found.only_in_one)}.", "yellow")
    if found.failed:
        yield long(f"Failed in one of the two, and not compared: {listed(found.failed)}.", "yellow")


def _several(keys: "Sequence[str]") -> str:
    """The first keys, and how many more there are."""
    from fairlane.wording import listed, plural

    shown = [*keys[:_MOST_KEYS]]
    return listed([*shown, f"{plural(len(keys) - len(shown), 'further key')}"] if len(keys) > len(shown) else shown)
