"""Robustness maps of papers: reproduce --robustness, and robustness for several papers together."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from typer import Argument

from fairlane.cli.command import Answer, ExitCode, out_option
from fairlane.cli.options import folder_for, refused, report_damaged


def robustness(
    folders: Annotated[list[Path], Argument(metavar="FOLDER...", help="Folders of reproduce --robustness.")],
    out: Annotated[Path | None, out_option("Folder of the figure and the table.", "DIR")] = None,
) -> Answer:
    """Show what several papers' clauses depend on: one figure and one table of their robustness maps."""
    from fairlane.cli.terminal import parts_of
    from fairlane.reproduce.robustness_output import CLAUSES, PICTURE, combine
    from fairlane.views.robustness import papers

    folder = out or Path("runs") / "robustness"
    found = combine(folders, folder)
    return Answer(
        found.to_dicts(), parts_of(papers(found), None), folder, files=[folder / CLAUSES, folder / f"{PICTURE}.png"]
    )


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
    from fairlane.cli.terminal import parts_of
    from fairlane.reproduce import folder_of
    from fairlane.reproduce.robustness import POINTS
    from fairlane.reproduce.robustness_output import check_points, map_robustness
    from fairlane.tasks.progress import TaskProgress
    from fairlane.tasks.store import Store
    from fairlane.views.kinds import view_of

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
        parts_of(view_of([found.results]), out),
        out,
        code=ExitCode.RUN_FAILED if found.failed else ExitCode.DONE,
    )
