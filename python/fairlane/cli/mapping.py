"""Robustness maps of papers: reproduce --robustness, and robustness for several papers together."""

from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument

from fairlane.cli.command import Answer, ExitCode, out_option
from fairlane.cli.options import folder_for, refused, report_damaged, stored

if TYPE_CHECKING:
    import polars as pl

    from fairlane.cli.terminal import Part
    from fairlane.reproduce.robustness_output import Map


def robustness(
    folders: Annotated[list[Path], Argument(metavar="FOLDER...", help="Folders of reproduce --robustness.")],
    out: Annotated[Path | None, out_option("Folder of the figure and the table.", "DIR")] = None,
) -> Answer:
    """Show what several papers' clauses depend on: one figure and one table of their robustness maps."""
    from fairlane.reproduce.maps import FILE
    from fairlane.reproduce.robustness_output import CLAUSES, combine

    folder = out or Path("runs") / "robustness"
    found = combine(folders, folder)
    return Answer(found.to_dicts(), _table(found), folder, files=[folder / CLAUSES, folder / FILE])


def draw_up(
    paper: str,
    folder: Path | None,
    *,
    space: str | None,
    points: int | None,
    cpu_hours: float | None,
    earlier: Sequence[Path],
    resume: bool,
    workers: int | None,
    dask: str | None,
    quiet: bool,
) -> Answer:
    """Runs the points of a paper's robustness map and shows it: what ``reproduce --robustness`` does."""
    from fairlane.reproduce import folder_of
    from fairlane.reproduce.robustness import POINTS
    from fairlane.reproduce.robustness_output import check_points, map_robustness
    from fairlane.tasks.progress import TaskProgress
    from fairlane.tasks.store import Store

    points = POINTS if points is None else points
    check_points(points, cpu_hours)
    of = folder_of(paper)
    out = folder or Path("runs") / f"{of.name}-robustness{f'-{space}' if space else ''}"
    kept = Store(out)
    if kept.digests() and not resume:
        raise refused("--out", "has cells already: --resume goes on with them", str(out))
    if kept.foreign():
        raise refused("--out", "holds other files", str(out), "a folder that is new or empty")
    with folder_for(out), TaskProgress(wanted=not quiet) as shown:
        found, damaged = map_robustness(
            of,
            out,
            shown,
            space=space,
            points=points,
            cpu_hours=cpu_hours,
            earlier=earlier,
            workers=workers,
            dask=dask,
        )
    report_damaged(damaged, out)
    return Answer(
        {"folder": out, "clauses": found.clauses.to_dicts(), "failed": found.failed},
        chain(_table(found.clauses), _notes(found), stored(out)),
        out,
        code=ExitCode.RUN_FAILED if found.failed else ExitCode.DONE,
    )


def _table(clauses: "pl.DataFrame") -> "Iterator[Part]":
    from fairlane.wording import percent

    for row in clauses.iter_rows(named=True):
        interval = f"{percent(row['share_low'])} to {percent(row['share_high'])}"
        yield f"{row['claim']}, clause {row['clause']}: {row['says']}"
        words = f"  {row['verdict']}: holds at {row['held']} of {row['points']} points ({interval})"
        yield f"{words}, at the defaults {row['default_held']} of {row['default_points']}"
        if row["decided_by"]:
            yield f"  decided by {row['decided_by']}"


def _notes(found: "Map") -> Iterator[str]:
    from fairlane.reproduce.robustness_output import headlines

    yield ""
    yield from headlines(found)
    yield from (f"left out: {words}" for words in found.failed)
