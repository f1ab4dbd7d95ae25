"""The file ``campaign.toml``: what the jobs do, which scenario is the model, what is fitted, and what was not known."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import Field, PrivateAttr, field_validator, model_validator

from fairlane.errors import Problem, ScenarioError
from fairlane.inputs.document import Document
from fairlane.inputs.problems import Problems, located
from fairlane.inputs.table import Table
from fairlane.reproduce.space import KINDS, Parameter, Value
from fairlane.units import Duration, Size
from fairlane.workload import WORKLOADS

FILE = "campaign.toml"
"""Its name in the folder of a campaign."""
NONE = "none"
"""The aggressor of isolated runs."""
MILLISECOND = 10**9


class CampaignParameter(Parameter):
    """A parameter of the model: fitted on isolated runs, or not known."""

    fit: bool = False
    """Whether ``campaign fit`` looks for its value; else it is an axis of the map."""

    def value_of(self, text: str) -> Value:
        """The value that a text names. Raises ``ScenarioError`` if there is none."""
        key = f"--set {self.name}"
        if self.levels:
            if text not in self.levels:
                raise ScenarioError(Problem.unknown(key, "level", text, [*self.levels], text))
            return text
        try:
            return KINDS[self.unit].parse(text) if self.unit else float(text)
        except ValueError as error:
            raise ScenarioError(Problem(key, str(error), text, f"as {self.default}")) from None


class Measure(Table):
    """How long a cell is simulated, and how often."""

    warm_up: int = Field(default=5, ge=0)
    """Iterations of the victim that do not count."""
    iterations: int = Field(default=1000, ge=2)
    """Most iterations of the victim that are measured."""
    isolated: int = Field(default=5, ge=2)
    """Iterations of isolated runs, which differ little."""
    least: int = Field(default=20, ge=2)
    """Fewest iterations beside an aggressor; beyond them a run ends with ``span``."""
    span: Duration = Field(default=20 * MILLISECOND, gt=0)
    """Simulated time beside an aggressor after which a run with the fewest iterations ends."""
    limit: Duration = Field(default=2000 * MILLISECOND, gt=0)
    """Simulated time after which a run ends anyway."""
    replicates: int = Field(default=3, ge=1)
    """Simulations of a cell, each with a start of the victim and seeds of its own."""
    stagger: Duration = Field(default=2 * MILLISECOND, ge=0)
    """The victim starts at a random instant up to this one, the aggressor at zero."""


class Judging(Table):
    """On which cells variants were chosen, on which the predictions are judged, and the bars."""

    choose: list[int] = Field(default_factory=list)
    """Numbers of nodes of the cells on which variants are chosen and parameters fitted; empty for all."""
    judge: list[int] = Field(default_factory=list)
    """Numbers of nodes of the cells that are judged; empty for all."""
    smallest: Size = 512
    """The smallest message size that is judged."""
    isolated_within: float = Field(default=0.15, gt=0)
    """How far the predicted median of an isolated run may be from the measured one, as a share."""
    slow_above: float = Field(default=1.3, gt=1)
    """A cell counts as slowed down from this measured ratio of means on."""
    factor: float = Field(default=1.5, gt=1)
    """The predicted ratio of such a cell is within this factor of the measured one ..."""
    slow_share: float = Field(default=0.8, ge=0, le=1)
    """... in this share of these cells."""
    calm_below: float = Field(default=1.1, gt=1)
    """A cell counts as not slowed down up to this measured ratio of means."""
    calm_at_most: float = Field(default=1.2, gt=1)
    """The predicted ratio of such a cell is at most this ..."""
    calm_share: float = Field(default=0.9, ge=0, le=1)
    """... in this share of these cells."""
    spearman: float | None = Field(default=0.8, ge=-1, le=1)
    """Least rank correlation of measured and predicted ratios."""
    every_at_most: float | None = Field(default=None, gt=1)
    """Every predicted ratio is at most this; for machines on which nothing was slowed down."""


class CampaignFile(Table):
    """The tables of ``campaign.toml``."""

    title: str = Field(min_length=1)
    """The machine, in a few words."""
    sources: list[str] = Field(min_length=1)
    """Where the measured figures are from, with licences; shown wherever they are."""
    scenario: str = "scenario.toml"
    """The model: a scenario without jobs."""
    measured: str
    """The table of cells and measured values, CSV, plain or xz."""
    placements: str | None = None
    """The table of nodes of each run: CSV with the columns run, job and node, in the order of ranks."""
    placement: Literal["random", "linear"] | None = None
    """Without known nodes: how each job is placed, anew in every replicate."""
    where: dict[str, str | int] = Field(default_factory=dict)
    """Values of columns of the measured table that select its rows."""
    job: dict[str, Any] = Field(default_factory=dict)
    """Keys that all jobs have, as ``service_level`` and ``rails``."""
    victims: dict[str, dict[str, Any]] = Field(min_length=1)
    """The workload of each victim by its name in the table; the message size is the cell's."""
    aggressors: dict[str, dict[str, Any]] = Field(default_factory=dict)
    """The workload of each aggressor by its name in the table; bursts and pauses are the cell's."""
    measure: Measure = Field(default_factory=Measure)
    """How long and how often a cell is simulated."""
    judging: Judging = Field(default_factory=Judging)
    """Bars, and the cells on which they are asked."""
    parameter: list[CampaignParameter] = Field(default_factory=list)
    """Parameters that are fitted on isolated runs, or that are not known."""
    _document: Document = PrivateAttr()

    @field_validator("victims", "aggressors")
    @classmethod
    def _workloads(cls, given: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
        wrong, known = [], list(WORKLOADS)
        for name, workload in given.items():
            if name == NONE:
                wrong.append(Problem(name, "is the name of isolated runs", allowed="another name"))
            of = str(workload.get("name"))
            if not of.endswith(".py") and ".py:" not in of and of not in known:
                wrong.append(Problem.unknown(f"{name}.name", "workload", of, known, of))
        if wrong:
            raise Problems(*wrong)
        return given

    @model_validator(mode="after")
    def _one_placement(self) -> Self:
        if (self.placements is None) == (self.placement is None):
            raise Problems(Problem("placements", "needs one of both", allowed="placements or placement"))
        names = [one.name for one in self.parameter]
        again = [Problem(f"parameter[{at}].name", "duplicate", it) for at, it in enumerate(names) if it in names[:at]]
        if again:
            raise Problems(*again)
        return self

    @classmethod
    def load(cls, folder: Path, *, allow_code: bool = False) -> Self:
        """Reads the file of a folder. Raises ``ScenarioError``."""
        file = folder / FILE
        if not file.is_file():
            words = "a folder with campaign.toml"
            raise ScenarioError(Problem("DIR", f"has no {FILE}", str(folder), words))
        document = Document.read(file, allow_code=allow_code)
        found = cls.from_document(document)
        found._document = document
        return found

    def refuse(self, *problems: Problem) -> ScenarioError:
        """The error about keys of this file, with their lines."""
        return ScenarioError(located(problems, self._document))

    @property
    def folder(self) -> Path:
        """The folder of the campaign."""
        return self._document.folder

    @property
    def fitted(self) -> Sequence[CampaignParameter]:
        """The parameters that are fitted on isolated runs."""
        return [one for one in self.parameter if one.fit]

    @property
    def unknown(self) -> Sequence[CampaignParameter]:
        """The parameters that remain unknown: the axes of the map."""
        return [one for one in self.parameter if not one.fit]

    def changes(self, values: Mapping[str, float | str]) -> Iterator[tuple[str, Any]]:
        """Keys of the scenario, by dotted path, and what values of the parameters set them to."""
        for one in self.parameter:
            yield from one.change(values.get(one.name, one.usual), ()).scenario.items()
