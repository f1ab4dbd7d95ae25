"""Figures that are drawn by Matplotlib, or by users.

Of a run they are drawn on axes of the caller's; its pictures are those of ``views.run``. Users bring their own figures
as ``file.py:function``, or by the name of an entry point ``fairlane.figures`` of an installed package; they return axes
or a figure of Matplotlib, or a chart of Altair, and are drawn when they are asked for by name.
"""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, get_type_hints

from fairlane.core.errors import Problem, ResultsError, ScenarioError
from fairlane.inputs.problems import refusing
from fairlane.inputs.registry import Registry, blamed
from fairlane.results.base import Results
from fairlane.results.run import Run
from fairlane.views.drawing.runs import Given, figure_of, interference, slowdown
from fairlane.views.drawing.style import save, styled
from fairlane.views.kinds import KINDS, LIGHT, nothing_in
from fairlane.views.picture import rendered
from fairlane.views.style import Look

__all__ = ["FIGURES", "Draw", "draw_figures", "draw_into", "draw_new", "show"]

Draw = Callable[..., Any]
"""Draws a figure of results, on the axes given as ``axes`` if there are any, and returns the axes (see ``runs``), a
figure or a chart of Altair; None if the results have nothing to show there. The annotation of its first argument says
of which."""


def _unread(run: Run) -> None:
    """It has not been read."""
    del run


FIGURES: Registry[Draw] = Registry(
    "figure",
    "fairlane.figures",
    {
        "interference": interference,
        "slowdown": slowdown,
    },
    unread=_unread,
)
"""Figures of runs by name that Matplotlib draws on axes of a caller's. Other pictures are those of ``views.kinds``."""


def draw_figures(results: Results, names: Iterable[str], look: Look = LIGHT, to: Path | None = None) -> list[Path]:
    """Draws figures by name, also ``file.py:function``, into ``to`` or the folder of the results; returns their paths.

    Raises:
        ScenarioError: there is no such figure, or it is not one of such results or has nothing to show.
        ResultsError: it has no folder, or the folder cannot be written.
    """
    chosen = [(name, _found(results, name)) for name in names]
    paths = []
    for name, draw in chosen:
        path = draw_into(to or results.folder, results, name.rpartition(":")[2], draw, look)
        if path is None:
            raise ScenarioError(nothing_in(name))
        paths.append(path)
    return paths


def show(results: Results, name: str | None = None, axes: Given = None) -> Any:
    """Draws a figure by name and returns its axes; without ``axes`` in a new figure that notebooks show.

    Without a name it is the first that there are data for.

    Raises:
        ScenarioError: there is no such figure, or it is not one of such results or has nothing to show.
        ResultsError: ``axes`` are more or fewer than the figure has panels.
    """
    names = [name] if name else list(FIGURES.builtin)
    for figure in names:
        drawn = draw_new(results, figure, _found(results, figure), axes)
        if drawn is not None:
            return drawn
    raise ScenarioError(nothing_in(names[0]))


def _found(results: Results, name: str) -> Draw:
    """The function of a figure of such results; ``ScenarioError`` if there is none."""
    viewed = KINDS.get(type(results))
    allowed = list(viewed.pictures) if viewed else []
    if ":" not in name and name not in {*allowed, *FIGURES}:
        raise ScenarioError(Problem.unknown("figure", "figure", name, [*allowed, "file.py:function"], name))
    with refusing("figure"):
        draw = FIGURES.find(name)
    subject = _subject(draw)
    if not isinstance(results, subject):
        message = f"draws a {subject.__name__}, and these results are a {type(results).__name__}"
        raise ScenarioError(Problem("figure", message, name, ", ".join(allowed)))
    return draw


def _called(data: Any, name: str, draw: Draw, axes: Given = None) -> Any:
    """What a figure's function returns; errors of code that is not built in name it."""
    try:
        return draw(data) if axes is None else draw(data, axes=axes)
    except Exception as error:
        problem = blamed(draw, f"figure.{name}", error)
        if problem is None:
            raise
        raise ScenarioError(problem) from error


def _subject(draw: Draw) -> type:
    """Of what a figure is: the annotation of its argument, a run without one."""
    code = draw.__code__ if hasattr(draw, "__code__") else None
    first = code.co_varnames[0] if code and code.co_argcount else ""
    subject = get_type_hints(draw).get(first, Run)
    return subject if isinstance(subject, type) else Run


def draw_into(folder: Path | None, data: Any, name: str, draw: Draw, look: Look = LIGHT) -> Path | None:
    """Draws a figure into a folder; None, and no such file, if there is nothing to show in it.

    Raises:
        ResultsError: there is no folder, or it cannot be written.
    """
    if folder is None:
        raise ResultsError("the run is only in memory; save it before drawing it")
    path = folder / f"{name}.{look.format}"
    with styled():
        drawn = _called(data, name, draw)
        try:
            if drawn is None:
                path.unlink(missing_ok=True)
                return None
            if _is_chart(drawn):
                path.write_bytes(rendered(drawn.to_dict(), look))
            else:
                save(figure_of(drawn), path, look)
        except OSError as error:
            raise ResultsError(f"{path}: cannot be written: {error.strerror}") from error
    return path


def _is_chart(drawn: Any) -> bool:
    """Whether a figure is a chart of Altair."""
    from altair import TopLevelMixin

    return isinstance(drawn, TopLevelMixin)


def draw_new(data: Any, name: str, draw: Draw, axes: Given = None) -> Any:
    """Draws a figure on ``axes``, or in a new figure that pyplot shows; None if there is nothing to show in it.

    A notebook shows it at the end of the cell, other programs by ``pyplot.show()``.
    """
    from matplotlib import pyplot

    with styled():
        drawn = _called(data, name, draw, axes)
        if drawn is not None and axes is None and not _is_chart(drawn):
            figure = figure_of(drawn)
            figure.draw_without_rendering()  # as long as the style is set
            pyplot.figure(figure)
    return drawn
