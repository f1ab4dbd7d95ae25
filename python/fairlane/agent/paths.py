"""Paths in agent.toml: relative ones are relative to its folder."""

from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator

from fairlane.inputs.document import current_document


def _in_folder(path: Path) -> Path:
    return current_document.get().folder / path


FilePath = Annotated[Path, AfterValidator(_in_folder)]
"""A model's field that holds a path."""
