"""What of Savoie et al. 2020 is run: experiments with as many placements and periods as wanted."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import polars as pl

from fairlane.errors import ScenarioError
from fairlane.reproduce.paper import Done, Options, Picture
from fairlane.reproduce.savoie2020.cells import Cell
from fairlane.reproduce.savoie2020.experiment import CONTROL, DEFAULT, Experiment, Scale
from fairlane.reproduce.savoie2020.experiments import EXPERIMENTS
from fairlane.reproduce.savoie2020.figures import draw_experiment, draw_progress, draw_rerouted
from fairlane.reproduce.savoie2020.results import Results
from fairlane.results.text import plural

__all__ = ["Measured", "Selection", "select"]


@dataclass
class Measured(Results):
    """What the cells of a selection measured."""

    experiments: Mapping[str, Experiment] = field(default_factory=dict)

    def missing(self, experiment: str) -> Sequence[str]:
        """The experiment itself, unless its treated and its default runs are there, and which cells failed."""
        known = self.experiments.get(experiment)
        if known is None or not self.has(experiment, known.judged):
            return [experiment]
        count = sum(self.failed.get(key, 0) for key in {(experiment, known.judged), self.default(experiment)})
        return [f"{plural(count, 'cell')} of {experiment} that failed"] if count else []

    def tables(self) -> Mapping[str, pl.DataFrame]:
        """A row for each job and placement: of every treatment, and of another routing beside control."""
        found = {}
        for name, experiment in self.experiments.items():
            for treatment in self._shown(experiment):
                found[name if treatment == CONTROL else f"{name}-{treatment}"] = self.jobs(name, treatment)
            cells = self._beside_control(experiment)
            if cells is not None:
                found[name] = cells
        return found

    def draw(self, folder: Path) -> Sequence[Picture]:
        """A figure of each experiment, and one of progress."""
        found = []
        for name, experiment in self.experiments.items():
            shown, cells = self._shown(experiment), self._beside_control(experiment)
            if shown:
                draw_experiment(experiment, self, folder / f"{name}.png", shown)
            elif cells is not None:
                draw_rerouted(experiment, cells, folder / f"{name}.png")
            else:
                continue
            found.append(Picture(f"{name}.png", f"{experiment.figure}: {experiment.title}"))
        static = [name for name in self.experiments if name.endswith(".static") and self.has(name)]
        if static:
            draw_progress(self, static, folder / "progress.png")
            found.append(Picture("progress.png", "Fig. 16: progress"))
        return found

    def _shown(self, experiment: Experiment) -> list[str]:
        return [it for it in experiment.treatments if it != DEFAULT and self.has(experiment.name, it)]

    def _beside_control(self, experiment: Experiment) -> pl.DataFrame | None:
        """Another routing without control, beside control: of the experiment that has the same jobs."""
        return self.rerouted(experiment.name) if experiment.routing is not None else None


@dataclass(frozen=True)
class Selection:
    """Experiments that are run, and how much of each."""

    experiments: Mapping[str, tuple[Experiment, Scale]]
    left_out: Mapping[str, str]
    """Experiments that are not run or are scaled, and how."""

    @property
    def tasks(self) -> Mapping[Cell, Cell]:
        """The cells, each once: experiments may share their default runs."""
        found = [
            Cell(experiment.default if treatment == DEFAULT else name, placement, treatment, scale)
            for name, (experiment, scale) in self.experiments.items()
            for placement in range(1, scale.placements + 1)
            for treatment in experiment.treatments
        ]
        return {cell: cell for cell in found}

    def measured(self, done: Mapping[Cell, Done]) -> Measured:
        """Puts together what came of the cells."""
        experiments = {name: experiment for name, (experiment, _) in self.experiments.items()}
        defaults = {name: experiment.default for name, experiment in experiments.items()}
        results = Results.of(done, defaults)
        return Measured(results.rows, results.defaults, results.failed, experiments)


def select(experiments: Sequence[str], options: Options) -> Selection:
    """Chooses what some experiments take."""
    chosen: dict[str, tuple[Experiment, Scale]] = {}
    left_out: dict[str, str] = {}
    for experiment in (EXPERIMENTS[name] for name in experiments):
        scale = _scale(experiment, options)
        if scale is None:
            left_out[experiment.name] = "too large for a quick look"
            continue
        problem = _problem_with(experiment, scale)
        if problem:
            left_out[experiment.name] = problem
            continue
        chosen[experiment.name] = (_beside(experiment, options.beside), scale)
        if scale != experiment.full:
            left_out[experiment.name] = _scaled(experiment.full, scale)
    return Selection(chosen, left_out)


def _beside(experiment: Experiment, controllers: Sequence[str]) -> Experiment:
    """The experiment with these controllers too, if it has any."""
    if CONTROL not in experiment.treatments:
        return experiment
    return replace(experiment, treatments=tuple(dict.fromkeys([*experiment.treatments, *controllers])))


def _scale(experiment: Experiment, options: Options) -> Scale | None:
    scale = experiment.quick if options.quick else experiment.full
    if scale is None:
        return None
    return Scale(
        min(scale.placements, options.placements or scale.placements),
        min(scale.periods, options.periods or scale.periods),
        scale.period,
        scale.draws,
    )


def _problem_with(experiment: Experiment, scale: Scale) -> str | None:
    """Why it cannot be run here, if so: a routing that this simulator does not have, traces that are not there."""
    try:
        experiment.phases(1, scale)
    except ScenarioError as error:
        return str(error)
    return None


def _scaled(full: Scale, scale: Scale) -> str:
    pairs = (("placements", "placements"), ("periods", "iterations"), ("period", "P"), ("draws", "variants"))
    return ", ".join(
        f"{words} {getattr(scale, key)} of {getattr(full, key)}"
        for key, words in pairs
        if getattr(scale, key) != getattr(full, key)
    )
