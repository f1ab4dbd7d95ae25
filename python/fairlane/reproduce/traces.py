"""Where recorded traces are: in the folder that ``FAIRLANE_TRACES`` names, or with the sources."""

import os
from pathlib import Path

from fairlane.errors import Problem, ScenarioError

__all__ = ["TRACES", "trace"]

TRACES = "FAIRLANE_TRACES"
"""The environment variable that names the folder with recorded traces."""


def trace(name: str) -> Path:
    """A recorded trace; raises ``ScenarioError`` if it is in neither folder."""
    named = [Path(os.environ[TRACES])] if TRACES in os.environ else []
    folders = [*named, Path(__file__).parents[3] / "tests" / "data" / "traces"]
    file = f"{name}.tar.zst"
    found = next((folder / file for folder in folders if (folder / file).is_file()), None)
    if found is None:
        words = f"there is no {file} in {' or in '.join(map(str, folders))}"
        raise ScenarioError(Problem(TRACES, words, allowed="the folder that holds it"))
    return found.resolve()
