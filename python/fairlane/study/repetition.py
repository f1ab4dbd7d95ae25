"""Repetitions of the conditions of a study: placements, seeds of the scenario, and replicates that have both."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, NamedTuple, Self

from pydantic import BeforeValidator, Discriminator, Field, Tag, model_validator

from fairlane.core.errors import Problem
from fairlane.core.seeds import LARGEST_SEED
from fairlane.inputs.problems import Problems, validated
from fairlane.inputs.table import Table
from fairlane.model.placement import LIST
from fairlane.model.scenario.models import Placement
from fairlane.model.scenario.observe import Share

MOST_PLACEMENTS = 100_000
"""Largest number of placements that a study can request."""
MOST_SEEDS = 10_000
"""Largest number of seeds that a placement can have of its own."""


class Repetition(NamedTuple):
    """A repetition of a condition."""

    number: int
    """Number of its placement, from 0."""
    placement: Mapping[str, Any]
    """Keys of the placement; empty if it is the scenario's."""
    seed: int
    """Seed of the scenario."""
    key: str
    """The key of the study that sets the seed; empty if it is the scenario's own."""


Seed = Annotated[int, Field(strict=True, ge=0, le=LARGEST_SEED)]
"""A seed of the scenario."""


class PlacementSeeds(Table):
    """Placements by the scenario's placement policy that differ in their seeds."""

    count: int = Field(strict=True, ge=1, le=MOST_PLACEMENTS)
    """Number of placements."""
    first: Seed = 1
    """The seed of the first; those of the others follow one by one."""

    def tables(self) -> list[dict[str, Any]]:
        """A table for each placement."""
        if (last := self.first + self.count - 1) > LARGEST_SEED:
            words, most = "the seed of the last placement would be out of range", self.first + LARGEST_SEED - last
            raise Problems(Problem("first", words, self.first, f"at most {most}"))
        return [{"seed": seed} for seed in range(self.first, self.first + self.count)]


def listed_placements(given: Any) -> Any:
    """A list of placements from their number (seeds from 1) or ``{ count, first }``; a list is returned as it is."""
    if isinstance(given, int) and not isinstance(given, bool):
        if not 0 < given <= MOST_PLACEMENTS:
            raise Problems(Problem("", "out of range", given, f"1 to {MOST_PLACEMENTS}"))
        return PlacementSeeds(count=given).tables()
    if isinstance(given, dict):
        return validated(PlacementSeeds, given).tables()
    return given


def _placements(given: Any) -> Any:
    """A list of tables."""
    placements = listed_placements(given)
    if not isinstance(placements, list):
        return placements
    return [{"name": entry} if isinstance(entry, str) else _listed(entry) for entry in placements]


def _listed(given: Any) -> Any:
    """``hosts`` without a name is an explicit list."""
    return {"name": LIST, **given} if isinstance(given, dict) and "hosts" in given else given


class SeedsByPlacement(Table):
    """Seeds of the scenario that no two placements share: what one placement shows is independent of the others."""

    per_placement: int = Field(ge=1, le=MOST_SEEDS)
    """Number of seeds of each placement."""
    first: Seed = 1
    """The first seed of the first placement; the others follow one by one."""

    def of(self, placement: int) -> list[int]:
        """The seeds of a placement, by its number from 0."""
        first = self.first + placement * self.per_placement
        return [*range(first, first + self.per_placement)]


def _seeds(given: Any) -> Any:
    """Seeds for all placements are a list, seeds of each placement a table."""
    if not isinstance(given, list | dict | SeedsByPlacement):
        words = "neither a list nor a table"
        raise Problems(Problem("", words, given, "a list, as [1, 2], or { per_placement = 5, first = 1 }"))
    return given


Seeds = Annotated[
    Annotated[list[Seed], Field(min_length=1), Tag("list[seed]")] | Annotated[SeedsByPlacement, Tag("table[seeds]")],
    Discriminator(lambda given: "list[seed]" if isinstance(given, list) else "table[seeds]"),
    BeforeValidator(_seeds),
]
"""The same seeds for all placements, or different ones."""


class Repeat(Table):
    """As many replicates of each condition as a precision needs."""

    precision: Share
    """What half of the 95% interval of every effect, the mean over jobs, may be at most, as ``"0.5%"``."""
    at_most: int = Field(ge=3)
    """Replicates of all conditions together after which none is added; no fewer than those that are always there."""
    at_least: int = Field(default=5, ge=3)
    """Replicates of each condition that are always there."""
    of: Literal["improvement", "w"] | None = None
    """The effect: by default the improvement of every treatment, or W of a study without treatments."""
    length: Literal["duration", "choose"] = "duration"
    """Simulated time of each replicate: the scenario's, or a shorter one with which the precision costs least. That is
    chosen after ``at_least`` replicates of the scenario's duration."""
    bias: Share | None = None
    """By how much every effect may differ between the chosen length and the scenario's duration; by default
    ``precision``."""

    @property
    def accepted(self) -> float:
        """The difference that is accepted."""
        return self.precision if self.bias is None else self.bias

    @model_validator(mode="after")
    def _biased(self) -> Self:
        if self.bias is not None and self.length == "duration":
            words = "every replicate lasts for the scenario's duration"
            raise Problems(Problem("bias", words, self.bias, 'only with length = "choose"'))
        return self


def _repeat(given: Any) -> Any:
    """A number of replicates, or a table."""
    if isinstance(given, dict):
        return validated(Repeat, given)
    if not isinstance(given, int | Repeat) or isinstance(given, bool):
        allowed = 'a number, as 20, or { precision = "0.5%", at_most = 200 }'
        raise Problems(Problem("", "neither a number nor a table", given, allowed))
    if isinstance(given, int) and not 0 < given <= MOST_PLACEMENTS:
        raise Problems(Problem("", "out of range", given, f"1 to {MOST_PLACEMENTS}"))
    return given


Placements = Annotated[
    list[dict[str, Any]] | None,
    BeforeValidator(_placements, json_schema_input_type=int | PlacementSeeds | list[str | Placement] | None),
]
"""Placements as a list of tables."""
Repeats = Annotated[int | Repeat | None, BeforeValidator(_repeat)]
"""A number of replicates, or a precision."""
