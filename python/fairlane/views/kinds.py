"""The kinds of results that have a view, and what can be done with it.

A new kind of results is a file here, with a line in ``KINDS``. The file has a function ``view``, which makes a ``View``
of one or more results, and ``PICTURES``, the names of their pictures with what they show.

A view in a file that a user has named: a picture of all its charts, or a page.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any

from fairlane.core.errors import Problem, ResultsError, ScenarioError, writing
from fairlane.inputs.files import replacing
from fairlane.results.base import Results
from fairlane.results.reproduction import ReproductionResults, RobustnessResults
from fairlane.results.run import Run
from fairlane.results.schedule import ScheduleResults
from fairlane.results.study import StudyResults
from fairlane.study.shipped.advice.results import Advice
from fairlane.study.shipped.cables import Cables
from fairlane.study.shipped.gpcnet import Gpcnet
from fairlane.study.shipped.saturation import Saturation
from fairlane.views.model import View
from fairlane.views.style import Look, config

if TYPE_CHECKING:
    from fairlane.views.model import Chart


@dataclass(frozen=True)
class Kind:
    """A kind of results."""

    module: str
    """Its file."""
    words: str
    """Its name in errors."""
    others: bool = False
    """Whether results may have pictures of other names, too."""

    @property
    def pictures(self) -> Mapping[str, str]:
        """Names of the files of its pictures, with descriptions."""
        named: Mapping[str, str] = resolve_name(f"fairlane.views.{self.module}:PICTURES")
        return named


LIGHT = Look()
"""Dark ink on white, as PNG."""
KINDS: Mapping[type[Results], Kind] = {
    Run: Kind("run", "a run"),
    Advice: Kind("advice", "advice"),
    Cables: Kind("cables", "a survey of failures"),
    Gpcnet: Kind("gpcnet", "GPCNeT"),
    ReproductionResults: Kind("reproduction", "a reproduction", others=True),
    RobustnessResults: Kind("robustness", "a robustness map"),
    Saturation: Kind("saturation", "a load sweep"),
    ScheduleResults: Kind("schedule", "the schedules of a job log"),
    StudyResults: Kind("study", "a study"),
}


def has_picture(results: Results, name: str | None = None) -> bool:
    """Whether results have a view, with a picture of that name if there is one."""
    kind = KINDS.get(type(results))
    return kind is not None and (name is None or name in kind.pictures or kind.others)


def view_of(every: Sequence[Results], names: Sequence[str] = (), **options: Any) -> "View":
    """The view of results of one kind; ``names`` are what they are called, by default their folders.

    ``options`` are those of the kind's ``view``.
    Raises ``ScenarioError`` if they are of several kinds, or of one that has no view.
    """
    from altair.utils.schemapi import debug_mode

    kinds = {type(results): KINDS.get(type(results)) for results in every}
    if len(kinds) > 1 or None in kinds.values():
        named = [kind.words if kind else of.__name__ for of, kind in kinds.items()]
        allowed = f"results of one of these kinds: {', '.join(kind.words for kind in KINDS.values())}"
        raise ScenarioError(Problem("RESULTS", f"are {' and '.join(named)}", allowed=allowed))
    (kind,) = kinds.values()
    assert kind is not None, "invariant: there is one"
    with debug_mode(False):  # specifications of fairlane's own are checked by its tests
        made: View = resolve_name(f"fairlane.views.{kind.module}:view")(_named(every, names), **options)
    return made


def _named(every: Sequence[Results], given: Sequence[str]) -> dict[str, Results]:
    """Results by the names of their folders, with as many parents as tell them apart; or by number.

    A folder that is given several times has a number, too.
    """
    names = list(given)
    folders = [results.folder.resolve() if results.folder else None for results in every]
    for depth in range(1, 9):
        if len(set(names)) == len(every):
            break
        names = ["/".join(folder.parts[-depth:]) if folder else str(at) for at, folder in enumerate(folders, 1)]
    if len(set(names)) < len(every):
        names = [folder.name if folder else name for name, folder in zip(names, folders, strict=True)]
        names = [name if names.index(name) == at else f"{name} ({at + 1})" for at, name in enumerate(names)]
    return dict(zip(names, every, strict=True))


def html_of(results: Results) -> str:
    """The view of results in a notebook."""
    from fairlane.views.page import notebook

    return notebook(view_of([results]))


def draw(
    every: Sequence[Results],
    figures: Iterable[str] = (),
    look: Look = LIGHT,
    to: Path | None = None,
    view: "View | None" = None,
) -> list[Path]:
    """Draws pictures of results, by default all but those of pages only, and returns their files.

    They go to ``to``, or to the folder of the results. ``view`` is that of these results, if there is one already.
    Raises ``ResultsError`` if there is no folder or it cannot be written, and ``ScenarioError`` if there is no such
    picture, or nothing to show in it.
    """
    folder = to or (every[0].folder if len(every) == 1 else Path.cwd())
    if folder is None:
        raise ResultsError("the results are only in memory; save them before drawing them")
    view = view or view_of(every)
    for name in KINDS[type(every[0])].pictures:
        if name not in view.pictures:  # nothing to show in it: that of an earlier draw would mislead
            (folder / f"{name}.{look.format}").unlink(missing_ok=True)
    return write_pictures(view, _chosen(view, KINDS[type(every[0])].pictures, figures), folder, look)


def write_pictures(view: "View", pictures: "Mapping[str, list[Chart]]", folder: Path, look: Look = LIGHT) -> list[Path]:
    """Writes pictures of a view by name, and returns their files. Raises ``ResultsError`` if that fails."""
    from fairlane.views.picture import picture

    paths = []
    for name, charts in pictures.items():
        path = folder / f"{name}.{look.format}"
        with writing(path), replacing(path) as scratch:
            scratch.write_bytes(picture(view, charts, look))
        paths.append(path)
    return paths


def plot(results: Results, name: str | None = None) -> Any:
    """A picture of results as a chart of Altair, which notebooks show; by default the first one. Raises as ``draw``."""
    return shown(view_of([results]), KINDS[type(results)].pictures, name)


def shown(view: "View", known: Collection[str], name: str | None = None) -> Any:
    """A picture of a view, of those ``known``, as a chart of Altair. Raises as ``draw``."""
    import altair

    from fairlane.views.picture import figure
    from fairlane.views.style import LIGHT

    pictures = _chosen(view, known, [name] if name else ()) or view.pictures
    if not pictures:
        raise ScenarioError(nothing_in(name or "figure"))
    spec = {**figure(view, next(iter(pictures.values()))), "config": config(LIGHT)}
    return altair.VConcatChart.from_dict(spec, validate=False)


def _chosen(view: "View", known: Collection[str], names: Iterable[str]) -> dict[str, "list[Chart]"]:
    """Pictures by name."""
    pictures = view.pictures
    known = {*known, *pictures}
    wanted = list(names) or list(view.drawn)
    for name in wanted:
        if name not in pictures:
            unknown = Problem.unknown("figure", "figure", name, list(known), name)
            raise ScenarioError(nothing_in(name) if name in known else unknown)
    return {name: pictures[name] for name in wanted}


def nothing_in(name: str) -> Problem:
    """Report a figure that results lack the data for."""
    return Problem("figure", "there is nothing to show in it: the results lack its data", name)


FORMATS = (".png", ".svg", ".pdf", ".html")


def write(view: View, path: Path) -> Path:
    """Writes a view, and returns the path. Raises ``ScenarioError`` if that is not possible."""
    from fairlane.views.page import page
    from fairlane.views.picture import picture

    kind = path.suffix.lower().removeprefix(".")
    if f".{kind}" not in FORMATS:
        raise ScenarioError(Problem("--out", "unknown picture format", str(path), ", ".join(FORMATS)))
    content = page(view).encode() if kind == "html" else picture(view, view.charts, Look(format=kind))  # type: ignore[arg-type]
    try:
        with replacing(path) as scratch:
            scratch.write_bytes(content)
    except OSError as error:
        raise ScenarioError(Problem("", f"cannot be written: {error.strerror}", file=str(path))) from None
    return path
