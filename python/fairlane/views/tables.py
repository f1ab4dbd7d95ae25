"""Tables as data: columns with headings, formats and intervals, and rows. Writers turn them into text or HTML.

Formats of numbers are those of ``fairlane.core.wording``.
"""

from collections.abc import Callable, Mapping, Sequence, Sized
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from fairlane.core.wording import amount, percent, ratio, seconds, significant, with_half_width

if TYPE_CHECKING:
    import polars as pl

Row = Mapping[str, Any]
"""Values by name."""
Write = Callable[[Any], Any]
"""Writes a value as text."""
INTERVAL = ("", "_low", "_high")
"""Ends of the names of a value and of the lower and the upper end of its 95% interval."""
EMPTY = "–"
"""Sign of a value that is missing."""


class Bad(str):
    """Text about a failure or a loss: red, where the writer has colours."""

    __slots__ = ()


class Good(str):
    """Text about a gain: green, where the writer has colours."""

    __slots__ = ()


class Faint(str):
    """Text about what is within noise, or nothing: paler, where the writer has colours."""

    __slots__ = ()


def count(value: int) -> str:
    """A whole number with separators of thousands."""
    return f"{value:,}"


def fixed(digits: int, unit: str = "") -> Callable[[float], str]:
    """A format with so many decimals, and a unit behind the number."""
    return lambda value: f"{value:.{digits}f}{unit}"


def change(value: float | None) -> str:
    """A relative change in percent, with its sign."""
    return percent(value, signed=True)


def time_ps(picoseconds: float | None) -> str:
    """A time in picoseconds, in a fitting unit."""
    return seconds(None if picoseconds is None else picoseconds * 1e-12)


@dataclass(frozen=True)
class Estimated:
    """The text of a value of a row with its interval; rows are sorted by the value."""

    key: str
    write: Callable[[Row], str]

    def __call__(self, row: Row) -> str | None:
        """The text, None where there is no value."""
        return None if row.get(self.key) is None else self.write(row)


def with_interval(key: str, form: Callable[[float], str], *, resolution: float = 0.0) -> Estimated:
    """A positive value of a row with its 95% interval, where it has one, as ``wording.amount`` writes it.

    The median and the range are the row's ``KEY_median``, ``KEY_min`` and ``KEY_max``.
    """

    def written(row: Row) -> str:
        from fairlane.core.statistics import SPREAD

        value, low, high, median, least, greatest = (row.get(f"{key}{end}") for end in ("", "_low", "_high", *SPREAD))
        spread = None if median is None or least is None or greatest is None else (median, least, greatest)
        return amount(value or 0.0, low, high, form, spread, resolution=resolution)

    return Estimated(key, written)


def with_change(key: str) -> Estimated:
    """A relative change of a row with half the width of its 95% interval, "−7.4% ± 0.6%", where it has one."""
    return Estimated(key, lambda row: with_half_width(row[key], row.get(f"{key}_low"), row.get(f"{key}_high"), change))


def with_ratio(key: str, form: Callable[[float], str]) -> Estimated:
    """A ratio of a row with the ends of its 95% interval, "8.70 (2.10 to 36.0)", where it has one."""
    return Estimated(key, lambda row: ratio(row[key], row.get(f"{key}_low"), row.get(f"{key}_high"), form))


def _plain(value: Any) -> Any:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return count(value) if isinstance(value, int) else significant(value, 4) if isinstance(value, float) else value


@dataclass(frozen=True)
class Column:
    """A column of a table."""

    header: str
    """Its heading; may have several lines."""
    value: str | Callable[[Row], Any]
    """The key of the row, or a function of the row."""
    form: Write = _plain
    """Format of a value; None is always a dash."""
    left: bool | None = None
    """Whether it is aligned to the left; by default the first column of a table is, and no other."""
    wrap: bool = False
    """Whether long values take several lines on a terminal."""
    width: int | None = None
    """Longer values are cut off on a terminal."""
    drop: int = 0
    """Order of leaving out columns where the terminal is too narrow: greatest number first; those with 0 stay."""
    note: str = ""
    """An explanation below the table."""
    once: bool = False
    """Whether a terminal leaves a value out that is that of the row above, as are those of all columns before it."""

    def cell(self, row: Row) -> Any:
        """The value in a row, as text."""
        value = self.value(row) if callable(self.value) else row.get(self.value)
        return EMPTY if value is None else self.form(value)

    def number(self, row: Row) -> float | None:
        """The number that rows are sorted by; None if the column has none."""
        key = self.value if isinstance(self.value, str) else getattr(self.value, "key", None)
        value = row.get(key) if key else None
        return float(value) if isinstance(value, int | float) else None


def interval_of(row: Row, key: str) -> dict[str, Any]:
    """A value of a row and its interval, as the ``value`` of another row."""
    return {f"value{end}": row.get(f"{key}{end}") for end in INTERVAL}


def naming(every: Sized, key: str) -> list[Column]:
    """The column of the names of results, where there are several."""
    return [Column(key, key)] if len(every) > 1 else []


def columns(form: Write = _plain, /, **headers: str) -> list[Column]:
    """Columns of one format: the keys of the rows with their headings."""
    return [Column(header, key, form) for key, header in headers.items()]


@dataclass(frozen=True)
class Table:
    """A table; the first column is aligned to the left. None among the rows begins a new section."""

    columns: Sequence[Column]
    rows: Sequence[Row | None]
    title: str = ""
    note: str = ""
    """An explanation below, after those of the columns."""
    sparse: bool = False
    """Whether rows that have nothing in the columns that are shown are left out."""
    otherwise: Callable[[], Self] | None = None
    """Table that is shown instead where the terminal is too narrow."""
    sentence: str = ""
    """Message of its numbers, on a page."""
    most: int | None = None
    """Number of rows in a terminal; a page has all."""
    only_page: bool = False
    """Whether a terminal leaves it out."""
    keyed: bool = False
    """Whether rows have a ``key`` by which a page chooses them."""
    data: "pl.DataFrame | None" = None
    """Frame that a page exports as CSV; by default the rows that it shows."""

    def is_left(self, column: Column) -> bool:
        """Whether a column is aligned to the left."""
        return column is self.columns[0] if column.left is None else column.left

    def explained(self, shown: Sequence[Column]) -> str:
        """Return the text below the table where these columns are shown."""
        notes = "; ".join(column.note for column in shown if column.note)
        return " ".join(filter(None, (f"{notes}." if notes else "", self.note)))


def terms(lines: Mapping[str, str], title: str, *, sentence: str) -> Table:
    """A table of terms and what they are."""
    rows = [{"term": term, "value": value} for term, value in lines.items()]
    return Table(
        [Column("term", "term"), Column("value", "value", left=True, wrap=True)], rows, title, sentence=sentence
    )
