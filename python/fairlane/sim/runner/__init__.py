"""Run a scenario: all jobs together, each job alone on the same hosts, all jobs without each of them.

The simulations do not depend on each other, so they run on all cores; the results do not depend on how many there are.
"""

import json
import time
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from fairlane.core.errors import ResultsError
from fairlane.inputs.problems import Problems
from fairlane.model.scenario.checks import late
from fairlane.results.run import Run, Source, Timings, new_folder
from fairlane.sim.runner.experiment import Experiment
from fairlane.sim.runner.live import watched

if TYPE_CHECKING:
    from fairlane.model.scenario import Scenario

__all__ = ["run"]


def run(
    scenario: "Scenario",
    *,
    out: str | Path | None = None,
    isolated: bool = True,
    leave_one_out: bool | None = None,
    threads: int | None = None,
    progress: bool = False,
    figures: bool = False,
    live: bool = True,
) -> Run:
    """Simulates ``scenario`` and returns what it measured.

    Ctrl-C stops the simulations within a second, and so does a request of another process; what they have measured is
    kept, and the run is marked ``partial``.

    Args:
        scenario: What to simulate.
        out: The folder to store the run in, new or empty; without it the run is in memory only (``Run.save``).
        isolated: Whether to simulate each job alone as well, which ``w`` compares with.
        leave_one_out: Whether to simulate all jobs without each of them as well, for the table ``lost_time``; by
            default as ``observe.leave_one_out`` says.
        threads: How many threads simulate all jobs together, 1 to 32; by default the free cores that isolated runs
            leave, where the fabric is large enough to gain. Results do not depend on it.
        progress: Whether to show progress on standard error.
        figures: Whether to draw the figures into ``out`` (not done for an interrupted run).
        live: Whether other processes, as ``fairlane serve``, can see how far it is and stop it, by a hidden folder
            beside ``out`` while it runs. Results do not depend on it.

    Raises:
        ScenarioError: The scenario is wrong.
        RunError: A simulation cannot go on.
        ResultsError: The directory exists and is not empty, or cannot be written; another process simulates a run into
            it; or there are figures and no ``out``.
    """
    started, wall, cpu = datetime.now().astimezone(), time.monotonic(), time.process_time()
    if figures and out is None:
        raise ResultsError("figures are drawn into the folder of a run: give out=..., or draw one with Run.plot")
    folder = None if out is None else new_folder(scenario.name, started, Path(out))
    problems = list(late(scenario, scenario.duration))
    if problems:
        raise scenario.error(Problems(*problems))
    resolved = scenario.resolve()
    begun = time.monotonic()
    left_out = resolved.leave_one_out if leave_one_out is None else leave_one_out
    experiment = Experiment(resolved, isolated=isolated, leave_one_out=left_out, threads=threads)
    with watched(folder if live else None, experiment, started) as view:
        measured = experiment.perform(progress=progress, observe=view.update if view else None)
        simulated = time.monotonic()
        if view is not None:
            view.storing()
        timings = Timings(
            set_up_s=begun - wall - resolved.calibration_s,
            calibration_s=resolved.calibration_s,
            simulation_s=simulated - begun,
            **experiment.engine_seconds(),
        )
        found = measured.run(
            (started, wall, cpu),
            Source(scenario.text, json.dumps(resolved.spec)),
            duration_ps=experiment.duration,
            partial=experiment.partial,
            notes=(*resolved.notes, *experiment.notes),
            timings=timings,
            threads=experiment.shards,  # each shard has a thread of its own
            shards=experiment.shards,
        )
        if folder is not None:
            found = found.save(folder)
    written = time.monotonic()
    if figures and not experiment.partial:
        found.draw()
    spent = {"writing_s": written - simulated, "figures_s": time.monotonic() - written}
    return replace(found, meta=found.meta.model_copy(update={"timings": timings.model_copy(update=spent)}))
