"""The claims: what a paper reports, in checkable words, and whether a measurement agrees."""

import tomllib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.resources import files

from fairlane.errors import Problem, ScenarioError
from fairlane.reproduce.results import Results

__all__ = ["Check", "Claim", "Finding", "claims_of"]

Finding = tuple[str, bool]
"""What was measured, in words with its band, and whether it is within."""


@dataclass(frozen=True)
class Claim:
    """One statement of a paper."""

    id: str
    paper: str
    where: str
    """Section and figure."""
    setup: str
    """What has to be simulated."""
    claim: str
    """What the paper reports."""
    check: str
    """What has to hold, with its bands."""


@dataclass(frozen=True)
class Check:
    """How a claim is judged."""

    experiments: Sequence[str]
    """Those whose results it needs."""
    judge: Callable[[Results], list[Finding]]
    """What was measured: the claim holds if all of it does."""


def claims_of(paper: str, only: str | None = None) -> list[Claim]:
    """The claims of a paper, or one of them; raises ``ScenarioError`` if there is none of that name."""
    table = tomllib.loads(files("fairlane.reproduce").joinpath("claims.toml").read_text(encoding="utf-8"))
    found = [Claim(**row) for row in table["claim"] if row["paper"] == paper]
    if only is None:
        return found
    names = [claim.id for claim in found]
    if only not in names:
        raise ScenarioError(Problem.unknown("--only", f"claim of {paper}", only, names, only))
    return [claim for claim in found if claim.id == only]
