"""Text files that may be packed by ``xz``, and the rows of CSV files."""

import codecs
import csv
from collections.abc import Iterator, Sequence
from lzma import FORMAT_XZ, LZMADecompressor, LZMAError
from pathlib import Path

from fairlane.errors import Problem, ScenarioError
from fairlane.inputs.files import content_lines, read_bytes, reading

_XZ = b"\xfd7zXZ\x00"
_XZ_MEMORY = 128 << 20  # bytes that unpacking may take
_LARGEST = 256 << 20  # bytes of the largest unpacked file


def read_unpacked(path: Path) -> bytes:
    """The content of a file, expanded if it is xz's. Raises ``ScenarioError`` for what is damaged or cut off."""
    raw = read_bytes(path, _LARGEST)
    if not raw.startswith(_XZ):
        return raw
    reader = LZMADecompressor(FORMAT_XZ, memlimit=_XZ_MEMORY)
    try:
        found = reader.decompress(raw, _LARGEST)
    except LZMAError as error:
        raise ScenarioError(Problem.of_file(path, f"is damaged: {error}")) from None
    if not reader.eof:
        words = "is cut off" if reader.needs_input else f"expands to more than {_LARGEST >> 20} MiB"
        raise ScenarioError(Problem.of_file(path, words))
    return found


def encoding_of(raw: bytes) -> str:
    """The encoding of a text, by its byte order mark."""
    return "utf-16" if raw.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) else "utf-8-sig"


def read_table(
    path: Path, required: Sequence[str], optional: Sequence[str] = ()
) -> Iterator[tuple[int, dict[str, str]]]:
    """The rows of a CSV file that may be packed by ``xz``, by column, with the numbers of their lines."""
    with reading(path):
        raw = read_unpacked(path)
        text = raw.decode(encoding_of(raw))
    return csv_rows(text, path, required, optional)


def csv_rows(
    text: str, file: Path, required: Sequence[str], optional: Sequence[str]
) -> Iterator[tuple[int, dict[str, str]]]:
    """The rows of a CSV text. ``ScenarioError`` for unknown, missing and repeated columns, and for cut lines."""
    lines = content_lines(text)
    first, names = next(lines, (1, ""))
    header = [cell.strip() for cell in next(csv.reader([names]), [])]
    known = [*required, *optional]
    problems = [Problem.unknown(name, "column", name, known) for name in header if name not in known]
    problems += [Problem(name, "duplicate column") for name in dict.fromkeys(header) if header.count(name) > 1]
    if missing := [name for name in required if name not in header]:
        words = "missing column" if header else "the file is empty"
        problems.append(Problem(", ".join(missing) if header else "", words, allowed=", ".join(known)))
    if problems:
        raise ScenarioError(problem.at(str(file), first) for problem in problems)
    for number, line in lines:
        cells = [cell.strip() for cell in next(csv.reader([line]))]
        if len(cells) != len(header):
            words = f"has {len(cells)} cells, and the header {len(header)}: is the file cut off?"
            raise ScenarioError(Problem.of_file(file, words, number))
        yield number, dict(zip(header, cells, strict=True))
