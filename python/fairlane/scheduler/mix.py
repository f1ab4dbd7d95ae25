"""Which communication patterns the jobs of a log have, as logs do not say: drawn by shares from a file.

For example::

    [[pattern]]
    kind = "many-to-many"
    share = 0.3
    [[pattern]]
    kind = "hybrid"
    unit = 8
    share = 0.7
"""

from pathlib import Path
from typing import Literal

import tomlkit
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from tomlkit.exceptions import TOMLKitError

from fairlane.errors import Problem, ScenarioError
from fairlane.inputs.problems import unfold
from fairlane.placement import Communication
from fairlane.seeds import Purpose, stream

__all__ = ["PatternMix", "Share", "read_mix"]


class Share(BaseModel):
    """A pattern and how many jobs have it."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)

    kind: Literal["nearest neighbour", "many-to-many", "hybrid", "unclear"]
    """What it is."""
    unit: int | None = Field(None, ge=1)
    """Its local unit, in hosts."""
    share: float = Field(gt=0)
    """How many of the jobs have it, compared with the other shares."""


class PatternMix(BaseModel):
    """Patterns by share."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)

    pattern: list[Share] = Field(min_length=1)
    """The patterns."""

    def of(self, job: int, seed: int) -> Communication:
        """The pattern of a job of the log: the same for every allocator."""
        total = sum(one.share for one in self.pattern)
        at = float(stream(seed, Purpose.PATTERN, job).random()) * total
        for one in self.pattern:
            at -= one.share
            if at < 0:
                break
        return Communication(one.kind, one.unit)


def read_mix(path: Path) -> PatternMix:
    """Reads a mix; raises ``ScenarioError`` with what is wrong."""
    try:
        data = tomlkit.parse(path.read_text(encoding="utf-8")).unwrap()
        return PatternMix.model_validate(data)
    except OSError as error:
        raise ScenarioError(Problem("", f"cannot be read: {error.strerror}", file=str(path))) from None
    except (TOMLKitError, UnicodeDecodeError) as error:
        raise ScenarioError(Problem("", f"not valid TOML: {error}", file=str(path))) from None
    except ValidationError as error:
        raise ScenarioError(problem.at(str(path), None) for problem in unfold(error, PatternMix)) from None
