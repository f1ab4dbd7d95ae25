"""Advice: which rails, service level and placement an application had best run with, and a model of run times.

``fairlane.study.shipped.advice`` simulates the alternatives; ``predicted`` ranks them by a ``model``, which predicts
run times and their intervals from conditions; ``sharing`` estimates what the jobs of a whole cluster do to each other.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fairlane.inputs import code
from fairlane.learn.advice.model import RunTimeModel, learn
from fairlane.learn.advice.predicted import Predicted
from fairlane.learn.advice.sharing import Neighbours, neighbours
from fairlane.study.shipped.advice import Advice, Alternatives, ask

__all__ = ["Advice", "Neighbours", "RunTimeModel", "advise", "learn", "neighbours"]


def advise(
    file: Path,
    *,
    job: str | None = None,
    cap: str | None = None,
    levels: Sequence[int] | None = None,
    length: str | None = None,
    seeds: int = 3,
    model: Path | None = None,
    check: str | None = None,
    workers: int | None = None,
    out: Path | None = None,
    assignments: Sequence[str] = (),
    resume: bool = False,
    progress: bool = False,
    allow_code: bool = False,
) -> Advice:
    """Ranks all alternatives of a scenario's job, by default its first.

    Args:
        file: The scenario, with the application and its neighbours.
        job: The application's name.
        cap: Its power cap, as ``"65 W"``, in place of the scenario's.
        levels: Service levels that it may have; by default all that the scenario has.
        length: How long each simulation is, as ``"2 ms"``, in place of the scenario's duration.
        seeds: How many seeds, and so random placements, each alternative is tried with.
        model: A model that predicts the run times, in place of simulations of the alternatives.
        check: Length of the simulations, with other seeds, that the advice is compared with.
        workers: Simulations at the same time; None for as many as there are cores and memory for.
        out: Folder of the simulations, new or empty; None for a new one in ``runs``.
        resume: Whether to continue in an existing folder; without ``out`` in the latest unfinished one.
        assignments: Changes of the scenario, as ``network.mtu="2 KiB"``.
        progress: Whether to show progress on standard error.
        allow_code: Whether code that the scenario names may run.

    Raises:
        ScenarioError: Something that was given is wrong; nothing was simulated.
        RunError: A simulation failed, or all were too short for two iterations.
        ResultsError: The folder is in use, or of another version.
    """
    with code.allow_code(allow_code):
        known = RunTimeModel.load(model) if model else None
        lengths = [f'duration="{length}"'] if length else []
        question = ask(file, job, cap, levels, [*assignments, *lengths])
        options: dict[str, Any] = {"seeds": seeds, "check": check, "workers": workers}
        study = Predicted(question, known, **options) if known else Alternatives(question, **options)
        return study.run(study.open(out, resume=resume), progress=progress)
