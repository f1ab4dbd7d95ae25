"""Which tests run, and how large campaigns are.

``make test`` leaves live and long tests out and runs a few fixed cases of each campaign; ``make test-all`` has
everything. CI adds live and long tests of what has changed, and campaigns whose ``--hypothesis-seed`` is another one
each day.
"""

import subprocess
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import HealthCheck, settings

ROOT = Path(__file__).parents[1]
MARKERS = (
    "live(*folders, absent): needs Slurm, OpenSM, namespaces, MPI or a browser; tests folders of python/fairlane; "
    "absent() says what is not installed",
    "long(*folders): takes many seconds; tests folders of python/fairlane, or all of them if it is ''",
    "campaign: random cases: a few fixed ones, or with --hypothesis-seed many new ones",
)

# A slow machine is no failure: no example has a deadline, and the time that it takes to draw some is not looked at.
_ALWAYS = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("fixed", _ALWAYS, max_examples=20, derandomize=True, database=None)
settings.register_profile("campaign", _ALWAYS, max_examples=100)


def pytest_addoption(parser: pytest.Parser) -> None:
    """The options."""
    group = parser.getgroup("fairlane")
    group.addoption("--changed-since", metavar="COMMIT", help="only live and long tests of what changed since")


def pytest_configure(config: pytest.Config) -> None:
    """Makes the markers known, and sets how many cases are drawn."""
    for marker in MARKERS:
        config.addinivalue_line("markers", marker)
    settings.load_profile("fixed" if config.getoption("--hypothesis-seed") is None else "campaign")


@pytest.fixture
def campaign_seed(request: pytest.FixtureRequest) -> int | None:
    """The seed of a campaign; None for a few fixed cases."""
    seed = request.config.getoption("--hypothesis-seed")
    return None if seed is None else int(seed)


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skips live tests without the programs that they need."""
    for marker in item.iter_markers("live"):
        if reason := marker.kwargs["absent"]():
            pytest.skip(reason)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leaves out live and long tests of what has not changed."""
    since = config.getoption("--changed-since")
    if since is None:
        return
    changed = _git("diff", "--name-only", since, "--")
    left = [item for item in items if not is_affected(item, changed)]
    items[:] = [item for item in items if item not in set(left)]
    config.hook.pytest_deselected(items=left)


def _git(*words: str) -> list[str]:
    done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def is_affected(item: pytest.Item, changed: list[str]) -> bool:
    """Whether a test runs: always, or a live or long one if its file, helpers, folders or any Rust changed."""
    markers = [*item.iter_markers("live"), *item.iter_markers("long")]
    if not markers:
        return True
    assert isinstance(item, pytest.Function)
    helpers = {_name(value) for value in vars(item.module).values()}
    files = {str(item.path.relative_to(ROOT)), *(f"tests/{name.replace('.', '/')}.py" for name in helpers)}
    folders = [f"python/fairlane/{folder}" for marker in markers for folder in marker.args]
    return any(file in files or file.startswith(("crates/", *folders)) for file in changed)


def _name(value: object) -> str:
    """The module of what a test file has imported."""
    return value.__name__ if isinstance(value, ModuleType) else str(getattr(value, "__module__", ""))
