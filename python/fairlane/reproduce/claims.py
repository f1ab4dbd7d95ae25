"""The claims: what a paper reports, in checkable words."""

import tomllib
from dataclasses import dataclass
from importlib.resources import files

from fairlane.errors import Problem, ScenarioError

__all__ = ["Claim", "claims_of"]


@dataclass(frozen=True)
class Claim:
    """One statement of a paper."""

    id: str
    where: str
    """Section and figure."""
    setup: str
    """What has to be simulated."""
    claim: str
    """What the paper reports."""
    check: str
    """What has to hold, with its bands."""


def claims_of(paper: str, only: str | None = None) -> list[Claim]:
    """The claims of a paper, or one of them; raises ``ScenarioError`` if there is none of that name."""
    text = files("fairlane.reproduce").joinpath(paper, "claims.toml").read_text(encoding="utf-8")
    found = [Claim(**row) for row in tomllib.loads(text)["claim"]]
    if only is None:
        return found
    names = [claim.id for claim in found]
    if only not in names:
        raise ScenarioError(Problem.unknown("--only", f"claim of {paper}", only, names, only))
    return [claim for claim in found if claim.id == only]
