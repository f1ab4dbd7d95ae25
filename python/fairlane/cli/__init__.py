"""The command line: ``fairlane run scenario.toml`` and what goes with it.

Data goes to standard output, progress and errors to standard error. Exit codes: 0 done, 1 a run failed, 2 wrong input,
130 interrupted. The module of a command is imported when the command runs, so help comes at once.
"""

from fairlane.cli.main import main

__all__ = ["main"]
