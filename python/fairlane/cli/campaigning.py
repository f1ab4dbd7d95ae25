"""Campaigns on real machines: campaign fit, predict, compare and map."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from fairlane.cli.command import Answer, ExitCode, OutFolder, Quiet, out_option, write_table
from fairlane.cli.options import AllowCode, Resume, Workers, folder_of, refused, report

if TYPE_CHECKING:
    from fairlane.campaign.cells import Cells
    from fairlane.campaign.comparing import Comparison
    from fairlane.campaign.robustness import Mapped
    from fairlane.campaign.simulating import Model
    from fairlane.cli.tables import Part, Row
    from fairlane.tasks.executor import Executor

Folder = Annotated[Path, Argument(metavar="DIR", help="Folder of the campaign.")]
Nodes = Annotated[str | None, Option(metavar="NUMBERS", help="Only cells of these numbers of nodes, e.g. 8,16,32.")]
CpuHours = Annotated[float | None, Option(min=0, help="Processor time after which no simulation is begun, hours.")]


def fit(
    folder: Folder,
    rounds: Annotated[
        int, Option(min=1, help="Steps to try; each simulates the cells once more for each parameter.")
    ] = 6,
    workers: Workers = None,
    allow_code: AllowCode = False,
    resume: Resume = False,
    out: OutFolder = None,
    quiet: Quiet = False,
) -> Answer:
    """Fit the parameters of messages and links on isolated runs, and write them to fitted.toml.

    Only isolated cells on which variants are chosen are used, nothing that was measured beside an aggressor.
    """
    from fairlane.campaign.fitting import fit as fitted
    from fairlane.campaign.fitting import save

    cells = _cells(folder, allow_code)
    tell = (lambda _words: None) if quiet else report
    with _executor(folder, out, workers, resume=resume, cpu_hours=None, progress=False) as executor:
        found = fitted(cells.campaign, cells, executor, rounds=rounds, report=tell)
    path = save(found, cells.campaign)
    rows = [
        {"cell": str(cell), "measured": measured, "simulated": simulated, "ratio": simulated / measured}
        for cell, measured, simulated in found.medians
    ]
    shown = {one.name: one.shown(found.values[one.name]) for one in cells.campaign.fitted}
    return Answer({"values": shown, "error": found.error, "cells": rows}, _fitted(rows, shown, found.error), path)


def predict(
    folder: Folder,
    label: Annotated[str, Option(metavar="NAME", help="Name of the registration, a word.")] = "prediction",
    note: Annotated[str, Option(help="What is new about this prediction.")] = "",
    nodes: Nodes = None,
    try_out: Annotated[bool, Option("--try", help="Register nothing.")] = False,
    assignments: Annotated[
        list[str] | None,
        Option("--set", metavar="NAME=VALUE", help="Value of a parameter of the campaign; can be given many times."),
    ] = None,
    workers: Workers = None,
    cpu_hours: CpuHours = None,
    allow_code: AllowCode = False,
    resume: Resume = False,
    out: OutFolder = None,
    quiet: Quiet = False,
) -> Answer:
    """Predict the cells of a campaign, and register the prediction with the digests of model and cells.

    Measured values are not read. A registration is never changed: a new prediction is a new one.
    """
    from fairlane.campaign.predicting import predicted
    from fairlane.campaign.registry import register, registered

    _word(label)
    cells = _cells(folder, allow_code)
    wanted = cells.of(_numbers(nodes))
    model = _model(cells, assignments)
    registered(folder)  # an earlier one that has changed is an error now, not after hours
    with _executor(folder, out, workers, resume=resume, cpu_hours=cpu_hours, progress=not quiet) as executor:
        table = predicted(model, wanted, executor)
    if try_out:
        return Answer(table, _predicted(table.to_dicts()), folder)
    found = register(model, table, label, note, datetime.now().astimezone())
    text = [*_predicted(table.to_dicts()), f"Registered as {found.folder}."]
    return Answer({"registration": dict(found.meta), "cells": table}, text, found.folder)


def compare(
    folder: Folder,
    nodes: Nodes = None,
    registration: Annotated[
        int | None, Option(min=1, help="Number of the registered prediction; by default the newest.")
    ] = None,
    allow_code: AllowCode = False,
    out: Annotated[
        Path | None, out_option("Folder of table, figure and page; by default DIR/comparison.", "DIR")
    ] = None,
) -> Answer:
    """Compare measured values with a registered prediction: cells, ratios to isolated runs, bars; a figure and a page.

    Measured values without a registered prediction are refused. The exit code is 1 if a bar is not reached.
    """
    from fairlane.campaign.comparing import compared
    from fairlane.campaign.page import html_of
    from fairlane.campaign.pictures import draw
    from fairlane.inputs.files import write_text
    from fairlane.plot.files import write

    cells = _cells(folder, allow_code)
    found = compared(cells, cells.of(_numbers(nodes)), registration)
    target = folder_of(out or folder / "comparison")
    write_table(found.table, target / "cells.csv")
    files = [target / "cells.csv", write(draw(found), target / "ratios.png")]
    write_text(target / "index.html", html_of(found))
    code = ExitCode.DONE if found.holds else ExitCode.RUN_FAILED
    bars = {name: [{**vars(bar), "holds": bar.holds} for bar in of] for name, of in found.parts.items()}
    data = {"registration": found.registration.name, "bars": bars, "cells": found.table}
    return Answer(data, _compared(found), target, [*files, target / "index.html"], code)


def draw_map(
    folder: Folder,
    points: Annotated[int, Option(min=2, max=512, help="Points of the space.")] = 32,
    nodes: Nodes = None,
    workers: Workers = None,
    cpu_hours: CpuHours = None,
    allow_code: AllowCode = False,
    resume: Resume = False,
    out: OutFolder = None,
    quiet: Quiet = False,
) -> Answer:
    """Show in which share of the space of what is not known each cell is predicted, and which parameter decides.

    Cells that are judged need a registered prediction first.
    """
    from fairlane.campaign.registry import chosen
    from fairlane.campaign.robustness import mapped
    from fairlane.reproduce.maps import draw_map as draw

    cells = _cells(folder, allow_code)
    wanted = cells.of(_numbers(nodes))
    _, every = chosen(cells, None)
    unregistered = [cell for cell in wanted if not any(cell.key in one.keys for one in every)]
    if unregistered:
        raise refused("--nodes", f"no prediction is registered of {unregistered[0]}", nodes)
    model = _model(cells, None)
    with _executor(
        folder, out, workers, resume=resume, cpu_hours=cpu_hours, progress=not quiet, partial=True
    ) as executor:
        found = mapped(model, wanted, executor, points)
        target = executor.store.folder if executor.store else folder
    for name in ("found", "points", "cells", "indices"):
        write_table(getattr(found, name), target / f"{name}.csv")
    note = f"{points} points; the number after a cell is its measured ratio of means to the isolated run."
    of = ("a cell", "is predicted", "the logarithm of the predicted ratio")
    picture = draw(found.cells, found.indices, f"{cells.campaign.title}: what decides", note, target, of=of)
    data = {"cells": found.cells, "indices": found.indices, "failed": list(found.failed)}
    code = ExitCode.RUN_FAILED if found.failed else ExitCode.DONE
    return Answer(data, _mapped(found), target, [picture] if picture else [], code)


def _cells(folder: Path, allow_code: bool) -> "Cells":
    from fairlane.campaign.cells import Cells
    from fairlane.campaign.file import CampaignFile

    return Cells(CampaignFile.load(folder, allow_code=allow_code))


def _model(cells: "Cells", assignments: list[str] | None) -> "Model":
    from fairlane.campaign.fitting import values_of
    from fairlane.campaign.simulating import Model

    given = {}
    known = {one.name: one for one in cells.campaign.parameter}
    for assignment in assignments or ():
        name, _, value = assignment.partition("=")
        if name not in known:
            raise refused("--set", "unknown parameter", name, ", ".join(known))
        given[name] = known[name].value_of(value)
    model = Model(cells.campaign, cells, {**values_of(cells.campaign), **given})
    model.check()
    return model


@contextmanager
def _executor(
    folder: Path,
    out: Path | None,
    workers: int | None,
    *,
    resume: bool,
    cpu_hours: float | None,
    progress: bool,
    partial: bool = False,
) -> "Iterator[Executor]":
    from fairlane.tasks.executor import Executor
    from fairlane.tasks.pools import open_pool
    from fairlane.tasks.progress import TaskProgress
    from fairlane.tasks.store import Store

    started = datetime.now().astimezone()
    name = f"{folder.resolve().name}-campaign"
    store = Store.open(
        "campaign",
        name,
        {"folder": folder.resolve().name},
        {},
        code=["fairlane.campaign.simulating"],
        out=out,
        started=started,
        resume=resume,
        complete=lambda _folder: False,
    )
    limit = None if cpu_hours is None else cpu_hours * 3600
    with (
        TaskProgress(wanted=progress) as shown,
        Executor(open_pool(workers), store, shown, first_failure_ends=not partial, cpu_limit_s=limit) as executor,
    ):
        executor.stage("simulating")
        yield executor


def _numbers(given: str | None) -> list[int]:
    try:
        return [int(word) for word in (given or "").split(",") if word.strip()]
    except ValueError:
        raise refused("--nodes", "is no list of numbers", given, "numbers, e.g. 8,16,32") from None


def _word(label: str) -> None:
    if not label.replace("-", "").replace("_", "").isalnum():
        raise refused("--label", "is no word", label, "letters, digits, - and _")


def _fitted(rows: list[dict[str, Any]], shown: dict[str, str], error: float) -> "Iterator[Part]":
    from fairlane.cli.tables import Column, Table, fixed
    from fairlane.wording import percent, seconds

    times = [Column(name, name, seconds) for name in ("measured", "simulated")]
    yield Table([Column("cell", "cell"), *times, Column("ratio", "ratio", fixed(2))], rows, "Isolated runs: medians")
    yield f"Mean error: {percent(error)}"
    yield from (f"{name} = {value}" for name, value in shown.items())


def _keys(row: "Row") -> str:
    return f"{row['victim']}, {row['aggressor']}"


def _predicted(rows: "list[dict[str, Any]]") -> "Iterator[Part]":
    from fairlane.cli.tables import Column, Table, with_interval
    from fairlane.wording import data_size, seconds

    columns = [
        Column("victim, aggressor", _keys),
        Column("nodes", "nodes"),
        Column("size", "msg_bytes", data_size),
        *(Column(name, with_interval(f"{name}_s", seconds)) for name in ("median", "mean", "p99")),
        Column("iterations", "iterations"),
    ]
    yield Table(columns, rows, "Predicted time of an iteration")


def _compared(found: "Comparison") -> "Iterator[Part]":
    from fairlane.cli.tables import Column, Table, fixed, with_ratio
    from fairlane.wording import data_size, seconds

    def pair(name: str) -> list[Column]:
        measured = Column(f"{name}\nmeasured", f"measured_{name}_s", seconds)
        return [measured, Column("\npredicted", f"predicted_{name}_s", seconds)]

    columns = [
        Column("victim, aggressor", _keys),
        Column("nodes", "nodes"),
        Column("size", "msg_bytes", data_size),
        *pair("median"),
        *pair("mean"),
        *pair("p99"),
        Column("ratio of means\nmeasured", "measured_mean_ratio", fixed(2)),
        Column("\npredicted", with_ratio("predicted_mean_ratio", fixed(2))),
        Column("verdict", "verdict", left=True),
    ]
    yield Table(columns, found.table.to_dicts(), f"Measured, and predicted by {found.registration.name}")
    for name, bars in found.parts.items():
        yield f"Cells that were {name}:"
        for bar in bars:
            yield f"  {'–' if bar.holds is None else 'yes' if bar.holds else 'no'}  {bar.what}: {bar.text}"
    yield f"Measured figures: {'; '.join(found.cells.campaign.sources)}."


def _mapped(found: "Mapped") -> "Iterator[Part]":
    from fairlane.wording import percent

    indices = found.indices.to_dicts()
    for row in found.cells.iter_rows(named=True):
        yield f"{row['says']}: predicted at {percent(row['share'])} of the points"
        of = sorted(
            (it for it in indices if it["claim"] == row["claim"] and it["beyond_chance"]), key=lambda it: -it["index"]
        )
        if of:
            yield "  decided by " + ", ".join(f"{it['parameter']} ({it['index']:.2f})" for it in of)
    yield from (f"left out: {words}" for words in found.failed)
