"""No clock decides a test: limits are for hangs, and stand in one place for tests and in one for the program."""

import ast
import re
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from fairlane.inputs.files import is_taken, take
from waiting import HANG_S

ROOT = Path(__file__).parent.parent.parent
HANGS = {"HANG_S", "HANG", "WATCH_S", "_POLL_S", "timeout_s", "wait", "limit"}
"""Names of limits that are for hangs or that a user gives, and of how often an interruption is looked for."""
CLOCKS = {"sleep", "monotonic", "process_time", "thread_time", "alarm", "setitimer"}
MEASURES = {"monotonic", "process_time", "thread_time"}
"""The clocks that the program may look at anywhere, to say how long something took."""
ALLOWED = {
    "tests/waiting.py": "the one place",
    "tests/slurm.py": "daemons that do not end by themselves are killed; no test fails by it",
    "tests/fuzzing/harness.py": "the limit for hangs, of a process that may print nothing",
    "tests/vopr/": "how long a failure is made smaller, and what a campaign took",
    "tests/python/test_agent.py": "instants that the test sets",
    "tests/python/test_progress_reading.py": "the order of instants",
    "tests/python/test_campaign_script.py": "a launcher that hangs is started once more, without a limit: LOOP_S",
    "tests/python/test_compressed_input.py": "processor time, far above what is needed: LOOP_S",
    "tests/python/test_estimate.py": "LOOP_S, and processor time that is compared with processor time",
    "python/fairlane/cluster/agent/": "keys of agent.toml; what takes longer is undone or tried again",
    "python/fairlane/cli/agent.py": "the interval that the user asks for",
    "python/fairlane/lab/doctor/machine.py": "two minutes for a program that prints its version",
    "python/fairlane/cluster/opensm/check/simulated.py": "polls OpenSM's log; the limit is the user's",
    "python/fairlane/lab/serve/__init__.py": "a connection without requests; browsers make another",
    "python/fairlane/study/tasks/cluster.py": "a port or a scheduler that does not answer",
    "python/fairlane/lab/testbed/": "measures in real time; ranks that do not end are killed",
    "tools/fetch_browser_code.py": "of the network",
}
"""Files in which something waits for a time or looks at a clock, and why no slow machine fails by it."""


def clocks(tree: ast.AST, *, measuring: bool = False) -> Iterator[tuple[int, str]]:
    """Line and text of each call that looks at a clock or waits for a time that is not for hangs."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        is_clock = name in CLOCKS - (MEASURES if measuring else set())
        if is_clock or any(_is_time(one) for one in _times(name, node)):
            yield node.lineno, ast.unparse(node)


def _times(name: str, call: ast.Call) -> Iterator[ast.expr]:
    """The arguments that are times."""
    for word in call.keywords:
        if word.arg and re.search(r"(?<!retransmission_)timeout|deadline", word.arg):
            yield word.value
    if isinstance(call.func, ast.Attribute) and name in {"wait", "join", "result", "settimeout", "timeout", "select"}:
        yield from call.args[:1]


def _is_time(given: ast.expr) -> bool:
    """Whether it is a number or a quantity, or a constant that is no limit for hangs."""
    names = {one.id for one in ast.walk(given) if isinstance(one, ast.Name)}
    if names & HANGS:
        return False
    value = given.value if isinstance(given, ast.Constant) else None
    is_quantity = isinstance(value, str) and re.fullmatch(r"[\d.]+ *([mun]?s|min)", value)
    return bool(is_quantity) or isinstance(value, int | float) or any(name.endswith("_S") for name in names)


@cache
def found() -> list[str]:
    """File, line and text of all of them."""
    lines = []
    for folder in ("tests", "python/fairlane", "docs/_ext", "tools"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            tree = ast.parse(path.read_text("utf-8"))
            seen = clocks(tree, measuring=folder == "python/fairlane")
            lines += [f"{path.relative_to(ROOT).as_posix()}:{line}: {text}" for line, text in seen]
    return lines


def test_no_time_stands_between_a_right_program_and_a_green_test() -> None:
    assert [one for one in found() if not one.startswith(tuple(ALLOWED))] == []


@pytest.mark.parametrize("file", ALLOWED)
def test_what_is_allowed_is_there(file: str) -> None:
    assert any(one.startswith(file) for one in found()), "delete its line"


@pytest.mark.parametrize(
    "text",
    [
        "process.wait(20)",
        "daemon.wait(GRACE_S)",
        "thread.join(60)",
        "subprocess.run(command, timeout=60)",
        "subprocess.run(command, timeout=_TIMEOUT_S)",
        "backend(timeout='2 s')",
        "queue.get(timeout=5)",
        "pytest.mark.timeout(120)",
        "settings(deadline=200)",
        "time.sleep(pause)",
        "time.monotonic() + 20",
        "client.settimeout(2.0)",
    ],
)
def test_clocks_are_seen(text: str) -> None:
    assert list(clocks(ast.parse(text)))


@pytest.mark.parametrize(
    "text",
    [
        "process.wait()",
        "', '.join(names)",
        "rank.wait(request)",
        "run(command, timeout=HANG_S + cpu_s)",
        "settings(deadline=None)",
        "network(retransmission_timeout='10 us')",
    ],
)
def test_what_is_no_clock_is_not(text: str) -> None:
    assert not list(clocks(ast.parse(text)))


def test_an_error_names_the_event_before_pytest_ends_the_test() -> None:
    limit = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["pytest"]["ini_options"]["timeout"]
    assert 20 * 60 < HANG_S < limit
    text = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    assert re.findall(r"A timeout of (\d+) minutes", text) == [str(limit // 60)]


def test_whoever_asks_whether_a_file_is_locked_is_not_in_the_way(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with path.open("w") as one, path.open("w") as other, path.open("rb") as reader:
        assert not is_taken(reader.fileno())
        assert take(one.fileno()), "a reader that has asked and is still there holds nothing"
        assert take(one.fileno()), "again, by the same"
        assert is_taken(reader.fileno())
        assert is_taken(other.fileno())
        assert not is_taken(one.fileno()), "its own lock"
        assert not take(other.fileno())
        one.close()
        assert not is_taken(reader.fileno())
        assert take(other.fileno())
