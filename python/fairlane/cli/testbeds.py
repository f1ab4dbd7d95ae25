"""A small real network on this machine: testbed run, testbed status, testbed down."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from fairlane.cli.command import Answer, out_option
from fairlane.cli.options import Assignments, report
from fairlane.signals import exit_on_sigterm

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fairlane.cli.terminal import Part
    from fairlane.testbed.results import Results
    from fairlane.views.tables import Row


def run(
    file: Annotated[Path, Argument(metavar="FILE", help="The testbed, a TOML file.")],
    assignments: Assignments = None,
    repetitions: Annotated[
        int | None, Option(min=2, metavar="NUMBER", help="Number of repetitions, in place of measure.repetitions.")
    ] = None,
    resume: Annotated[bool, Option("--resume", help="Use the repetitions that the folder has.")] = False,
    out: Annotated[Path | None, out_option("Folder of the results; by default runs/NAME.", "DIR")] = None,
) -> Answer:
    """Run MPI jobs on a small real network of this machine, alone and together, and compare with the simulator.

    The network consists of network namespaces with shaped links; it needs root, iproute2 and Open MPI. The host model
    is fitted on isolated runs only. Nothing outside its namespaces is touched, and they are removed at the end.
    """
    from fairlane.plot.files import write
    from fairlane.plot.testbed import testbed as figure
    from fairlane.testbed import machine
    from fairlane.testbed.experiment import experiment
    from fairlane.testbed.file import TestbedFile

    loaded = TestbedFile.load(file, set=assignments or ())
    machine.check()
    folder = out or Path("runs") / loaded.name
    with exit_on_sigterm():  # the testbed is removed
        found = experiment(loaded, folder, repetitions=repetitions, resume=resume, report=report)
    picture = write(lambda: figure(found), folder / "testbed.png")
    data: dict[str, Any] = {**found.written(), **{name: table.to_dicts() for name, table in found.tables.items()}}
    return Answer(data, _lines(found), folder, [picture])


def status() -> Answer:
    """List the network namespaces of testbeds on this machine, with the number of processes in each."""
    from fairlane.testbed import machine

    found = {name: len(machine.processes(name)) for name in machine.present()}
    lines = [f"{name}: {count} processes" for name, count in found.items()]
    return Answer(found, lines or ["there is no testbed"])


def down() -> Answer:
    """End all processes of a testbed that was left, as after a crash of the machine's shell, and remove it."""
    from fairlane.testbed import machine

    with machine.only_one():
        found = machine.down()
    return Answer({"removed": found}, [f"removed {name}" for name in found] or ["there is no testbed"])


def _lines(found: "Results") -> "Iterator[Part]":
    from fairlane.views.tables import Column, Table, change
    from fairlane.views.tables import columns as table_columns
    from fairlane.wording import seconds, with_half_width

    def estimate(name: str) -> Any:
        def shown(row: "Row") -> str:
            return with_half_width(row[name], row[f"{name}_low"], row[f"{name}_high"], change)

        return shown

    def columns(*first: Column) -> list[Column]:
        return [*first, *(Column(name, estimate(name)) for name in ("measured", "predicted", "difference"))]

    def beyond(row: "Row") -> str:
        return "" if not row["beyond_noise"] else "right" if row["sign_right"] else "wrong"

    model = found.fit.model
    rows = [
        {"job": job, "measured": time, "simulated": found.fit.simulated_s[job]}
        for job, time in found.fit.measured_s.items()
    ]
    times = table_columns(seconds, measured="measured", simulated="simulated")
    fitted = f"Host model: {model.efficiency:.3f} of each rate, {seconds(model.overhead_s)} for each send and receive"
    yield Table([Column("job", "job", left=True), *times], rows, "Isolated: time per iteration", f"{fitted}.")
    job, sign = Column("job", "job", left=True), Column("sign", beyond, left=True)
    yield Table(columns(job), found.w.to_dicts(), "W: throughput change against the isolated run")
    note = "Sign: whether the predicted one is right, where the measured effect is beyond noise."
    if found.effects is not None:
        treatment = Column("treatment", "treatment", left=True)
        shown = [*columns(treatment, job), sign]
        yield Table(shown, found.effects.to_dicts(), "Improvement by service levels", note)
    if found.control is not None:
        shown = [*columns(job, Column("level", "level")), sign]
        yield Table(shown, found.control.to_dicts(), "Improvement by the agent", note)
        yield from found.decisions
    if found.steered is not None:
        yield Table([*columns(job), sign], found.steered.to_dicts(), "Improvement by the controller", note)
        yield from found.costs
    yield "±: 95% interval over repetitions (measured) and replicates (predicted)."
    yield from found.verdict.lines()
