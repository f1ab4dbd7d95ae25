"""Slurm's ``topology.yaml`` as tables that know their line, and lists. Scalars are texts: a host may be called 0123.

Anchors and aliases, by which a small file can stand for a huge one, are refused.
"""

from typing import Any

from fairlane.inputs.files import MOST_DEPTH


class YamlError(ValueError):
    """What is wrong with a file, and the line."""

    def __init__(self, words: str, line: int) -> None:
        super().__init__(words)
        self.line = line


class YamlTable(dict[str, Any]):
    """A table, with the number of its first line."""

    line: int = 0


def parse_yaml(text: str) -> Any:
    """Tables, lists and texts of a document; an empty value is None. Raises ``YamlError`` with the line."""
    import yaml

    try:
        found = _Document()
        for event in yaml.parse(text, Loader=getattr(yaml, "CLoader", yaml.Loader)):
            found.take(event)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        words = ": ".join(filter(None, (error.context, error.problem)))
        raise YamlError(words, mark.line + 1 if mark else 1) from None
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise YamlError(f"the character {error.character!r} is not allowed", line) from None
    return found.value


class _Document:
    """A document, put together from the events of its parser."""

    def __init__(self) -> None:
        self.value: Any = None
        self._documents = 0
        self._open: list[YamlTable | list[Any]] = []
        self._keys: list[str | None] = []  # of each open table, the key that waits for its value

    def take(self, event: Any) -> None:
        line = event.start_mark.line + 1
        if getattr(event, "anchor", None) is not None:
            raise YamlError("anchors and aliases are not supported", line)
        match type(event).__name__:
            case "DocumentStartEvent":
                self._documents += 1
                if self._documents > 1:
                    raise YamlError("a second document begins", line)
            case "ScalarEvent":
                self._put(event.value if event.value or event.style else None, line)
            case "MappingStartEvent":
                table = YamlTable()
                table.line = line
                self._begin(table, line)
            case "SequenceStartEvent":
                self._begin([], line)
            case "MappingEndEvent" | "SequenceEndEvent":
                self._open.pop()
                self._keys.pop()

    def _begin(self, value: YamlTable | list[Any], line: int) -> None:
        if len(self._open) == MOST_DEPTH:
            raise YamlError(f"tables or lists are nested more than {MOST_DEPTH} deep", line)
        self._put(value, line)
        self._open.append(value)
        self._keys.append(None)

    def _put(self, value: Any, line: int) -> None:
        """A value to where it belongs; a text may be the key of the value that comes next."""
        if not self._open:
            self.value = value
        elif isinstance(self._open[-1], list):
            self._open[-1].append(value)
        elif self._keys[-1] is not None:
            self._open[-1][self._keys[-1]] = value
            self._keys[-1] = None
        elif not isinstance(value, str):
            raise YamlError("a key has to be a text", line)
        elif value in self._open[-1]:
            raise YamlError(f"duplicate key {value}", line)
        else:
            self._keys[-1] = value
