"""A run as one HTML page: report."""

from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from fairlane.cli.command import Answer, out_option

FILE = "report.html"


def report(
    run: Annotated[Path, Argument(metavar="RUN", help="The folder of a run.")],
    out: Annotated[Path | None, out_option(f"The HTML file; by default {FILE} in the run's folder.")] = None,
    compare: Annotated[
        Path | None, Option(metavar="OTHER", help="The folder of another run: shows the differences to it.")
    ] = None,
) -> Answer:
    """Write a run as one interactive HTML file: its fabric, who delays whom on which links, what the jobs measured.

    The file opens from disk and needs no network. For example: fairlane report runs/quickstart --compare runs/before
    """
    from fairlane.report import load_run, write_report

    loaded = load_run(run, "RUN")
    other = load_run(compare, "--compare") if compare else None
    path = write_report(loaded, out or run / FILE, other, compare_name=str(compare or ""))
    return Answer({"page": path, "bytes": path.stat().st_size}, [str(path)], path)
