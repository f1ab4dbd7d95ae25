"""What all tests need."""

import shutil
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import own_code
from fairlane.inputs.code import ENVIRONMENT
from pictures import deferred
from samples import PAIRS

if TYPE_CHECKING:
    from browsers import Browser
    from oracle import Engine
    from serving import Client


def pytest_configure() -> None:
    """Tests that interrupt themselves do so even where the suite runs in the background, with interrupts ignored."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def _drawn_when_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pictures of results are drawn by the test that looks at them."""
    monkeypatch.setattr("vl_convert.vegalite_to_png", deferred)


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


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tasks are performed in this process."""
    from small_study import Here

    monkeypatch.setattr("fairlane.study.tasks.pools.Processes", Here)


@pytest.fixture(params=["oracle", "core"])
def run(request: pytest.FixtureRequest) -> "Engine":
    """Both simulators of cases: the oracle and the engine."""
    from oracle import core, simulate

    return simulate if request.param == "oracle" else core.simulate


@pytest.fixture(scope="session")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a run, which tests copy."""
    from report_runs import simulated

    folder = tmp_path_factory.mktemp("stored") / "small"
    simulated(folder, isolated=False)
    return folder


@pytest.fixture
def root(stored: Path, tmp_path: Path) -> Path:
    """A folder of results: two runs, one of them further below, and something outside that must not be seen."""
    root = tmp_path / "results"
    shutil.copytree(stored, root / "first")
    shutil.copytree(stored, root / "more" / "second run")
    shutil.copytree(stored, tmp_path / "secret")
    return root


@pytest.fixture
def client(root: Path) -> Iterator["Client"]:
    """A client that has logged in."""
    from serving import serving

    with serving(root) as client:
        client.log_in()
        yield client


@pytest.fixture(scope="session")
def downloads(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the browser stores files."""
    return tmp_path_factory.mktemp("downloads")


@pytest.fixture(scope="session")
def chromium(downloads: Path) -> Iterator["Browser"]:
    """One browser for all pages."""
    from browsers import browser

    with browser(downloads) as started:
        yield started
