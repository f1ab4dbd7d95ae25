"""Processor time of tests, their fixtures and the processes that they wait for, by file: ``--durations-table``.

Wall times depend on what else a machine does; these hardly do.
"""

import csv
import os
from collections import defaultdict
from collections.abc import Generator
from pathlib import Path

import pytest

_PROPERTY = "processor time"
_SPENT = pytest.StashKey[float]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """The option."""
    parser.addoption("--durations-table", metavar="FILE", type=Path, help="write processor seconds by file, as CSV")


def pytest_collection_finish(session: pytest.Session) -> None:
    """Time of collection does not count for the first test."""
    session.config.stash[_SPENT] = sum(os.times()[:4])


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
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
        self._spent: defaultdict[str, float] = defaultdict(float)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Adds a phase of a test."""
        self._spent[report.nodeid] += sum(
            float(str(spent)) for name, spent in report.user_properties if name == _PROPERTY
        )

    def pytest_sessionfinish(self) -> None:
        """Writes the table, the longest file first."""
        files: defaultdict[str, dict[str, float]] = defaultdict(dict)
        for test, seconds in self._spent.items():
            file, _, name = test.partition("::")
            files[file][name] = seconds
        with self._path.open("w", newline="") as table:
            rows = csv.writer(table, lineterminator="\n")
            rows.writerow(("file", "tests", "seconds", "longest", "longest_seconds"))
            for file, spent in sorted(files.items(), key=lambda item: -sum(item[1].values())):
                longest = max(spent, key=spent.__getitem__)
                rows.writerow((file, len(spent), f"{sum(spent.values()):.1f}", longest, f"{spent[longest]:.1f}"))


def pytest_configure(config: pytest.Config) -> None:
    """Collects where the option is given, and not in a worker."""
    path = config.getoption("--durations-table")
    if path and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Table(path))
