"""The part of YAML that Slurm's ``topology.yaml`` is written in: tables and lists by indentation, scalars, flow lists.

Anchors, tags and texts of several lines are refused. Scalars are returned as texts, tables with the line that they
begin on.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from fairlane.inputs.files import MOST_DEPTH

_KEY = re.compile(r"""("[^"]*"|'[^']*'|[^\s:#\[\]{},&*!|>'"%@`-][^:#]*?)\s*:(?:\s+(.*))?""")
_COMMENT = re.compile(r"""((?:"(?:[^"\\]|\\.)*"|'[^']*'|(?<!\s)\#|[^\#"'])*)(?:\#.*)?""")

_SINGLE = re.compile(r"'((?:[^']|'')*)'")
_TOKEN = re.compile(r"""[\[\]{},]|"(?:[^"\\]|\\.)*"|'[^']*'|[^\[\]{},"']+|["']""")


class YamlError(ValueError):
    """A line that is none of this part of YAML."""

    def __init__(self, words: str, line: int) -> None:
        super().__init__(words)
        self.line = line


class YamlTable(dict[str, Any]):
    """A table, with the number of its first line."""

    line: int = 0


@dataclass
class _Line:
    number: int
    indent: int
    text: str


def parse_yaml(text: str) -> Any:
    """Tables, lists and texts of a document. Raises ``YamlError`` with the line for what is none."""
    parser = _Parser(list(_lines(text)))
    found = parser.block(0)
    if parser.line is not None:
        raise YamlError(f"not as far indented as what is in front: {parser.line.text[:60]!r}", parser.line.number)
    return found


def _lines(text: str) -> Iterator[_Line]:
    for number, line in enumerate(text.splitlines(), 1):
        if line[: len(line) - len(line.lstrip())].count("\t"):
            raise YamlError("indented by a tab; allowed are spaces", number)
        parts = _COMMENT.fullmatch(line)
        words = (parts[1] if parts else line).strip()
        if words and words not in ("---", "..."):
            yield _Line(number, len(line) - len(line.lstrip()), words)


class _Parser:
    def __init__(self, lines: list[_Line]) -> None:
        self._lines, self._at = lines, 0

    @property
    def line(self) -> _Line | None:
        """The next line."""
        return self._lines[self._at] if self._at < len(self._lines) else None

    def block(self, depth: int) -> Any:
        """The table or list that begins at the next line."""
        first = self.line
        if first is None:
            return None
        if depth > MOST_DEPTH:
            raise YamlError(f"tables or lists are nested more than {MOST_DEPTH} deep", first.number)
        is_list = first.text == "-" or first.text.startswith("- ")
        return self._list(first.indent, depth) if is_list else self._table(first, depth)

    def _list(self, indent: int, depth: int) -> list[Any]:
        found = []
        while (line := self.line) and line.indent == indent and (line.text == "-" or line.text.startswith("- ")):
            rest = line.text[1:].lstrip()
            if not rest:
                self._at += 1
                found.append(self._nested(indent, depth))
            elif _KEY.fullmatch(rest) or rest.startswith("- "):
                self._lines[self._at] = _Line(line.number, indent + len(line.text) - len(rest), rest)
                found.append(self.block(depth + 1))
            else:
                self._at += 1
                found.append(_scalar(rest, line.number))
        return found

    def _table(self, first: _Line, depth: int) -> YamlTable:
        found = YamlTable()
        found.line = first.number
        while (line := self.line) and line.indent == first.indent:
            parts = _KEY.fullmatch(line.text)
            if parts is None:
                if found and line.text.startswith("-"):
                    break
                raise YamlError(f"not a key with a value: {line.text[:60]!r}", line.number)
            key = str(_scalar(parts[1], line.number))
            if key in found:
                raise YamlError(f"{key} is there twice", line.number)
            self._at += 1
            found[key] = _scalar(parts[2], line.number) if parts[2] else self._nested(first.indent, depth, key=True)
        return found

    def _nested(self, indent: int, depth: int, *, key: bool = False) -> Any:
        """What is indented further; under a key a list may be as far indented as the key."""
        line = self.line
        if line and (line.indent > indent or (key and line.indent == indent and line.text.startswith("- "))):
            return self.block(depth + 1)
        return None


def _scalar(text: str, number: int) -> Any:
    """A text, or a list or table in brackets."""
    if text[0] in "&*!|>%@`":
        raise YamlError(f"not read: {text[:60]!r}; allowed are plain and quoted texts, lists and tables", number)
    if text[0] in "[]{}":
        return _in_brackets(text, number)
    if text[0] not in "\"'":
        return text
    try:
        return str(json.loads(text if text[0] == '"' else _double_quoted(text)))
    except json.JSONDecodeError:
        raise YamlError(f"not a quoted text: {text[:60]!r}", number) from None


def _double_quoted(text: str) -> str:
    """A text in single quotes as JSON has it; nothing for what is none."""
    single = _SINGLE.fullmatch(text)
    return json.dumps(single[1].replace("''", "'")) if single else ""


def _in_brackets(text: str, number: int) -> Any:
    """The list or table."""
    items = _items(text, number)
    if text[0] == "[":
        return [_scalar(item, number) for item in items]
    table = YamlTable()
    table.line = number
    for item in items:
        parts = _KEY.fullmatch(item)
        if parts is None or not parts[2]:
            raise YamlError(f"not a key with a value: {item[:60]!r}", number)
        table[str(_scalar(parts[1], number))] = _scalar(parts[2], number)
    return table


def _items(text: str, number: int) -> list[str]:
    """The items between brackets, which may have quotes and brackets themselves."""
    items, depth = [""], 0 if (text[0] + text[-1]) in ("[]", "{}") and len(text) > 1 else 1
    for part in _TOKEN.findall(text[1:-1]):
        depth += (part in "[{") - (part in "]}")
        if depth < 0 or depth > MOST_DEPTH:
            break
        if part == "," and depth == 0:
            items.append("")
        else:
            items[-1] += part
    items = [item.strip() for item in items]
    if depth or (len(items) > 1 and not all(items)):
        raise YamlError(f"not a list or table in brackets: {text[:60]!r}", number)
    return [item for item in items if item]
