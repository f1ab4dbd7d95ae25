"""What all tests need."""

import signal
from pathlib import Path

import pytest

import own_code
from fairlane.inputs.code import ENVIRONMENT
from samples import PAIRS


def pytest_configure() -> None:
    """Tests that interrupt themselves do so even where the suite runs in the background, with interrupts ignored."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def small(tmp_path: Path) -> str:
    """The file of a small scenario."""
    (tmp_path / "small.toml").write_text(PAIRS)
    return str(tmp_path / "small.toml")


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A scenario with code of every kind in a file beside it, which nothing permits to run."""
    monkeypatch.delenv(ENVIRONMENT, raising=False)
    (tmp_path / "own.py").write_text(own_code.CODE)
    (tmp_path / "scenario.toml").write_text(own_code.scenario(*own_code.NAMES))
    return tmp_path / "scenario.toml"
