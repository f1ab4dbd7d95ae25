"""Analyses of a run: from the longest wait back to its cause, and where the time of a job's ranks went."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from fairlane.core.wording import plural, seconds
from fairlane.sim.analysis.links import roots
from fairlane.sim.analysis.result import Analysis
from fairlane.views.analysis import ranks, waits, walk
from fairlane.views.analysis.ranks import which
from fairlane.views.counters import UNSATURATED, roots_table
from fairlane.views.kinds import shown, write, write_pictures
from fairlane.views.model import Chart, View
from fairlane.views.tables import Table

__all__ = ["PAGE", "PICTURES", "draw", "plot", "view"]

PICTURES = ("walk", "iterations", "waits", "delays", "breakdown", "flits-waits", "flits")
"""The pictures that there may be."""
PAGE = "analysis.html"
MOST_ROOTS = 6
"""Roots of congestion that a terminal lists."""


def view(analysis: Analysis) -> View:
    """Everything that was found."""
    meta = analysis.run.meta
    terms = {"folder": analysis.run.folder, "scenario": meta.scenario, "seed": meta.seed, "version": meta.version}
    return View(
        title=f"{meta.scenario}: why {analysis.job} waited",
        headline=walk.headline(analysis.walk),
        facts=[_facts(analysis)],
        parts=list(_parts(analysis)),
        remarks=[
            *walk.cause(analysis),
            *waits.remarks(analysis),
            *([] if roots(analysis.run) else [UNSATURATED]),
            *map(str, meta.notes),
        ],
        provenance={"run": terms},
    )


def draw(made: View, folder: Path) -> list[Path]:
    """Writes the pictures of a view that there are data for, and its page, into a folder, and returns their paths."""
    return [*write_pictures(made, made.pictures, folder), write(made, folder / PAGE)]


def plot(analysis: Analysis, name: str) -> Any:
    """A picture as a chart of Altair. Raises ``ScenarioError`` if there is no such picture or nothing to show in it."""
    return shown(view(analysis), PICTURES, name)


def _parts(analysis: Analysis) -> Iterator[Table | Chart]:
    yield from walk.parts(analysis)
    if every := roots(analysis.run):
        yield roots_table(every, MOST_ROOTS)
    yield from ranks.iterations(analysis)
    yield from waits.parts(analysis)
    yield from ranks.parts(analysis)
    yield from waits.flits(analysis)


def _facts(analysis: Analysis) -> str:
    """Name the run, and the stretch of it that was analysed."""
    meta, span = analysis.run.meta, analysis.chosen.span
    partial = " (partial: interrupted)" if meta.partial else ""
    facts = [f"{meta.scenario}, {seconds(meta.simulated_s)} simulated, seed {meta.seed}{partial}"]
    iterations = f", {plural(analysis.iterations.height + 1, 'iteration')}" if span.iteration is not None else ""
    facts.append(f"{analysis.job}: {plural(analysis.breakdown.height, 'rank')}{iterations}")
    if analysis.isolated is not None:
        alone = analysis.isolated.span.seconds
        compared = f"{span.seconds / alone:.2f} times that of the isolated run, {seconds(alone)}"
        facts.append(f"{span.name}: {which(span)}, {seconds(span.seconds)}, {compared}")
    else:
        name = "analysed" if span.iteration is None else span.name
        facts.append(f"{name}: {which(span)}, {seconds(span.seconds)}; no isolated run to compare with")
    return "; ".join(facts)
