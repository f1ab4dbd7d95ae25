"""The claims: what a paper reports, in checkable words."""

import tomllib
from collections.abc import Sequence
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


def claims_of(paper: str, only: str | Sequence[str] = ()) -> list[Claim]:
    """The claims of a paper, or one or some of them; raises ``ScenarioError`` for a name that none of them has."""
    only = [only] if isinstance(only, str) else only
    text = files("fairlane.reproduce.frames").joinpath(paper, "claims.toml").read_text(encoding="utf-8")
    found = [Claim(**row) for row in tomllib.loads(text)["claim"]]
    names = [claim.id for claim in found]
    if unknown := [one for one in only if one not in names]:
        raise ScenarioError(Problem.unknown("--only", f"claim of {paper}", unknown[0], names, unknown[0]))
    return [claim for claim in found if not only or claim.id in only]
