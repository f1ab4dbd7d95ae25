"""Results as one HTML page: report."""

from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from fairlane.cli.command import Answer, out_option

FILE = "report.html"


def report(
    results: Annotated[
        Path,
        Argument(
            metavar="RESULTS", help="The folder of a run, a study, a sweep of loads, a reproduction or a schedule."
        ),
    ],
    out: Annotated[Path | None, out_option(f"The HTML file; by default {FILE} in the results' folder.")] = None,
    compare: Annotated[
        Path | None, Option(metavar="OTHER", help="A folder of the same kind: shows the differences to it.")
    ] = None,
) -> Answer:
    """Write results as one interactive HTML file, which opens from disk and needs no network.

    Of a run it shows the fabric, who delays whom on which links, and what the jobs measured; of a study the effects of
    its treatments; of a sweep of loads throughput and latency; of a reproduction its claims and figures; of a schedule
    the jobs over time, their waits and the utilisation. For example: fairlane report runs/quickstart --compare
    runs/before
    """
    from fairlane.report import load_results, write_report

    loaded = load_results(results, "RESULTS")
    other = load_results(compare, "--compare") if compare else None
    path = write_report(loaded, out or results / FILE, other, compare_name=str(compare or ""))
    return Answer({"page": path, "bytes": path.stat().st_size}, [str(path)], path)
