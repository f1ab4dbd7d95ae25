"""Dry run: a file keeps what would be in force, and nothing else changes."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

from pydantic import PrivateAttr
from typing_extensions import override

from fairlane.agent.backends.base import Backend
from fairlane.agent.jobs import Setting, levels_of, ordered
from fairlane.agent.system import BackendError
from fairlane.errors import ScenarioError
from fairlane.inputs.files import parse_json, read_text, write_text


class DryRun(Backend):
    """Changes nothing: remembers in a file beside the journal which settings would be in force."""

    for_connected: ClassVar[bool] = True
    _file: Path = PrivateAttr(Path("agent.dry-run.json"))

    def keep_in(self, file: Path) -> None:
        """Sets the file that remembers the settings."""
        self._file = file

    @property
    @override
    def sets_weights(self) -> bool:
        return True

    @override
    def save(self) -> str:
        return json.dumps([setting.written() for setting in self._settings()])

    @override
    def write(self, settings: Sequence[Setting]) -> None:
        try:
            write_text(self._file, json.dumps([setting.written() for setting in settings]) + "\n")
        except ScenarioError as error:
            raise BackendError(str(error)) from None

    @override
    def in_force(self) -> dict[str, int]:
        return levels_of(self._settings())

    @override
    def restore(self, saved: str) -> None:
        self.write([Setting.read(record) for record in json.loads(saved)])

    def _settings(self) -> tuple[Setting, ...]:
        try:
            return ordered(Setting.read(record) for record in parse_json(read_text(self._file)))
        except FileNotFoundError:
            return ()
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise BackendError(f"{self._file}: not the settings of a dry run: {error}; remove it") from None
