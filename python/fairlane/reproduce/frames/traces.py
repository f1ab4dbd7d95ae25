"""Where recorded traces and job logs are: in folders that environment variables name, or with the sources.

Traces are in the folder that ``FAIRLANE_TRACES`` names, job logs in that of ``FAIRLANE_JOBS``.
"""

import os
from pathlib import Path

from fairlane.errors import Problem, ScenarioError

__all__ = ["JOBS", "TRACES", "job_log", "trace"]

TRACES = "FAIRLANE_TRACES"
"""The environment variable that names the folder with recorded traces."""
JOBS = "FAIRLANE_JOBS"
"""The environment variable that names the folder with job logs."""


def trace(name: str) -> Path:
    """A recorded trace; raises ``ScenarioError`` if it is in neither folder."""
    return _recording(f"{name}.tar.zst", TRACES, "traces")


def job_log(name: str) -> Path:
    """A job log; raises ``ScenarioError`` if it is in neither folder."""
    return _recording(f"{name}.swf.gz", JOBS, "jobs")


def _recording(file: str, variable: str, folder: str) -> Path:
    named = [Path(os.environ[variable])] if variable in os.environ else []
    folders = [*named, Path(__file__).parents[4] / "tests" / "data" / folder]
    found = next((folder / file for folder in folders if (folder / file).is_file()), None)
    if found is None:
        words = f"there is no {file} in {' or in '.join(map(str, folders))}"
        raise ScenarioError(Problem(variable, words, allowed="the folder that holds it"))
    return found.resolve()
