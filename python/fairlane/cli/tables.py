"""Text on the terminal: tables whose columns are declared as data, and the one place that prints.

What a command shows is a sequence of parts: strings, printed as they are; ``Text`` of rich, wrapped at the width of the
terminal; and ``Table``. Formats of numbers are those of ``fairlane.wording``.
"""

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from rich.box import SIMPLE_HEAD
from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Table as RichTable
from rich.text import Text

from fairlane.statistics import SPREAD
from fairlane.wording import amount, percent, ratio, seconds, significant, with_half_width

Row = Mapping[str, Any]  # the values of a row by name
EMPTY = "–"  # what stands for a value that there is not
WIDTH = 140  # characters of a line where the output is no terminal
_UNLIMITED = 1000


def count(value: int) -> str:
    """A whole number with separators of thousands."""
    return f"{value:,}"


def fixed(digits: int, unit: str = "") -> Callable[[float], str]:
    """A format with so many decimals, and a unit behind the number."""
    return lambda value: f"{value:.{digits}f}{unit}"


def change(value: float | None) -> str:
    """A relative change in percent, with its sign."""
    return percent(value, signed=True)


def with_interval(key: str, form: Callable[[float], str], *, resolution: float = 0.0) -> Callable[[Row], str | None]:
    """A positive value of a row with its 95% interval, where it has one, as ``wording.amount`` writes it.

    The median and the range are the row's ``KEY_median``, ``KEY_min`` and ``KEY_max``.
    """

    def written(row: Row) -> str | None:
        value, low, high, median, least, greatest = (row.get(f"{key}{end}") for end in ("", "_low", "_high", *SPREAD))
        spread = None if median is None or least is None or greatest is None else (median, least, greatest)
        return None if value is None else amount(value, low, high, form, spread, resolution=resolution)

    return written


def with_change(key: str) -> Callable[[Row], str | None]:
    """A relative change of a row with half the width of its 95% interval, "−7.4% ± 0.6%", where it has one."""

    def written(row: Row) -> str | None:
        ends = row.get(f"{key}_low"), row.get(f"{key}_high")
        return None if row.get(key) is None else with_half_width(row[key], *ends, change)

    return written


def with_ratio(key: str, form: Callable[[float], str]) -> Callable[[Row], str | None]:
    """A ratio of a row with the ends of its 95% interval, "8.70 (2.10 to 36.0)", where it has one."""

    def written(row: Row) -> str | None:
        ends = row.get(f"{key}_low"), row.get(f"{key}_high")
        return None if row.get(key) is None else ratio(row[key], *ends, form)

    return written


def time_ps(picoseconds: float | None) -> str:
    """A time in picoseconds, in a fitting unit."""
    return seconds(None if picoseconds is None else picoseconds * 1e-12)


def _plain(value: Any) -> str | Text:
    if isinstance(value, str | Text):
        return value
    if isinstance(value, bool):
        return "yes" if value else "no"
    return count(value) if isinstance(value, int) else significant(value, 4) if isinstance(value, float) else str(value)


@dataclass(frozen=True)
class Column:
    """A column of a table."""

    header: str  # its heading; may have several lines
    value: str | Callable[[Row], Any]  # the key of the row, or a function of the row
    form: Callable[[Any], str | Text] = _plain  # how a value is written; None is always a dash
    left: bool | None = None
    """Whether it is aligned to the left; by default the first column of a table is, and no other."""
    wrap: bool = False  # whether long values take several lines
    width: int | None = None  # longer values are cut off
    drop: int = 0
    """Where the terminal is too narrow, columns with the greatest number are left out first; those with 0 stay."""
    note: str = ""  # an explanation below the table

    def cell(self, row: Row) -> str | Text:
        """The value in a row, as text."""
        value = self.value(row) if callable(self.value) else row.get(self.value)
        return EMPTY if value is None else self.form(value)


def columns(form: Callable[[Any], str | Text] = _plain, /, **headers: str) -> list[Column]:
    """Columns of one format: the keys of the rows with their headings."""
    return [Column(header, key, form) for key, header in headers.items()]


@dataclass(frozen=True)
class Table:
    """A table; the first column is aligned to the left. None among the rows begins a new section."""

    columns: Sequence[Column]
    rows: Sequence[Row | None]
    title: str = ""
    note: str = ""  # an explanation below, after those of the columns
    sparse: bool = False  # whether rows that have nothing in the columns that are shown are left out
    otherwise: Callable[[], Self] | None = None  # what is shown instead where the terminal is too narrow

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        if self.otherwise is not None and not self._fits(console, self.columns, 1):
            yield self.otherwise()
            return
        if self.title:
            yield Text(f"\n{self.title}", style="bold")
        shown = self._shown(console)
        narrow = self._fits(console, shown, 0) and not self._fits(console, shown, 1)
        yield self._drawn(shown, 0 if narrow else 1)
        explained = "; ".join(column.note for column in shown if column.note)
        if note := f"{explained}." if explained else self.note:
            yield Text(note, style="dim")

    def _fits(self, console: Console, shown: Sequence[Column], gap: int) -> bool:
        unlimited = console.options.update_width(_UNLIMITED)
        return console.measure(self._drawn(shown, gap), options=unlimited).maximum <= console.width

    def _shown(self, console: Console) -> list[Column]:
        shown = list(self.columns)
        while not self._fits(console, shown, 0) and (last := max(column.drop for column in shown)):
            shown = [column for column in shown if column.drop != last]
        return shown

    def _drawn(self, shown: Sequence[Column], gap: int) -> RichTable:
        table = RichTable(box=SIMPLE_HEAD, padding=(0, gap, 0, 0), show_edge=False)
        for place, column in enumerate(shown):
            table.add_column(
                column.header,
                justify="left" if (place == 0 if column.left is None else column.left) else "right",
                no_wrap=not column.wrap,
                max_width=column.width,
                overflow="fold" if column.wrap else "ellipsis",
            )
        for row in self.rows:
            if row is None:
                table.add_section()
                continue
            cells = [column.cell(row) for column in shown]
            if not self.sparse or any(cell != EMPTY for cell in cells[1:]):
                table.add_row(*(Text(cell) if isinstance(cell, str) else cell for cell in cells))
        return table


Part = str | Text | Table  # a part of what a command shows


def long(text: str, style: str = "") -> Text:
    """A sentence that is never broken into lines: where it goes to a file, it stays one line."""
    return Text(text, style=style, no_wrap=True)


def show(parts: Iterable[Part], console: Console | None = None) -> None:
    """Prints parts, to standard output unless a ``console`` is given."""
    console = console or (Console() if sys.stdout.isatty() else Console(width=WIDTH))
    for part in parts:
        if isinstance(part, str):
            console.out(part, highlight=False)
        else:
            console.print(part, soft_wrap=isinstance(part, Text) and bool(part.no_wrap))
