"""What all tests need."""

import signal
from pathlib import Path

import pytest

from samples import PAIRS


def pytest_configure() -> None:
    """Tests that interrupt themselves do so even where the suite runs in the background, with interrupts ignored."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def small(tmp_path: Path) -> str:
    """The file of a small scenario."""
    (tmp_path / "small.toml").write_text(PAIRS)
    return str(tmp_path / "small.toml")
