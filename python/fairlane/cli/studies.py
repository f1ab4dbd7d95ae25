"""Simulating a scenario many times: study."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from itertools import chain
from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from fairlane.cli.command import Answer, ExitCode, Quiet, out_option
from fairlane.cli.options import AllowCode, Assignments, Dask, Resume, Workers, report, report_damaged
from fairlane.wording import listed, percent, seconds

_PROFILE = {
    "simulating": "workers in simulations",
    "set-up": "workers building scenarios and finding compute times",
    "waiting": "workers starting, without a task, or with their answer on its way",
    "planning": "this process reading the study and trying every scenario, before workers start",
    "writing": "this process storing answers and tables",
}
_OF_WORKERS = ("simulating", "set-up", "waiting")


def study(
    file: Annotated[Path, Argument(metavar="FILE", help="The study, a TOML file.")],
    assignments: Assignments = None,
    seed: Annotated[int | None, Option("--seed", min=0, help="Simulate this seed only.")] = None,
    out: Annotated[Path | None, out_option("Folder of the study; by default a new one in runs/.", "DIR")] = None,
    resume: Resume = False,
    workers: Workers = None,
    dask: Dask = None,
    cpu_limit: Annotated[
        float | None,
        Option(metavar="SECONDS", min=0, help="Begin no simulation after this much processor time of workers."),
    ] = None,
    allow_code: AllowCode = False,
    profile: Annotated[bool, Option("--profile", help="Say where the time went.")] = False,
    quiet: Quiet = False,
) -> Answer:
    """Compare treatments over placements, seeds and parameters, or measure runs.

    Every run is compared with the default run and with each job isolated, on the same hosts; of a study with a table
    `measure` the tables are kept that it asks for. What is finished is stored at once; after an interruption --resume
    continues.
    """
    from fairlane.cli.terminal import parts_of
    from fairlane.study import Study, run
    from fairlane.views.kinds import draw, view_of

    if dask and not quiet:
        report(f"connecting to the Dask scheduler at {dask}")
    own = [] if seed is None else [f"seeds=[{seed}]"]
    loaded = Study.load(file, set=[*(assignments or ()), *own], allow_code=allow_code)
    try:
        found = run(
            loaded, out=out, resume=resume, workers=workers, dask=dask, cpu_limit_s=cpu_limit, progress=not quiet
        )
        view = view_of([found])
        draw([found], view=view)
    except KeyboardInterrupt:
        where = f" --out {out}" if out else ""
        report(f"finished simulations are stored; continue with --resume{where}")
        raise
    report_damaged(found.meta.recomputed, found.folder)
    tables = {name: table for name, table in found.tables().items() if name not in ("runs", "periods")}
    time = list(_profile_lines(found.meta.profile)) if profile else []
    return Answer(
        {"folder": found.folder, **found.meta.model_dump(), **tables},
        chain(parts_of(view, found.folder), time),
        "\n".join([str(found.folder), *time]),
        code=ExitCode.RUN_FAILED if found.failures.height else ExitCode.DONE,
    )


def _profile_lines(found: Mapping[str, float]) -> Iterator[str]:
    """Where the time went, summed over workers."""
    workers = "1 worker" if found["workers"] == 1 else f"{found['workers']:.0f} workers"
    yield f"Where the time went: {seconds(found['wall'])}, of these {seconds(found['spent'])} with {workers}"
    for name, meaning in _PROFILE.items():
        of = found["spent"] * found["workers"] if name in _OF_WORKERS else found["wall"]
        share = percent(found[name] / of) if of else ""
        yield f"  {name:<10}  {seconds(found[name]):>8}  {share:>6}  {meaning}"


def is_study(file: Path) -> bool:
    """Whether a TOML file is a study: it has a scenario, and no fabric of its own."""
    from fairlane.inputs.document import Document

    data = Document.read(file).data
    return "scenario" in data and "fabric" not in data


def check_study(file: Path, assignments: list[str] | None, seed: int | None, *, allow_code: bool) -> Answer:
    """Read a study, try every scenario and treatment, and report what it takes. Nothing is simulated."""
    from fairlane.inputs.code import listing
    from fairlane.inputs.registry import used
    from fairlane.study import Study
    from fairlane.study.cost import cost_of
    from fairlane.study.measured import plan_of

    own = [] if seed is None else [f"seeds=[{seed}]"]
    with listing() as code, used() as plugins:
        loaded = Study.load(file, set=[*(assignments or ()), *own], allow_code=allow_code)
        cost = cost_of(plan_of(loaded))
    facts = {"study": loaded.name, **asdict(cost), "code": [str(one) for one in code], "plugins": plugins}
    lines = [
        f"{loaded.name}: a study of {listed([*loaded.treatments]) or 'no treatment'}",
        *(f"  {line}" for line in cost.lines()),
    ]
    lines += [f"  names code: {one}; it has not run and is not checked without --allow-code" for one in code]
    return Answer(facts, [*lines, *(f"  runs code: {one}" for one in plugins)])
