"""Paths in agent.toml: relative ones are relative to its folder."""

from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator

from fairlane.errors import Problem, ScenarioError
from fairlane.inputs.document import Document, current_document


def _in_folder(path: Path) -> Path:
    return current_document.get().folder / path


FilePath = Annotated[Path, AfterValidator(_in_folder)]
"""A model's field that holds a path."""


def journal_of(file: Path) -> Path:
    """The journal that agent.toml names. The rest of the file is not read, which takes seconds less than all of it."""
    document = Document.read(file)
    path = document.data.get("journal")
    if not isinstance(path, str):
        message = "missing" if path is None else "is not a path"
        raise ScenarioError(document.locate(Problem("journal", message, path, "a path"), ("journal",)))
    return document.folder / path
