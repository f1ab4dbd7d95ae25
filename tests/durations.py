"""Processor time of each test, its fixtures and the processes that they wait for, as a table: ``--durations-table``.

Wall times depend on what else a machine does; these hardly do.
"""

import csv
import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

_PROPERTY = "processor time"
_SPENT = pytest.StashKey[float]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """The option."""
    parser.addoption("--durations-table", metavar="FILE", type=Path, help="write processor seconds by test, as CSV")


def pytest_collection_finish(session: pytest.Session) -> None:
    """What is spent before the first test is not that test's."""
    session.config.stash[_SPENT] = sum(os.times()[:4])


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    """Adds to each phase what has been spent since the last one."""
    report = yield
    spent = sum(os.times()[:4])
    report.user_properties.append((_PROPERTY, spent - item.config.stash[_SPENT]))
    item.config.stash[_SPENT] = spent
    return report


class Table:
    """Collects the processor time of all tests, of all workers."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._spent: Counter[str] = Counter()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Adds a phase of a test."""
        self._spent[report.nodeid] += dict(report.user_properties)[_PROPERTY]

    def pytest_sessionfinish(self) -> None:
        """Writes the table, the longest test first."""
        with self._path.open("w", newline="") as file:
            rows = csv.writer(file, lineterminator="\n")
            rows.writerow(("test", "seconds"))
            rows.writerows((name, f"{seconds:.2f}") for name, seconds in self._spent.most_common())


def pytest_configure(config: pytest.Config) -> None:
    """Collects where the option is given, and not in a worker."""
    path = config.getoption("--durations-table")
    if path and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Table(path))
