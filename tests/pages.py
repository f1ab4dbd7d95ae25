"""What the documentation shows: its pages, command lines and code."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

__all__ = ["ROOT", "Shown", "code", "command_lines", "inline", "names", "pages", "table"]

ROOT = Path(__file__).parent.parent
_FENCE = re.compile(r"^(?P<mark>`{3,}|~{3,})(?P<kind>[^\n]*)\n(?P<text>.*?)^(?P=mark)[ \t]*$", re.MULTILINE | re.DOTALL)
_ENDS = {"|", ">", ">>", "<", "&", "&&", "||", ";", "2>&1"}


@dataclass(frozen=True)
class Shown:
    """Something that a page shows, and where."""

    page: str
    line: int
    text: str
    kind: str = ""

    @property
    def place(self) -> str:
        """The page and line."""
        return f"{self.page}:{self.line}"


def pages() -> Iterator[tuple[str, str]]:
    """All pages that people have written, the log of changes apart: it says what was so."""
    for path in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]:
        name = path.relative_to(ROOT).as_posix()
        if "/generated/" not in name:
            yield name, path.read_text("utf-8")


def code() -> Iterator[Shown]:
    """Blocks of code."""
    for page, text in pages():
        for found in _FENCE.finditer(text):
            yield Shown(page, text.count("\n", 0, found.start("text")) + 1, found["text"], found["kind"].strip())


def inline() -> Iterator[Shown]:
    """Code within sentences."""
    for page, text in pages():
        prose = _FENCE.sub(lambda found: "\n" * found[0].count("\n"), text)
        for found in re.finditer(r"(?<!`)`([^`\n]+)`(?!`)", prose):
            yield Shown(page, prose.count("\n", 0, found.start()) + 1, found[1])


def command_lines() -> Iterator[tuple[Shown, list[str]]]:
    """The words behind ``fairlane`` of every command that a block of code shows."""
    for block in code():
        if block.kind not in ("console", "bash", "sh", "shell"):
            continue
        lines = iter(re.sub(r"\\\n[> ]*", " ", block.text).splitlines())
        for line in lines:
            command = line.removeprefix("$ ")
            if block.kind == "console" and command == line:
                continue  # what the command before has printed
            while command.count('"') % 2 or command.count("'") % 2:
                command += "\n" + next(lines)
            yield from ((Shown(block.page, block.line, command), words) for words in _behind_fairlane(command))


def _behind_fairlane(command: str) -> Iterator[list[str]]:
    lexer = shlex.shlex(command, posix=True, punctuation_chars="|&;<>()")
    lexer.whitespace_split = True
    lexer.commenters = "#"
    words = list(lexer)
    for at, word in enumerate(words):
        if word.rpartition("/")[2] == "fairlane" and (at == 0 or words[at - 1] in {*_ENDS, "-m", "time", "sudo"}):
            rest = words[at + 1 :]
            yield rest[: next((end for end, one in enumerate(rest) if one in _ENDS), len(rest))]


def table(page: str, *columns: str) -> list[dict[str, str]]:
    """The rows of the first table of a page that has these columns, by column."""
    text = dict(pages())[page]
    for found in re.finditer(r"(?:^\|.*\n)+", text, re.MULTILINE):
        head, _, *rows = [[cell.strip() for cell in row.strip("|").split(" |")] for row in found[0].splitlines()]
        if set(columns) <= set(head):
            return [dict(zip(head, row, strict=False)) for row in rows]
    raise AssertionError(f"{page}: no table with the columns {', '.join(columns)}")


def names(text: str) -> list[str]:
    """The names in a cell."""
    return re.findall(r"`([\w-]+)`", text)
