"""Data in files with a checksum: what has changed since it was saved is found.

The key ``sha256`` is the SHA-256 of everything else in the file, as JSON with its keys in order. A file is TOML if that
is its suffix, else JSON.
"""

import json
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

from fairlane.errors import Problem, ScenarioError
from fairlane.inputs.parse import parse_json, parse_toml
from fairlane.inputs.reading import MOST_STORED, read_text
from fairlane.inputs.writing import replacing

CHECKSUM = "sha256"
"""The key of the checksum."""


def checksum(data: Mapping[str, Any]) -> str:
    """The SHA-256 of plain data, but for its own checksum; a date, which TOML can hold, counts as its text."""
    rest = {key: value for key, value in data.items() if key != CHECKSUM}
    return sha256(json.dumps(rest, sort_keys=True, default=str).encode()).hexdigest()


def save_sealed(data: Mapping[str, Any], path: Path) -> None:
    """Writes plain data with its checksum; raises ``ScenarioError``."""
    if path.suffix == ".toml":
        import tomlkit

        text = tomlkit.dumps({CHECKSUM: checksum(parse_toml(tomlkit.dumps(data))), **data})
    else:
        text = json.dumps({CHECKSUM: checksum(data), **data}) + "\n"
    try:
        with replacing(path) as scratch:
            scratch.write_text(text, encoding="utf-8")
    except OSError as error:
        raise ScenarioError(Problem("", f"cannot be written: {error.strerror}", file=str(path))) from error


def load_sealed(path: Path) -> tuple[dict[str, Any], Problem | None]:
    """The data of a file, and what is wrong with its checksum if anything is.

    Raises ``ScenarioError`` if the file cannot be read or has no keys.
    """
    parse, language = (parse_toml, "TOML") if path.suffix == ".toml" else (parse_json, "JSON")
    try:
        data = parse(read_text(path, MOST_STORED))
    except OSError as error:
        raise ScenarioError(Problem("", f"cannot be read: {error.strerror}", file=str(path))) from error
    except ValueError as error:
        raise ScenarioError(Problem("", f"not valid {language}: {error}", file=str(path))) from None
    if not isinstance(data, dict):
        raise ScenarioError(Problem("", f"not a model: {language} without keys", file=str(path)))
    given = data.pop(CHECKSUM, None)
    if given == checksum(data):
        return data, None
    words = "missing" if given is None else "is not that of the file"
    message = f"{words}: the file has changed since it was written; make it again"
    return data, Problem(CHECKSUM, message, file=str(path))
