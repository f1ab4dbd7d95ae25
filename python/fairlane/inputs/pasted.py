"""Lines around the output of a tool that a terminal, a script or a message has added.

Shell prompts, the command itself, warnings of the tool, time stamps of a loop, fences of a Markdown block.
"""

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache

from fairlane.wording import plural

_DAY = r"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)\b.*\b\d{2}:\d{2}:\d{2}\b.*"
_ISO = r"\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}(?::\d{2})?\S*(?: [+-]\d{4})?)?"
_EPOCH = r"(?:time|timestamp|date)\b\W*\d{9,19}(?:\.\d{1,9})?|\d{10,19}(?:\.\d{1,9})?"


_LONGEST = 2000  # characters of such a line


@cache
def _shapes(tool: str) -> Mapping[str, re.Pattern[str]]:
    return {
        "shell prompt": re.compile(
            r"(?:\(\S+\)\s*)?(?:\[[^\]\s]*@[^\]]*\]|[\w.-]+@[\w.-]+(?::\S*)?|[\w.-]*)\s?\S{0,80}[$#%>](?:\s.*)?"
        ),
        "warning of the tool": re.compile(rf"(?:\S*/)?(?:(?:ibwarn|iberror|ibpanic|{tool}):|src/\S+:).*"),
        "command": re.compile(rf"(?:sudo\s+)?(?:\S*/)?{tool}\b.*"),
        "time stamp": re.compile(f"{_DAY}|{_ISO}|{_EPOCH}"),
        "Markdown fence": re.compile(r"(?:```|~~~)\w*"),
    }


def added_by_paste(line: str, tool: str) -> str | None:
    """What a stripped line in the output of ``tool`` is, if it is none of the tool's: a shell prompt, a command ..."""
    if len(line) > _LONGEST:
        return None
    return next((what for what, shape in _shapes(tool).items() if shape.fullmatch(line)), None)


@dataclass
class Skipped:
    """Lines of a file that were not read, counted by what they are."""

    kinds: Counter[str] = field(default_factory=Counter)
    first: int | None = None
    """The first of them."""

    def add(self, what: str, line: int) -> None:
        """Counts a line."""
        self.first = line if self.first is None else self.first
        self.kinds[what] += 1

    @property
    def note(self) -> str | None:
        """A note with the counts; None if no line was skipped."""
        if self.first is None:
            return None
        counts = ", ".join(f"{number} {what}" for what, number in self.kinds.items())
        lines = plural(self.kinds.total(), "line")
        return f"{lines} skipped (first: line {self.first}): {counts}"
