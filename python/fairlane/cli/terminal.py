"""Text on the terminal: tables and sentences at its width.

What a command shows is a sequence of parts: strings, printed as they are; ``Text`` of rich, wrapped at the width of the
terminal; tables (``fairlane.views.tables``), whose columns adapt to the width; and views, which consist of these.
"""

import sys
from collections.abc import Iterable, Iterator, Sequence

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from fairlane.views.model import View
from fairlane.views.tables import EMPTY, Bad, Column, Faint, Good, Table

WIDTH = 140
"""Characters of a line where the output is no terminal."""
_UNLIMITED = 1000
_WRAPPED = 30
"""Characters that a column needs whose values may take several lines."""
_STYLES: dict[type, str] = {Bad: "red", Good: "green", Faint: "dim"}

Part = str | Text | Table | View
"""A part of what a command shows."""


def parts_of(view: View) -> Iterator[str | Text | Table]:
    """Yield the parts of a view."""
    yield f"{view.headline}\n" if view.facts else view.headline
    yield from view.facts
    tables = [table for table in view.tables if not table.only_page]
    if tables and not tables[0].title:
        yield ""
    yield from tables
    yield from (long(line, _STYLES.get(type(line), "dim")) for line in view.remarks)


def long(text: str, style: str = "") -> Text:
    """A sentence that is never broken into lines: where it goes to a file, it stays one line."""
    return Text(text, style=style, no_wrap=True)


def show(parts: Iterable[Part], console: Console | None = None) -> None:
    """Prints parts, to standard output unless a ``console`` is given."""
    console = console or (Console() if sys.stdout.isatty() else Console(width=WIDTH))
    for part in parts:
        if type(part) in _STYLES:
            console.print(long(str(part), _STYLES[type(part)]))
        elif isinstance(part, str):
            console.out(part, highlight=False)
        elif isinstance(part, Text):
            console.print(part, soft_wrap=bool(part.no_wrap))
        elif isinstance(part, View):
            show(parts_of(part), console)
        else:
            _print_table(part, console)


def _print_table(table: Table, console: Console) -> None:
    if table.otherwise is not None and not _fits(console, table, table.columns, 1):
        _print_table(table.otherwise(), console)
        return
    if table.title:
        console.print(Text(f"\n{table.title}", style="bold"))
    shown = list(table.columns)
    while not _fits(console, table, shown, 0) and (last := max(column.drop for column in shown)):
        shown = [column for column in shown if column.drop != last]
    narrow = _fits(console, table, shown, 0) and not _fits(console, table, shown, 1)
    console.print(_drawn(table, shown, 0 if narrow else 1))
    if table.most and len(table.rows) > table.most:
        console.print(Text(f"{len(table.rows) - table.most} more rows; --json has all.", style="dim"))
    if note := table.explained(shown):
        console.print(Text(note, style="dim"))


def _fits(console: Console, table: Table, shown: Sequence[Column], gap: int) -> bool:
    unlimited = console.options.update_width(_UNLIMITED)
    return console.measure(_drawn(table, shown, gap, _WRAPPED), options=unlimited).maximum <= console.width


def _drawn(table: Table, shown: Sequence[Column], gap: int, wrapped: int | None = None) -> RichTable:
    drawn = RichTable(box=SIMPLE_HEAD, padding=(0, gap, 0, 0), show_edge=False)
    for column in shown:
        drawn.add_column(
            column.header,
            justify="left" if table.is_left(column) else "right",
            no_wrap=not column.wrap,
            max_width=wrapped if column.wrap and wrapped else column.width,
            overflow="fold" if column.wrap else "ellipsis",
        )
    above: list[object] = []
    for row in table.rows[: table.most]:
        if row is None:
            drawn.add_section()
            continue
        cells = [column.cell(row) for column in shown]
        if not table.sparse or any(cell != EMPTY for cell in cells[1:]):
            same = [column.once and cells[: at + 1] == above[: at + 1] for at, column in enumerate(shown)]
            drawn.add_row(*("" if again else _text(cell) for cell, again in zip(cells, same, strict=True)))
            above = cells
    return drawn


def _text(cell: object) -> Text:
    return cell if isinstance(cell, Text) else Text(str(cell), style=_STYLES.get(type(cell), ""))
