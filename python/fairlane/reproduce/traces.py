"""Where recorded traces are: in the folder that ``FAIRLANE_TRACES`` names, or with the sources."""

import os
from pathlib import Path

from fairlane.errors import Problem, ScenarioError

__all__ = ["TRACES", "trace"]

TRACES = "FAIRLANE_TRACES"
"""The environment variable that names the folder with recorded traces."""


def trace(name: str) -> Path:
    """A recorded trace; raises ``ScenarioError`` if it is in neither folder."""
    folders = [Path(__file__).parents[3] / "tests" / "data" / "traces"]
    if TRACES in os.environ:
        folders.insert(0, Path(os.environ[TRACES]))
    file = f"{name}.tar.zst"
    found = next((folder / file for folder in folders if (folder / file).is_file()), None)
    if found is None:
        words = f"{' and '.join(map(str, folders))}: no {file}"
        raise ScenarioError(Problem(TRACES, words, allowed="a folder with it, as tests/data/traces/README.md says"))
    return found.resolve()
