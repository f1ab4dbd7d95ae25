"""Damage of inputs: flipped bits, cut files, numbers far too large, keys gone, lines twice, brackets without end."""

import re
from collections.abc import Callable, Sequence
from random import Random

__all__ = ["damaged", "damaged_text"]

NUMBERS = ("0", "-1", "1e308", "nan", "inf", *(str(2**power) for power in (31, 32, 63, 64)), str(10**12), str(10**30))
PATHS = ("", "../../../etc/passwd", "own.py:X")
WORDS = (*PATHS, "x" * 5000, "\\u0000", "\N{SNOWMAN}", "cn[001-999999999]", "[[[[", "1 PiB", "-5 ms")
EXTREMES = (b"\xff\xff\xff\xff", b"\x00\x00\x00\x00", b"\x7f\xff\xff\xff", b"\x80\x00\x00\x00", b"\xff" * 8)


def damaged(data: bytes, rng: Random, *, text: bool) -> bytes:
    """The bytes with one to three kinds of damage."""
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        if text and rng.random() < 0.8:
            data = damaged_text(data.decode("utf-8", "surrogateescape"), rng).encode("utf-8", "surrogateescape")
        else:
            data = rng.choice(_BYTES)(data, rng)
    return data


def damaged_text(text: str, rng: Random) -> str:
    """The text with one kind of damage."""
    return rng.choice(_TEXT)(text, rng)


def _place(size: int, rng: Random) -> int:
    """Somewhere, more often near an end, where formats keep their headers."""
    if rng.random() < 0.4:
        return min(rng.randrange(64), size)
    return max(0, size - rng.randrange(64)) if rng.random() < 0.2 else rng.randrange(size + 1)


def _flip(data: bytes, rng: Random) -> bytes:
    changed = bytearray(data)
    for _ in range(rng.choice((1, 2, 8, 64))):
        if changed:
            at = min(_place(len(changed), rng), len(changed) - 1)
            changed[at] ^= 1 << rng.randrange(8)
    return bytes(changed)


def _cut(data: bytes, rng: Random) -> bytes:
    return data[: _place(len(data), rng)]


def _remove(data: bytes, rng: Random) -> bytes:
    at = _place(len(data), rng)
    return data[:at] + data[at + rng.choice((1, 4, 100, 5000)) :]


def _repeat(data: bytes, rng: Random) -> bytes:
    at, size = _place(len(data), rng), rng.choice((1, 8, 500))
    return data[: at + size] + data[at : at + size] * rng.choice((1, 3, 200)) + data[at + size :]


def _insert(data: bytes, rng: Random) -> bytes:
    at = _place(len(data), rng)
    return data[:at] + rng.randbytes(rng.choice((1, 2, 16, 300))) + data[at:]


def _overwrite(data: bytes, rng: Random) -> bytes:
    at, by = _place(len(data), rng), rng.choice(EXTREMES)
    return data[:at] + by + data[at + len(by) :]


def _nothing(_data: bytes, _rng: Random) -> bytes:
    return b""


_BYTES: Sequence[Callable[[bytes, Random], bytes]] = (
    *(_flip, _cut, _remove, _repeat, _insert, _overwrite) * 4,
    _nothing,
)


def _match(text: str, pattern: str, rng: Random) -> re.Match[str] | None:
    found = list(re.finditer(pattern, text))
    return rng.choice(found) if found else None


def _number(text: str, rng: Random) -> str:
    match = _match(text, r"(?<![\w.])-?\d+(\.\d+)?", rng)
    number = rng.choice((*NUMBERS, "9" * 5000 if rng.random() < 0.1 else "7"))
    return text if match is None else text[: match.start()] + number + text[match.end() :]


def _word(text: str, rng: Random) -> str:
    match = _match(text, r'"[^"\n]*"', rng) or _match(text, r"\b[A-Za-z_]\w*\b", rng)
    if match is None:
        return text
    quote = '"' if match.group().startswith('"') else ""
    return text[: match.start()] + quote + rng.choice(WORDS) + quote + text[match.end() :]


def _lines(change: Callable[[list[str], int, Random], None]) -> Callable[[str, Random], str]:
    def changed(text: str, rng: Random) -> str:
        lines = text.split("\n")
        change(lines, rng.randrange(len(lines)), rng)
        return "\n".join(lines)

    return changed


def _drop(lines: list[str], at: int, rng: Random) -> None:
    del lines[at : at + rng.choice((1, 1, 2, 10))]


def _twice(lines: list[str], at: int, rng: Random) -> None:
    lines[at:at] = lines[at : at + rng.choice((1, 1, 5))] * rng.choice((1, 1, 300))


def _swap(lines: list[str], at: int, rng: Random) -> None:
    other = rng.randrange(len(lines))
    lines[at], lines[other] = lines[other], lines[at]


def _rename(text: str, rng: Random) -> str:
    match = _match(text, r"(?m)^\s*[\w.]+(?=\s*=)", rng) or _match(text, r'"\w+"(?=\s*:)', rng)
    if match is None:
        return text
    at = rng.randrange(match.start(), match.end() + 1)
    return text[:at] + rng.choice(("x", "", "_", ".a")) + text[at + 1 :]


def _kind(text: str, rng: Random) -> str:
    """A value of another kind."""
    match = _match(text, r"(?<=[=:])\s*[^\n,}]+", rng)
    value = rng.choice(("[]", "{}", "true", '"text"', "-1", "1.5", "[1, [2]]", '{ name = "x" }', "2026-01-01", "null"))
    return text if match is None else f"{text[: match.start()]} {value}{text[match.end() :]}"


def _deep(text: str, rng: Random) -> str:
    match = _match(text, r"(?<=[=:])\s*[^\n,}]+", rng)
    depth, (left, right) = rng.choice((50, 500, 3000)), rng.choice((("[", "]"), ("{a=", "}"), ('{"a":', "}")))
    inner = "" if left == "[" else "1"
    value = left * depth + inner + right * depth
    return text + value if match is None else text[: match.start()] + value + text[match.end() :]


_TEXT: Sequence[Callable[[str, Random], str]] = (
    *(_number, _number, _word, _kind, _rename, _lines(_drop), _lines(_twice), _lines(_swap)) * 3,
    _deep,
)
