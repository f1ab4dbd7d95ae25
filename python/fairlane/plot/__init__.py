"""Pictures of a run, a study or a sweep of loads: how much jobs are slowed down, by whom, and where in the fabric.

A new figure is one file with a ``draw(results)`` and one line in ``FIGURES``. Users bring their own as
``file.py:function``, or by the name of an entry point ``fairlane.figures`` of an installed package; such figures are
drawn when they are asked for by name.
"""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, get_type_hints

from matplotlib.figure import Figure

from fairlane.errors import Problem, ScenarioError
from fairlane.inputs.problems import Problems
from fairlane.inputs.registry import Registry, blamed
from fairlane.plot import (
    interference,
    iterations,
    power,
    saturation,
    slowdown,
    study,
    study_conditions,
    timeline,
    utilisation,
)
from fairlane.plot.style import styled
from fairlane.results.errors import ResultsError
from fairlane.results.run import Run
from fairlane.results.study import StudyResults
from fairlane.saturation.results import Saturation

__all__ = ["FIGURES", "Draw", "draw_all", "draw_figures"]

Draw = Callable[[Any], Figure | None]
"""Draws a figure of results; None if they have nothing to show there. The annotation of its argument says of which."""


def _unread(run: Run) -> None:
    """It has not been read."""
    del run


FIGURES: Registry[Draw] = Registry(
    "figure",
    "fairlane.figures",
    {
        "slowdown": slowdown.draw,
        "interference": interference.draw,
        "utilisation": utilisation.draw,
        "timeline": timeline.draw,
        "iterations": iterations.draw,
        "power": power.draw,
        "work": study.draw,
        "conditions": study_conditions.draw,
        "saturation": saturation.draw,
    },
    unread=_unread,
)
"""Every figure that can be asked for by name: of runs, of studies, of sweeps of loads."""


def draw_all(results: Run | StudyResults | Saturation) -> list[Path]:
    """Draws every built-in figure that a run, a study or a sweep has data for into its folder; returns their paths.

    Raises:
        ResultsError: it has no folder, or the folder cannot be written.
    """
    suiting = {name: draw for name, draw in FIGURES.builtin.items() if isinstance(results, _subject(draw))}
    return [path for name, draw in suiting.items() if (path := _draw(results, name, draw))]


def draw_figures(results: Run | StudyResults | Saturation, names: Iterable[str]) -> list[Path]:
    """Draws figures by name, also ``file.py:function``, into the folder of the results; returns their paths.

    Raises:
        ScenarioError: there is no such figure, or it is not one of such results or has nothing to show.
        ResultsError: as ``draw_all``.
    """
    chosen = []
    for name in names:
        try:
            chosen.append((name, FIGURES.find(name)))
        except Problems as problems:
            raise ScenarioError(problem.under("figure") for problem in problems.problems) from None
        subject = _subject(chosen[-1][1])
        if not isinstance(results, subject):
            words = f"draws a {subject.__name__}, and these results are a {type(results).__name__}"
            suiting = [one for one, draw in FIGURES.builtin.items() if isinstance(results, _subject(draw))]
            raise ScenarioError(Problem("figure", words, name, ", ".join(suiting)))
    paths = []
    for name, draw in chosen:
        path = _draw(results, name.rpartition(":")[2], draw)
        if path is None:
            raise ScenarioError(Problem("figure", "there is nothing to show in it: the results lack its data", name))
        paths.append(path)
    return paths


def _subject(draw: Draw) -> type:
    """Of what a figure is: the annotation of its argument, a run without one."""
    code = draw.__code__ if hasattr(draw, "__code__") else None
    first = code.co_varnames[0] if code and code.co_argcount else ""
    found = get_type_hints(draw).get(first, Run)
    return found if isinstance(found, type) else Run


def _draw(results: Run | StudyResults | Saturation, name: str, draw: Draw) -> Path | None:
    if results.folder is None:
        raise ResultsError("the run is only in memory; save it before drawing it")
    path = results.folder / f"{name}.png"
    with styled():
        try:
            figure = draw(results)
        except Exception as error:
            problem = blamed(draw, f"figure.{name}", error)
            if problem is None:
                raise
            raise ScenarioError(problem) from error
        if figure is None:
            path.unlink(missing_ok=True)
            return None
        try:
            figure.savefig(path)
        except OSError as error:
            raise ResultsError(f"{path}: cannot be written: {error.strerror}") from error
    return path
