"""A small real network on this machine: testbed run, testbed status, testbed down."""

from pathlib import Path
from typing import Annotated, Any

from typer import Argument, Option

from fairlane.cli.command import Answer, out_option
from fairlane.cli.options import Assignments, report
from fairlane.core.signals import exit_on_sigterm
from fairlane.lab.testbed import machine
from fairlane.lab.testbed.experiment import experiment
from fairlane.lab.testbed.file import TestbedFile
from fairlane.lab.testbed.view import view


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

    The network consists of network namespaces with shaped links; it needs root, iproute2, nftables and Open MPI. The
    host model is fitted on isolated runs only. Nothing outside its namespaces is touched, and they are removed at the
    end.
    """
    from fairlane.views.kinds import write

    loaded = TestbedFile.load(file, set=assignments or ())
    machine.check()
    folder = out or Path("runs") / loaded.name
    with exit_on_sigterm():  # the testbed is removed
        measured = experiment(loaded, folder, repetitions=repetitions, resume=resume, report=report)
    made = view(measured)
    files = [write(made, folder / name) for name in ("testbed.png", "testbed.html")]
    data: dict[str, Any] = {**measured.written(), **{name: table.to_dicts() for name, table in measured.tables.items()}}
    return Answer(data, [made], files=files, folder=folder)


def status() -> Answer:
    """List the network namespaces of testbeds on this machine, with the number of processes in each."""
    counts = {name: len(machine.processes(name)) for name in machine.present()}
    lines = [f"{name}: {count} processes" for name, count in counts.items()]
    return Answer(counts, lines or ["there is no testbed"])


def down() -> Answer:
    """End all processes of a testbed that was left, as after a crash of the machine's shell, and remove it."""
    with machine.only_one():
        removed = machine.down()
    return Answer({"removed": removed}, [f"removed {name}" for name in removed] or ["there is no testbed"])
