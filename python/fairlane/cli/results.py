"""Folders of results: plot, query, report, serve and compare."""

import sys
from pathlib import Path
from typing import Annotated, Literal

import typer
from typer import Argument, Option

import fairlane
from fairlane.cli.command import Answer, AsJson, completing, out_option, print_json
from fairlane.cli.options import AllowCode, folder_for, refused, report
from fairlane.inputs import code
from fairlane.lab.serve import Server
from fairlane.lab.serve import serve as start_server
from fairlane.study import folders
from fairlane.views import comparison
from fairlane.views import kinds as views
from fairlane.views import lines as answers
from fairlane.views.style import Look

FILE = "report.html"
_COMPARED = (
    "The folder of a run or a study; FOLDER:TREATMENT is one treatment of a study, FOLDER:default its default runs."
)


def plot(
    results: Annotated[
        list[Path],
        Argument(metavar="RESULTS...", help="The folder of results; several of a kind are drawn in one figure."),
    ],
    figure: Annotated[
        list[str] | None,
        Option(
            metavar="NAME",
            help="Only this figure (see fairlane list figures), or file.py:function; can be given many times.",
            autocompletion=completing("fairlane.cli.registries:entries_of", "figures"),
        ),
    ] = None,
    theme: Annotated[
        Literal["light", "dark"], Option(help="Dark ink on white, or light ink on a dark ground.")
    ] = "light",
    transparent: Annotated[bool, Option("--transparent", help="Leave out the background.")] = False,
    format: Annotated[Literal["png", "svg", "pdf"], Option(help="Format of the files.")] = "png",
    out: Annotated[
        Path | None, out_option("Folder of the files; by default that of the results, of several this one.", "DIR")
    ] = None,
    allow_code: AllowCode = False,
) -> Answer:
    """Draw the figures of results again from their tables.

    Prints where they are. Several results of a kind, as load sweeps, are drawn in one figure. For example: fairlane
    plot runs/minimal runs/valiant runs/ugal --format svg --theme dark
    """
    look = Look(theme, transparent, format)
    every = [folders.load(folder) for folder in results]
    several, first = len(every) > 1, every[0]
    viewed = [name for name in figure or () if several or views.has_picture(first, name)]
    others = [name for name in figure or () if name not in viewed]
    with folder_for(out), code.allow_code(allow_code):
        paths = []
        if viewed or not others:
            paths += views.draw(every, viewed, look, out)
        if others:
            from fairlane.views.drawing import draw_figures

            paths += draw_figures(first, others, look, out)
    return Answer({"figures": paths}, map(str, paths))


def query(
    run: Annotated[Path, Argument(metavar="RUN", help="The folder of a run, a study or a sweep of loads.")],
    sql: Annotated[
        str,
        Argument(
            metavar="SQL", help="A SELECT over its tables, in a run jobs, ranks, calls, ports, interference and more."
        ),
    ],
) -> Answer:
    """Ask the tables of a run, a study or a sweep of loads a question in SQL."""
    table = folders.query(run, sql)
    return Answer(table, [answers.answer_table(table) if sys.stdout.isatty() else answers.answer_csv(table)])


def write_page(
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
    from fairlane.views.report import load_results, write_report

    loaded = load_results(results, "RESULTS")
    other = load_results(compare, "--compare") if compare else None
    path = write_report(loaded, out or results / FILE, other, compare_name=str(compare or ""))
    return Answer({"page": path, "bytes": path.stat().st_size}, [str(path)], path)


def serve(
    folder: Annotated[Path, Argument(metavar="FOLDER", help="The folder with results in it, e.g. runs.")],
    port: Annotated[int, Option(help="The port on 127.0.0.1; 0 for a free one.")] = 0,
    out: Annotated[Path | None, out_option("Write the address to FILE, readable by its owner only.")] = None,
    as_json: AsJson = False,
    quiet: Annotated[bool, Option("--quiet", "-q", help="Print only the address.")] = False,
) -> None:
    """Show a folder of results, and runs in progress, in the browser of this machine.

    Prints an address with a token; whoever has it can see the results and stop runs in progress. Ends on Ctrl-C or
    SIGTERM. For example: fairlane serve runs
    """
    written: list[Path] = []

    def ready(server: Server) -> None:
        if out is not None:
            _write_address(out, server.url)
            written.append(out)
        elif as_json:
            print_json({"url": server.url, "port": server.port})
        else:
            typer.echo(server.url)
        if not quiet:
            report(f"{folder} is served on port {server.port}; Ctrl-C ends it")

    try:
        start_server(folder, port, ready)
    finally:
        for file in written:
            file.unlink(missing_ok=True)


def _write_address(file: Path, url: str) -> None:
    """Writes the address to a new file that nobody else can read."""
    try:
        file.unlink(missing_ok=True)
        file.touch(0o600, exist_ok=False)
        file.write_text(f"{url}\n", encoding="utf-8")
    except OSError as error:
        raise refused("--out", f"cannot be written: {error.strerror}", str(file)) from None


def compare(
    a: Annotated[str, Argument(metavar="A", help=_COMPARED)],
    b: Annotated[str, Argument(metavar="B", help="What A is compared with, of the same kind.")],
) -> Answer:
    """Compare two runs, studies or treatments: the change of each job with its interval, and what is beyond noise."""
    compared = fairlane.compare(a, b)
    facts = {
        "a": compared.first.name,
        "b": compared.second.name,
        "replicates": compared.replicates,
        "moved": compared.moved,
        "differs": compared.differs,
        "without": compared.without,
        "points": compared.points,
        "changes": compared.table,
    }
    return Answer(facts, [comparison.view(compared)])
