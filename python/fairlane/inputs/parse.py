"""TOML and JSON of unknown origin as data: whatever is wrong with the text is one kind of error."""

import json
import tomllib
from typing import Any

MOST_DEPTH = 40
"""Levels of tables and lists within each other; the deepest of a scenario have six."""


class NestingError(ValueError):
    """Tables or lists within each other deeper than any input needs."""

    def __init__(self) -> None:
        super().__init__(f"tables or lists are nested more than {MOST_DEPTH} deep")


def parse_toml(text: str) -> dict[str, Any]:
    """TOML as data. Raises ``TOMLDecodeError``, and ``NestingError`` where it is nested too deep."""
    try:
        found = tomllib.loads(text)
    except RecursionError:
        raise NestingError from None
    except tomllib.TOMLDecodeError:
        raise
    except ValueError as error:  # as of an integer with thousands of digits
        raise tomllib.TOMLDecodeError(str(error)) from None
    _check_depth(found)
    return found


def parse_json(text: str | bytes) -> Any:
    """JSON as data. Raises ``JSONDecodeError``, and ``NestingError`` where it is nested too deep."""
    try:
        found = json.loads(text)
    except RecursionError:
        raise NestingError from None
    except json.JSONDecodeError:
        raise
    except ValueError as error:  # as of an integer with thousands of digits, or bytes that are no text
        raise json.JSONDecodeError(str(error), "", 0) from None
    _check_depth(found)
    return found


def _check_depth(data: Any) -> None:
    level: list[Any] = [[data]]
    for _ in range(MOST_DEPTH + 2):
        lists = (value.values() if isinstance(value, dict) else value for value in level)
        level = [value for values in lists for value in values if isinstance(value, dict | list)]
        if not level:
            return
    raise NestingError
