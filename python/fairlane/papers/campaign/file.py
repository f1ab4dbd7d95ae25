"""The file ``campaign.toml``: what the jobs do, which scenario is the model, what is fitted, and what was not known."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import Field, PrivateAttr, field_validator, model_validator

from fairlane.core.errors import Problem, ScenarioError
from fairlane.core.units import Duration, Size
from fairlane.inputs.document import Document
from fairlane.inputs.problems import Problems, located
from fairlane.inputs.table import Table
from fairlane.model.workload import WORKLOADS
from fairlane.papers.space import KINDS, Parameter, Value

FILE = "campaign.toml"
"""Its name in the folder of a campaign."""
NONE = "none"
"""The aggressor of isolated runs."""
MILLISECOND = 10**9


class CampaignParameter(Parameter):
    """A parameter of the model: fitted on isolated runs, or unknown."""

    fit: bool = False
    """Whether ``campaign fit`` determines its value on isolated runs; if not, it is an axis of the map."""

    @model_validator(mode="after")
    def _of_the_scenario(self) -> Self:
        tables = {"": self, **{f"levels.{name}.": level for name, level in self.levels.items()}}
        wrong = [
            Problem(at + key, "has no effect in a campaign, which has no studies", allowed="scenario")
            for at, table in tables.items()
            for key in ("set", "rules", "of")
            if getattr(table, key)
        ]
        if wrong:
            raise Problems(*wrong)
        return self

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
            raise ScenarioError(Problem(key, str(error), text, f"a value as {self.default}")) from None


class Measure(Table):
    """Length and number of the simulations of a cell."""

    warm_up: int = Field(default=5, ge=0)
    """First iterations of the victim, which are not measured."""
    iterations: int = Field(default=1000, ge=2)
    """Maximum number of measured iterations of the victim."""
    isolated: int = Field(default=5, ge=2)
    """Measured iterations of an isolated run; they hardly differ from each other."""
    least: int = Field(default=20, ge=2)
    """Minimum number of measured iterations beside an aggressor."""
    span: Duration = Field(default=20 * MILLISECOND, gt=0)
    """Simulated time beside an aggressor after which a run ends, if it has ``least`` iterations by then."""
    limit: Duration = Field(default=2000 * MILLISECOND, gt=0)
    """Maximum simulated time of a run. A run that has fewer than ``least`` iterations by then is an error."""
    replicates: int = Field(default=3, ge=1)
    """Simulations of each cell, with different seeds and start times of the victim."""
    stagger: Duration = Field(default=2 * MILLISECOND, ge=0)
    """The aggressor starts at time zero, the victim at a random time from zero to this one."""


class Judging(Table):
    """The cells on which the model is chosen, those on which its predictions are judged, and the bars for these."""

    choose: list[int] = Field(default_factory=list)
    """Numbers of nodes of the cells on which the model is chosen and parameters are fitted; empty: all."""
    judge: list[int] = Field(default_factory=list)
    """Numbers of nodes of the cells on which predictions are judged; empty: all."""
    smallest: Size = 512
    """Cells of a smaller message size are shown and not judged."""
    isolated_within: float = Field(default=0.15, gt=0)
    """Maximum relative error of the predicted median of every isolated run."""
    slow_above: float = Field(default=1.3, gt=1)
    """A cell counts as slowed down if its measured ratio of means is above this."""
    factor: float = Field(default=1.5, gt=1)
    """A predicted ratio of a cell that is slowed down is right if it is within this factor of the measured one."""
    slow_share: float = Field(default=0.8, ge=0, le=1)
    """Minimum share of the cells that are slowed down whose predicted ratio is right."""
    calm_below: float = Field(default=1.1, gt=1)
    """A cell counts as not slowed down if its measured ratio of means is at most this."""
    calm_at_most: float = Field(default=1.2, gt=1)
    """A predicted ratio of a cell that is not slowed down is right if it is at most this."""
    calm_share: float = Field(default=0.9, ge=0, le=1)
    """Minimum share of the cells that are not slowed down whose predicted ratio is right."""
    spearman: float | None = Field(default=0.8, ge=-1, le=1)
    """Minimum rank correlation (Spearman) of measured and predicted ratios."""
    every_at_most: float | None = Field(default=None, gt=1)
    """Maximum of all predicted ratios; for machines on which no cell was slowed down."""


class CampaignFile(Table):
    """The tables of ``campaign.toml``."""

    title: str = Field(min_length=1)
    """The machine, in a few words."""
    sources: list[str] = Field(min_length=1)
    """Sources of the measured figures, with licences; shown wherever the figures are."""
    scenario: str = "scenario.toml"
    """The model: a scenario without jobs."""
    measured: str
    """The table of cells and measured values: CSV, plain or compressed with xz."""
    placements: str | None = None
    """The table of nodes of each run: CSV with the columns run, job and node, in the order of ranks."""
    placement: Literal["random", "linear"] | None = None
    """In place of ``placements``, if the nodes are not known: how jobs are placed, anew in every replicate."""
    where: dict[str, str | int] = Field(default_factory=dict)
    """Values of columns by which rows of the measured table are selected."""
    job: dict[str, Any] = Field(default_factory=dict)
    """Keys of all jobs of the scenario, as ``service_level`` and ``rails``."""
    victims: dict[str, dict[str, Any]] = Field(min_length=1)
    """The workload of each victim, by its name in the measured table. The cell gives the message size."""
    aggressors: dict[str, dict[str, Any]] = Field(default_factory=dict)
    """The workload of each aggressor, by its name in the measured table. The cell gives burst and pause."""
    measure: Measure = Field(default_factory=Measure)
    """Length and number of the simulations of a cell."""
    judging: Judging = Field(default_factory=Judging)
    """Bars, and the cells that they apply to."""
    parameter: list[CampaignParameter] = Field(default_factory=list)
    """Parameters that are fitted on isolated runs, or that are unknown."""
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
            message = "is missing" if self.placements is None else "cannot be given together with placement"
            allowed = 'placements = FILE, or placement = "random" or "linear"'
            raise Problems(Problem("placements", message, self.placements, allowed))
        names = [parameter.name for parameter in self.parameter]
        again = [
            Problem(f"parameter[{at}].name", "duplicate", name) for at, name in enumerate(names) if name in names[:at]
        ]
        if again:
            raise Problems(*again)
        return self

    @classmethod
    def load(cls, folder: Path, *, allow_code: bool = False) -> Self:
        """Reads the file of a folder. Raises ``ScenarioError``."""
        file = folder / FILE
        if not file.is_file():
            allowed = "a folder with campaign.toml"
            raise ScenarioError(Problem("DIR", f"has no {FILE}", str(folder), allowed))
        document = Document.read(file, allow_code=allow_code)
        campaign = cls.from_document(document)
        campaign._document = document
        return campaign

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
        return [parameter for parameter in self.parameter if parameter.fit]

    @property
    def unknown(self) -> Sequence[CampaignParameter]:
        """The parameters that remain unknown: the axes of the map."""
        return [parameter for parameter in self.parameter if not parameter.fit]

    def changes(self, values: Mapping[str, float | str]) -> Iterator[tuple[str, Any]]:
        """Keys of the scenario, by dotted path, and what values of the parameters set them to."""
        for parameter in self.parameter:
            yield from parameter.change(values.get(parameter.name, parameter.usual), ()).scenario.items()
