"""Numbers as people read them."""

from __future__ import annotations

from fairlane.wording import data_size, listed, plural, significant

__all__ = [
    "data_size",
    "listed",
    "number",
    "percent",
    "plural",
    "seconds",
    "short_percent",
    "significant",
    "time_unit",
    "wall_time",
]

PREFIXES = ((1.0, ""), (1e-3, "m"), (1e-6, "µ"), (1e-9, "n"), (1e-12, "p"))


def seconds(value: float | None) -> str:
    """A time with three significant digits in a fitting unit: "1.23 ms"."""
    if value is None:
        return "–"
    if value == 0:
        return "0 s"
    factor, prefix = time_unit(value)
    return f"{_digits(value / factor)} {prefix}"


def wall_time(value: float) -> str:
    """A time that somebody waited: "0.03 s", "4.2 s", "130 s"."""
    return f"{value:.{2 if value < 0.995 else 1 if value < 99.95 else 0}f} s"


def time_unit(largest: float) -> tuple[float, str]:
    """The unit, as (seconds, name), in which ``largest`` seconds is a number between 1 and 1000."""
    factor, prefix = next(((f, p) for f, p in PREFIXES if abs(largest) >= f * 0.9995), (1.0, ""))
    return factor, f"{prefix}s"


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
