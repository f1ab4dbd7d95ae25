"""Counts and amounts in messages, tables and labels: plurals, lists of names, sizes, times, shares, plain numbers.

Quantities of the simulator's own units, which are read back as they are written, are in ``fairlane.core.units``.
"""

from collections.abc import Callable, Iterable, Sequence
from html import escape
from math import floor, isfinite, log10

_SMALLEST = 1e-4
"""Numbers below this have an exponent."""
_EQUAL = 1e-9
"""The width of an interval over its value up to which its values are equal but for rounding."""
_SIZES = ("KiB", "MiB", "GiB", "TiB")
_RATES = ((1e12, "Tb/s"), (1e9, "Gb/s"), (1e6, "Mb/s"), (1e3, "kb/s"), (1.0, "b/s"))
_DURATIONS = ((86400.0, "d"), (3600.0, "h"), (60.0, "min"))
_PREFIXES = ((1.0, ""), (1e-3, "m"), (1e-6, "µ"), (1e-9, "n"), (1e-12, "p"))


def plural(number: int, word: str, more: str = "", *, count: bool = True) -> str:
    """A count with its word: "1 job", "1,200 jobs"; without ``count`` the word alone."""
    form = word if number == 1 else more or f"{word}s"
    return f"{number:,} {form}" if count else form


def listed(names: Sequence[str], most: int = 4) -> str:
    """Names in a sentence: "a, b and c"; of many the first ones, and how many others there are."""
    shown = list(names) if len(names) <= most + 1 else [*names[:most], f"{len(names) - most:,} others"]
    return " and ".join([", ".join(shown[:-1]), shown[-1]]) if len(shown) > 1 else "".join(shown)


def some(texts: Iterable[str], most: int) -> str:
    """The first of many, and how many more there are: "a, b, c and 3 more"."""
    every = list(texts)
    return ", ".join(every[:most]) + (f" and {len(every) - most} more" if len(every) > most else "")


def shortened(text: str, most: int) -> str:
    """A text of so many letters at most; of a longer one the beginning and the end: "group0-row0…switch5 port 19"."""
    return text if len(text) <= most else f"{text[: most // 2]}…{text[len(text) - (most - 1) // 2 :]}"


def renamed(word: str, given: Iterable[str], written: Iterable[str], why: str = "", more: str = "") -> list[str]:
    """A sentence on the names that are written otherwise, with the first of them; none where all are the same."""
    pairs = [(before, after) for before, after in zip(given, written, strict=True) if before != after]
    if len(pairs) == 1:
        return [f"{word} {pairs[0][0]!r} is written as {pairs[0][1]}{why}"]
    named = some((f"{before!r} as {after}" for before, after in pairs), 3)
    return [f"{plural(len(pairs), word, more)} are written by other names{why}: {named}"] if pairs else []


def html_table(title: str, headings: Sequence[str], rows: Iterable[Sequence[object]], most: int = 12) -> str:
    """A title and a small table for notebooks; of more than ``most`` rows the first ones, and how many there are."""
    every = list(rows)
    shown = every if len(every) <= most + 1 else every[:most]
    body = [f"<tr>{''.join(f'<td>{escape(str(cell))}</td>' for cell in row)}</tr>" for row in shown]
    if len(shown) < len(every):
        body.append(f'<tr><td colspan="{len(headings)}">… {len(every) - len(shown):,} more</td></tr>')
    head = "".join(f"<th>{escape(heading)}</th>" for heading in headings)
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(body)}</tbody></table>" if every else ""
    return f"<div><b>{escape(title)}</b>{table}</div>"


def data_size(octets: float) -> str:
    """An amount of data with three significant digits in binary units: "512 B", "1 KiB", "1.5 GiB"."""
    value, unit = float(octets), "B"
    for larger in _SIZES:
        if abs(value) < 1023.5:
            break
        value, unit = value / 1024, larger
    # Up to 1023 of a unit there are four digits before the point.
    return f"{significant(value, 3 if abs(value) < 999.5 else 4)} {unit}"


def bit_rate(bits_per_second: float) -> str:
    """A link's bandwidth with three significant digits: "100 Gb/s", "6.25 Gb/s"."""
    factor, unit = next(((size, name) for size, name in _RATES if bits_per_second >= size), _RATES[-1])
    return f"{significant(bits_per_second / factor)} {unit}"


def significant(value: float, digits: int = 3) -> str:
    """A number with so many significant digits, at least all before the point, and no exponent: "0.0123", "12,345"."""
    if value == 0:
        return "0"
    if abs(value) < _SMALLEST or not isfinite(value):
        return f"{value:.{digits}g}"
    decimals = max(0, digits - 1 - floor(log10(abs(value))))
    text = f"{round(value, decimals):,.{decimals}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def seconds(value: float | None) -> str:
    """A time with three significant digits in a fitting unit: "1.23 ms"."""
    if value is None:
        return "–"
    if value == 0:
        return "0 s"
    factor, prefix = time_unit(value)
    return f"{number(value / factor)} {prefix}"


def wall_time(value: float) -> str:
    """A time that somebody waited: "0.03 s", "4.2 s", "130 s"."""
    return f"{value:.{2 if value < 0.995 else 1 if value < 99.95 else 0}f} s"


def duration(value: float) -> str:
    """A time that jobs take or wait, with three significant digits, from seconds to days: "24.2 h", "47.0 d"."""
    factor, unit = duration_unit(value)
    return f"{number(value / factor)} {unit}"


def duration_unit(largest: float) -> tuple[float, str]:
    """The unit of such a time, as (seconds, name), of which ``largest`` seconds is two or more."""
    return next(((size, unit) for size, unit in _DURATIONS if largest >= 2 * size), (1.0, "s"))


def time_unit(largest: float) -> tuple[float, str]:
    """The unit, as (seconds, name), in which ``largest`` seconds is a number between 1 and 1000."""
    factor, prefix = next(((f, p) for f, p in _PREFIXES if abs(largest) >= f * 0.9995), (1.0, ""))
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


def fine_percent(share: float) -> str:
    """A share as ``percent`` writes it, with one digit of what is below 0.1%: "1.0%", "0.01%"."""
    return percent(share) if share >= 0.001 else f"{100 * share:.1g}%"


def short_percent(share: float) -> str:
    """The same for narrow columns, unsigned and with two digits: "0.4%", "12%", "135%"."""
    return "<.1%" if 0 < share < 0.0005 else f"{100 * share:.{1 if share < 0.0995 else 0}f}%"


def with_half_width(value: float, low: float | None, high: float | None, form: Callable[[float], str] = percent) -> str:
    """A value of any sign, as a change, with half the width of its interval, if it has one: "−7.4% ± 0.6%".

    Equal values have an interval without a width, which says nothing of their uncertainty: it is left out. One that is
    narrower than the last digit is written as that: "−7.4% ± <0.1%".
    """
    shown = form(value)
    if low is None or high is None or high - low <= _EQUAL * abs(value):
        return shown
    half = form((high - low) / 2).lstrip("+")
    if not half.startswith("<") and not any(digit in half for digit in "123456789"):
        half = "<" + "1".join(half.rsplit("0", 1))
    return f"{shown} ± {half}"


def amount(
    value: float,
    low: float | None,
    high: float | None,
    form: Callable[[float], str],
    spread: tuple[float, float, float] | None = None,
    *,
    resolution: float = 0.0,
) -> str:
    """A positive value, as a time, with half the width of its interval, if it has one: "1.18 ms ± 57.0 µs".

    An interval that reaches zero says little about a mean. In its place stand the median and the range of the values,
    which are given as ``spread``: "median 95.0 µs (12.0 µs to 1.30 ms)"; without them its upper end: "381 µs (up to
    803 µs)". With a ``resolution``, the relative width of the buckets of a histogram, an interval within one bucket is
    written by it: "931 µs ± <0.4%".
    """
    if low is None or high is None:
        return form(value)
    if low <= 0 < value:
        if spread is None:
            return f"{form(value)} (up to {form(high)})"
        median, least, greatest = spread
        return f"median {form(median)} ({form(least)} to {form(greatest)})"
    if resolution and high <= low:
        return f"{form(value)} ± <{percent(resolution)}"
    return with_half_width(value, low, high, form)


def ratio(value: float, low: float | None, high: float | None, form: Callable[[float], str]) -> str:
    """A ratio, with the ends of its interval, which is not symmetric: "8.70 (2.10 to 36.0)"."""
    if low is None or high is None or form(low) == form(high):
        return form(value)
    return f"{form(value)} ({form(low)} to {form(high)})"


def number(value: float) -> str:
    """A number with three significant digits, without an exponent: "1.23", "−45.6"."""
    magnitude = abs(value)
    decimals = 2 if magnitude < 9.995 else 1 if magnitude < 99.95 else 0
    return f"{value:.{decimals}f}".replace("-", "−")


def bytes_text(amount: float) -> str:
    """As "1.2 GiB"."""
    units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"]
    while amount >= 1000 and len(units) > 1:
        amount /= 1024
        units.pop(0)
    return f"{_two_digits(amount)} {units[0]}"


def seconds_text(seconds: float) -> str:
    """As "3 min": two digits, for it is an estimate."""
    if seconds < 1:
        return "less than a second"
    for unit, size in (("s", 60), ("min", 60), ("h", 24), ("days", 365)):
        if seconds < 1.5 * size:
            return f"{_two_digits(seconds)} {unit}"
        seconds /= size
    return f"{_two_digits(seconds)} years"


def _two_digits(number: float) -> str:
    return f"{number:.1f}" if number < 10 else f"{float(f'{number:.2g}'):,.0f}"
