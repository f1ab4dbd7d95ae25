"""Models of how allocations and neighbours slow jobs down: slowdown fit, slowdown show."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option

from fairlane.cli.command import Answer, Quiet, out_option
from fairlane.cli.options import AllowCode, Assignments, RandomSeed

if TYPE_CHECKING:
    from fairlane.scheduler import SlowdownModel


def fit(
    mix: Annotated[Path, Argument(metavar="MIX", help="Patterns with their workloads, a TOML file.")],
    fabric: Annotated[str, Option(help="Name of a topology; its parameters are given by --set.")] = "torus",
    assignments: Assignments = None,
    snapshots: Annotated[int, Option(min=5, help="How many snapshots to simulate.")] = 200,
    seed: RandomSeed = 1,
    out: Annotated[Path, out_option("The model's file, TOML.")] = Path("slowdown.toml"),
    keep: Annotated[Path | None, Option(metavar="DIR", help="Store simulations in DIR, and use those stored.")] = None,
    workers: Annotated[int | None, Option(min=1, help="Threads; by default one for each core.")] = None,
    allow_code: AllowCode = False,
    quiet: Quiet = False,
) -> Answer:
    """Simulate random snapshots of a machine packet by packet, and fit a model of slowdowns to them.

    For example: fairlane slowdown fit mix.toml --fabric torus --set sides=[8,4,4] -o torus.toml
    """
    from fairlane.fabric.table import FabricTable
    from fairlane.scenario.estimate import machine_cores
    from fairlane.scheduler import PatternMix, fit_model
    from fairlane.tasks.executor import Executor
    from fairlane.tasks.pools import Threads
    from fairlane.tasks.progress import TaskProgress
    from fairlane.tasks.store import Store

    table = FabricTable.read({"topology": fabric}, assignments or ())
    from fairlane.inputs import code

    with code.allow_code(allow_code):
        patterns = PatternMix.from_file(mix)
    store = (
        None
        if keep is None
        else Store.kept("fit", keep, {"fabric": fabric, "seed": seed}, ["fairlane.scheduler.slowdown.bench"])
    )
    with (
        TaskProgress(wanted=not quiet) as shown,
        Executor(Threads(workers or machine_cores()), store, shown, attempts=1, first_failure_ends=True) as executor,
    ):
        shown.stage("simulating")
        model = fit_model(table, patterns, snapshots=snapshots, seed=seed, executor=executor)
    model.save(out)
    return _answer(model, f"written {out}")


def show(
    model: Annotated[str, Argument(metavar="MODEL", help="A model's file, or the name of one in the package.")],
) -> Answer:
    """What a model predicts, and its error on held-out snapshots."""
    from fairlane.inputs import code
    from fairlane.scheduler import load_model

    with code.listing():
        return _answer(load_model(model))


def _answer(model: "SlowdownModel", *written: str) -> Answer:
    from fairlane.views.slowdown import model_tables

    return Answer(model.model_dump(mode="json"), model_tables(model), files=written)
