"""Advice for one application, and the model of run times: advise, learn."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from fairlane.cli.command import Answer, ExitCode, out_option
from fairlane.cli.options import AllowCode, Assignments, Resume, refused, report
from fairlane.inputs.files import write_text
from fairlane.learn import advice
from fairlane.learn.advice.model import read_runs
from fairlane.learn.advice.sharing import LOAD, MOVES, neighbours
from fairlane.views.kinds import draw, view_of, write
from fairlane.views.neighbours import view as neighbours_view
from fairlane.views.prediction import learned


def advise(
    file: Annotated[
        Path | None, Argument(metavar="FILE", help="The scenario: application and neighbours.", show_default=False)
    ] = None,
    allocations: Annotated[
        Path | None,
        Option(
            metavar="FILE", help="Instead: jobs of a cluster and their nodes, CSV with job,nodes; also packed by xz."
        ),
    ] = None,
    nodes: Annotated[
        Path | None,
        Option(metavar="MAP", help="With --allocations: the nodes, CSV with node,cell,leaf_switch; also packed by xz."),
    ] = None,
    moment: Annotated[
        int | None, Option(min=1, help="With --allocations: which set of jobs without common nodes; by default 1.")
    ] = None,
    load: Annotated[
        float | None,
        Option(min=0.001, max=1, help="With --allocations: share of its bandwidth that a node sends; by default 0.5."),
    ] = None,
    assignments: Assignments = None,
    job: Annotated[str | None, Option(help="The application; by default the first job.")] = None,
    cap: Annotated[str | None, Option(help="Its power cap, e.g. '65 W'.")] = None,
    level: Annotated[list[int] | None, Option(help="A service level to consider; by default all.")] = None,
    length: Annotated[str | None, Option(help="Length of each simulation, e.g. '2 ms'.")] = None,
    seeds: Annotated[int, Option(min=1, help="Seeds, and so placements, of each alternative.")] = 3,
    model: Annotated[
        Path | None, Option(metavar="FILE", help="Predict run times with this model of fairlane learn.")
    ] = None,
    check: Annotated[
        str | None, Option(metavar="LENGTH", help="Also simulate all for this long with other seeds.")
    ] = None,
    show: Annotated[int, Option(min=1, help="How many alternatives, pairs or cables to print.")] = 5,
    workers: Annotated[
        int | None, Option(min=1, help="Simulations at the same time; by default one for each core.")
    ] = None,
    out: Annotated[
        Path | None, out_option("Folder of the simulations; with --allocations a file for all results, JSON.", "DIR")
    ] = None,
    resume: Resume = False,
    allow_code: AllowCode = False,
) -> Answer:
    """Recommend rails, service level and placement for an application that runs with given neighbours.

    All alternatives are simulated for a short time; or, with a model, only the application isolated and its neighbours
    isolated, and the model predicts the rest. --check compares the advice with longer simulations.

    With --allocations and --nodes instead of a scenario: estimate for the jobs of a cluster which share cables, which
    are likely to slow down others, and what moving one would change; --set gives parameters of the fabric.
    """
    if allocations is not None or nodes is not None:
        simulated = {
            "FILE": file, "--job": job, "--cap": cap, "--level": level, "--length": length, "--model": model,
            "--check": check, "--workers": workers, "--resume": resume or None,
        }  # fmt: skip
        return _neighbours(allocations, nodes, moment or 1, load, assignments, show, out, simulated)
    if file is None:
        raise refused("FILE", "missing: a scenario, or --allocations with --nodes")
    for option, value in (("--moment", moment), ("--load", load)):
        if value is not None:
            raise refused(option, "goes with --allocations", value)
    found = advice.advise(
        file,
        job=job,
        cap=cap,
        levels=level,
        length=length,
        seeds=seeds,
        model=model,
        check=check,
        workers=workers,
        out=out,
        resume=resume,
        assignments=assignments or (),
        progress=True,
        allow_code=allow_code,
    )
    made = view_of([found], show=show)
    draw([found], view=made)
    assert found.folder is not None, "advise stores its results"
    write(made, found.folder / "advice.html")
    if found.meta["partial"]:
        report(f"finished simulations are stored; continue with --resume --out {found.folder}")
    facts = {
        **{key: found.meta[key] for key in ("job", "coverage", "by_model")},
        **{key: getattr(found, key) for key in ("iterations", "neighbour_iterations", "alternatives", "checked")},
    }
    code = ExitCode.INTERRUPTED if found.meta["partial"] else ExitCode.DONE
    return Answer({**facts, "folder": found.folder}, [made], code=code, folder=found.folder)


def _neighbours(
    allocations: Path | None,
    nodes: Path | None,
    moment: int,
    load: float | None,
    assignments: list[str] | None,
    show: int,
    out: Path | None,
    simulated: Mapping[str, object],
) -> Answer:
    for option, value in simulated.items():
        if value is not None:
            raise refused(option, "goes with a scenario, not with --allocations", value)
    if allocations is None or nodes is None:
        missing = "--allocations" if allocations is None else "--nodes"
        raise refused(missing, "missing: --allocations and --nodes go together")
    shown = neighbours(
        allocations, nodes, number=moment, load=load or LOAD, assignments=assignments or (), moves=max(show, MOVES)
    )
    if out:
        write_text(out, json.dumps(shown.data()) + "\n")
    return Answer(shown.data, [neighbours_view(shown, show)], folder=out)


def learn(
    files: Annotated[list[Path], Argument(metavar="RUNS...", help="Tables of runs, CSV or Parquet.")],
    out: Annotated[Path, out_option("The model's file.")] = Path("model.json"),
) -> Answer:
    """Fit a model of run times to tables of runs, and report its error on held-out runs."""
    model = advice.learn(read_runs(files))
    model.save(out)
    errors = {"by_application": model.by_application, "by_condition": model.by_condition}
    return Answer({"file": out, "runs": model.runs, **errors}, [learned(model), f"The model is in {out}."], out)
