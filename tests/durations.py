"""Processor time of tests, their fixtures and the processes that they wait for, by file: ``--durations-table``.

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
    parser.addoption("--durations-table", metavar="FILE", type=Path, help="write processor seconds by file, as CSV")


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
        """Writes the table, the longest file first."""
        files: dict[str, Counter[str]] = {}
        for test, seconds in self._spent.items():
            file, _, name = test.partition("::")
            files.setdefault(file, Counter())[name] = seconds
        with self._path.open("w", newline="") as table:
            rows = csv.writer(table, lineterminator="\n")
            rows.writerow(("file", "tests", "seconds", "longest", "longest_seconds"))
            for file, spent in sorted(files.items(), key=lambda item: -item[1].total()):
                ((longest, most),) = spent.most_common(1)
                rows.writerow((file, len(spent), f"{spent.total():.1f}", longest, f"{most:.1f}"))


def pytest_configure(config: pytest.Config) -> None:
    """Collects where the option is given, and not in a worker."""
    path = config.getoption("--durations-table")
    if path and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Table(path))
