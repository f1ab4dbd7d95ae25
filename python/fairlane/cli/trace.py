"""Recorded traces, and who sends how much to whom: trace describe, trace pattern, workload pattern."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

from typer import Argument, Option

from fairlane.cli.command import Answer, completing, out_option
from fairlane.cli.options import Assignments
from fairlane.core.wording import plural
from fairlane.inputs.code import allow_code
from fairlane.inputs.problems import refusing
from fairlane.model.pattern import Pattern, analyse, program_of
from fairlane.model.scenario.models import Job
from fairlane.model.workload.trace import read_trace

_Picture = Annotated[Path | None, out_option("Draw the communication matrix too: .png, .svg, .pdf or .html.")]
_Archive = Annotated[
    Path,
    Argument(
        metavar="FILE", help="A trace (OTF2, DUMPI, GOAL, Chakra, SimAI), a list of flows (htsim, ns-3), or a .tar.zst."
    ),
]


def describe(file: _Archive) -> Answer:
    """Ranks, events, calls and bytes of a recorded trace.

    Also its collectives, communicators and neighbours, and how much of its CPU time was computation.
    """
    description = read_trace(file).describe()
    from fairlane.views.pattern import trace_view

    return Answer(description, [trace_view(description, str(file))])


def pattern(file: _Archive, out: _Picture = None) -> Answer:
    """Who sends how much to whom in a recorded trace, and what kind of pattern that is.

    Nearest neighbour, many-to-many, or hybrid with the size of its local units; with the evidence.
    """
    trace = read_trace(file)
    with refusing():
        return _answer(Job.model_validate({"trace": trace}), 0, str(trace), out)


def workload_pattern(
    name: Annotated[
        str,
        Argument(
            metavar="NAME",
            help="A workload, or file.py:ClassName.",
            autocompletion=completing("fairlane.model.workload:WORKLOADS"),
        ),
    ],
    ranks: Annotated[int, Option(min=1, help="How many ranks.")] = 64,
    assignments: Assignments = None,
    out: _Picture = None,
) -> Answer:
    """Who sends how much to whom in a workload, and what kind of pattern that is.

    One period of its iterations is looked at. For example: fairlane workload pattern mini_amg --ranks 64
    --set message_size="8 KiB"
    """
    settings = [f"workload.{assignment}" for assignment in assignments or ()]
    with allow_code():  # it is what was asked for
        job = Job.read({"ranks": ranks, "workload": {"name": name}}, settings)
    return _answer(job, ranks, f"{job.kind}, {plural(ranks, 'rank')}", out)


def _answer(job: Job, ranks: int, title: str, out: Path | None) -> Answer:
    from fairlane.views.kinds import write
    from fairlane.views.pattern import view as pattern_view

    pattern = analyse(program_of(job.source, ranks))
    shown = pattern_view(pattern, title)
    return Answer(lambda: _facts(pattern), [shown], files=[write(shown, out)] if out else ())


def _facts(pattern: Pattern) -> dict[str, Any]:
    """A pattern for JSON, with the matrix."""
    traffic = pattern.traffic
    return {
        "verdict": asdict(pattern.verdict),
        "evidence": asdict(pattern.evidence) if pattern.evidence else None,
        "ranks": traffic.ranks,
        "messages": int(traffic.messages.sum()),
        "bytes": int(traffic.total.sum()),
        "collective_share": traffic.collective_share,
        "communities": asdict(pattern.communities),
        "message_sizes": traffic.sizes,
        "sent": traffic.sent.tolist(),
        "received": traffic.received.tolist(),
        "matrix": traffic.total.tolist(),
    }
