"""Fitted models in files with a checksum: what has changed since it was saved is refused, not used.

The key ``sha256`` is the SHA-256 of everything else in the file, as JSON with its keys in order.
"""

import json
from collections.abc import Callable, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from fairlane.errors import Problem, ScenarioError
from fairlane.inputs.parse import parse_json
from fairlane.inputs.problems import unfold
from fairlane.inputs.reading import MOST_STORED, read_text
from fairlane.inputs.writing import replacing

__all__ = ["CHECKSUM", "checksum", "load_sealed", "read_sealed", "save_sealed"]

CHECKSUM = "sha256"
"""The key of the checksum."""
_Model = TypeVar("_Model", bound=BaseModel)


def checksum(data: Mapping[str, Any]) -> str:
    """The SHA-256 of plain data, but for its own checksum."""
    rest = {key: value for key, value in data.items() if key != CHECKSUM}
    return sha256(json.dumps(rest, sort_keys=True).encode()).hexdigest()


def save_sealed(model: BaseModel, path: Path) -> None:
    """Writes a model as JSON; raises ``ScenarioError``."""
    data = model.model_dump(mode="json")
    try:
        with replacing(path) as scratch:
            scratch.write_text(json.dumps({CHECKSUM: checksum(data), **data}) + "\n", encoding="utf-8")
    except OSError as error:
        raise ScenarioError(Problem("", f"cannot be written: {error.strerror}", file=str(path))) from error


def load_sealed(model: type[_Model], path: Path) -> _Model:
    """Reads what ``save_sealed`` wrote; raises ``ScenarioError``."""
    try:
        text = read_text(path, MOST_STORED)
    except (OSError, UnicodeDecodeError) as error:
        words = error.strerror if isinstance(error, OSError) else str(error)
        raise ScenarioError(Problem("", f"cannot be read: {words}", file=str(path))) from error
    return read_sealed(model, text, str(path), parse_json, "JSON")


def read_sealed(model: type[_Model], text: str, file: str, parse: Callable[[str], Any], language: str) -> _Model:
    """The model in a text that ``parse`` makes data of; raises ``ScenarioError``."""
    try:
        data = parse(text)
    except ValueError as error:
        raise ScenarioError(Problem("", f"not valid {language}: {error}", file=file)) from None
    if not isinstance(data, dict):
        raise ScenarioError(Problem("", f"not a model: {language} without keys", file=file))
    told = data.pop(CHECKSUM, None)
    try:
        found = model.model_validate(data)
    except ValidationError as error:
        raise ScenarioError(problem.at(file, None) for problem in unfold(error, model)) from None
    if told != checksum(data):
        words = "missing" if told is None else "is not that of the file"
        message = f"{words}: the model has changed since it was fitted, or an earlier version wrote it; fit it again"
        raise ScenarioError(Problem(CHECKSUM, message, file=file))
    return found
