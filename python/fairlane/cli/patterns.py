"""Who sends how much to whom: trace pattern, workload pattern."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fairlane.cli.command import add, completing, out_option
from fairlane.cli.describe import trace_app
from fairlane.cli.options import Assignments
from fairlane.inputs.code import allow_code
from fairlane.wording import plural

if TYPE_CHECKING:
    from fairlane.scenario.models import Job

__all__ = ["add_to"]

workload_app = typer.Typer(help="Communication patterns of workloads.", no_args_is_help=True)

_Picture = Annotated[Path | None, out_option("Draw the communication matrix too: .png, .svg or .pdf.")]
_AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, with the matrix.")]


def trace_pattern(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="An OTF2 or DUMPI archive, or a .tar.zst of one.", show_default=False)
    ],
    out: _Picture = None,
    as_json: _AsJson = False,
) -> None:
    """Who sends how much to whom in a recorded trace, and what kind of pattern that is.

    Nearest neighbour, many-to-many, or hybrid with the size of its local units; with the evidence.
    """
    from fairlane.inputs.problems import Problems
    from fairlane.scenario.models import Job
    from fairlane.workload.trace import read_trace

    trace = read_trace(file)
    try:
        _show(Job.model_validate({"trace": trace}), 0, str(trace), out, as_json=as_json)
    except Problems as problems:
        from fairlane.errors import ScenarioError

        raise ScenarioError(problems.problems) from None


def workload_pattern(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME",
            help="A workload, or file.py:ClassName.",
            show_default=False,
            autocompletion=completing("fairlane.workload:WORKLOADS"),
        ),
    ],
    ranks: Annotated[int, typer.Option(min=1, help="How many ranks.")] = 64,
    assignments: Assignments = None,
    out: _Picture = None,
    as_json: _AsJson = False,
) -> None:
    """Who sends how much to whom in a workload, and what kind of pattern that is.

    One period of its iterations is looked at. For example: fairlane workload pattern mini_amg --ranks 64
    --set message_size="8 KiB"
    """
    from fairlane.scenario.models import Job

    own = [f"workload.{assignment}" for assignment in assignments or ()]
    with allow_code():  # it is what was asked for
        job = Job.read({"ranks": ranks, "workload": {"name": name}}, own)
    _show(job, ranks, f"{job.kind}, {plural(ranks, 'rank')}", out, as_json=as_json)


def _show(job: "Job", ranks: int, title: str, out: Path | None, *, as_json: bool) -> None:
    from fairlane.cli.pattern_text import pattern_json, pattern_lines
    from fairlane.pattern import analyse, program_of

    found = analyse(program_of(job.source, ranks))
    if as_json:
        typer.echo(json.dumps(pattern_json(found), indent=2))
    else:
        for line in pattern_lines(found):
            typer.echo(line)
    if out:
        from fairlane.plot import pattern
        from fairlane.plot.files import write

        typer.echo(write(lambda: pattern.figure(found, title), out), err=as_json)


def add_to(app: typer.Typer) -> None:
    """Adds these commands; those about traces are added with the others about traces."""
    add(trace_app, trace_pattern, "pattern")
    add(workload_app, workload_pattern, "pattern")
    app.add_typer(workload_app, name="workload")
