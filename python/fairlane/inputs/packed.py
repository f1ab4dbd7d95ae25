"""Text files that may be packed by ``xz``."""

import codecs
from lzma import FORMAT_XZ, LZMADecompressor, LZMAError
from pathlib import Path

from fairlane.errors import Problem, ScenarioError
from fairlane.inputs.files import read_bytes

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
