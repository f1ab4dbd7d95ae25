"""Numbers as people read them."""

from __future__ import annotations

from collections.abc import Sequence

PREFIXES = ((1.0, ""), (1e-3, "m"), (1e-6, "µ"), (1e-9, "n"), (1e-12, "p"))


def seconds(value: float | None) -> str:
    """A time with three significant digits in a fitting unit: "1.23 ms"."""
    if value is None:
        return "–"
    factor, prefix = time_unit(value)
    return f"{_digits(value / factor)} {prefix}"


def wall_time(value: float) -> str:
    """A time that somebody waited: "0.03 s", "4.2 s", "130 s"."""
    return f"{value:.{2 if value < 0.995 else 1 if value < 99.95 else 0}f} s"


def time_unit(largest: float) -> tuple[float, str]:
    """The unit, as (seconds, name), in which ``largest`` seconds is a number between 1 and 1000."""
    factor, prefix = next(((f, p) for f, p in PREFIXES if abs(largest) >= f * 0.9995), (1.0, ""))
    return factor, f"{prefix}s"


def plural(number: int, word: str, more: str = "", *, count: bool = True) -> str:
    """A count with its word: "1 job", "1,200 jobs"; without ``count`` the word alone."""
    form = word if number == 1 else more or f"{word}s"
    return f"{number:,} {form}" if count else form


def listed(names: Sequence[str], most: int = 4) -> str:
    """Names in a sentence: "a, b and c"; of many the first ones, and how many others there are."""
    shown = list(names) if len(names) <= most + 1 else [*names[:most], f"{len(names) - most:,} others"]
    return " and ".join([", ".join(shown[:-1]), shown[-1]]) if len(shown) > 1 else "".join(shown)


def size(octets: float) -> str:
    """An amount of data with three significant digits in binary units: "512 B", "4.00 KiB", "1.50 GiB"."""
    value, unit = float(octets), "B"
    for larger in ("KiB", "MiB", "GiB", "TiB"):
        if abs(value) < 1023.5:
            break
        value, unit = value / 1024, larger
    return f"{value:.0f} B" if unit == "B" and value == round(value) else f"{_digits(value)} {unit}"


def rate(per_second: float) -> str:
    """A data rate in bits per second: "25.6 Gbit/s"."""
    value, unit = float(per_second), ""
    for larger in ("k", "M", "G", "T"):
        if abs(value) < 999.5:
            break
        value, unit = value / 1000, larger
    return f"{_digits(value)} {unit}bit/s"


def percent(share: float | None, *, signed: bool = False) -> str:
    """A share as a percentage with one decimal: "12.3%"; signed "+12.3%", "−12.3%"."""
    if share is None:
        return "–"
    if 0 < share < 0.0005 and not signed:
        return "<0.1%"
    decimals = 1 if abs(share) < 0.9995 else 0
    sign = "+" if signed and round(share, 3) else ""
    return f"{100 * round(share, 5):{sign}.{decimals}f}%".replace("-0.0", "0.0").replace("-", "−")


def short_percent(share: float) -> str:
    """The same for narrow columns, unsigned and with two digits: "0.4%", "12%", "135%"."""
    return "<.1%" if 0 < share < 0.0005 else f"{100 * share:.{1 if share < 0.0995 else 0}f}%"


def number(value: float) -> str:
    """A number with three significant digits, without an exponent."""
    return _digits(value)


def _digits(value: float) -> str:
    magnitude = abs(value)
    decimals = 2 if magnitude < 9.995 else 1 if magnitude < 99.95 else 0
    return f"{value:.{decimals}f}"
