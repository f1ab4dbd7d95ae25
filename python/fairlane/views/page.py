"""A view as one HTML file, which opens from disk and needs no network, and as HTML in a notebook.

The text and the tables are HTML; charts are drawn by Vega-Lite, whose expressions are interpreted, because
``fairlane serve`` forbids pages to compile code. The data of charts and exports are deflated.
"""

import base64
import zlib
from base64 import b64encode
from collections.abc import Iterator
from functools import cache
from html import escape
from importlib.resources import files
from re import sub
from string import Template
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl
import vl_convert
from pydantic_core import to_json

from fairlane.views.charts import Panels
from fairlane.views.model import Chart, Custom, View
from fairlane.views.picture import picture
from fairlane.views.style import PAGE, PAGE_FONT, Look, config, properties
from fairlane.views.tables import Bad, Column, Faint, Good, Row, Table

NUMBERS = {"f32": "<f4", "u8": "<u1", "u16": "<u2", "u32": "<u4", "i32": "<i4"}
"""Types of numbers in a page, and numpy's names of them."""


def pack(values: npt.ArrayLike, kind: str) -> dict[str, Any]:
    """An array of one of the ``KINDS`` as JSON: its type, and its numbers in row-major order."""
    numbers = np.ascontiguousarray(np.asarray(values), dtype=NUMBERS[kind])
    return {"array": kind, "data": base64.b64encode(zlib.compress(numbers.tobytes(), 9)).decode()}


def unpack(packed: dict[str, Any]) -> npt.NDArray[Any]:
    """The numbers of ``pack``, in one dimension."""
    return np.frombuffer(zlib.decompress(base64.b64decode(packed["data"])), NUMBERS[packed["array"]])


def smallest(count: int) -> str:
    """The smallest unsigned type for numbers below ``count``."""
    return "u8" if count <= 2**8 else "u16" if count <= 2**16 else "u32"


BROWSER = files("fairlane.views") / "browser"
_CLASSES: dict[type, str] = {Bad: "bad", Good: "good", Faint: "faint"}
MANY_ROWS = 20
"""Longer tables have a field that searches in them, and scroll."""


def page(view: View) -> str:
    """The page."""
    data = {"config": config(PAGE, PAGE_FONT), "charts": {}, "csv": {}, "custom": {}}
    shown = [part for part in view.parts if not (isinstance(part, Chart) and part.only_picture)]
    cards = [_card(part, f"table{at}", part.title or view.title, data) for at, part in enumerate(shown)]
    return Template((BROWSER / "page.html").read_text("utf-8")).substitute(
        title=escape(view.title),
        style=style(),
        modules=_modules() if data["custom"] else "",
        headline=escape(view.headline),
        facts="".join(f"<p>{escape(line)}</p>" for line in view.facts),
        cards="\n".join(cards),
        remarks="".join(f"<li>{_text(line)}</li>" for line in view.remarks),
        provenance="".join(_provenance(view)),
        data=b64encode(zlib.compress(to_json(data, inf_nan_mode="null"))).decode(),
        library=library(),
        script=(BROWSER / "page.js").read_text("utf-8"),
    )


def notebook(view: View) -> str:
    """The headline, the tables and the charts of a view, without scripts."""
    drawn = [picture(view, charts, Look(format="svg")).decode() for charts in view.drawn.values()]
    tables = [_table(part) for part in view.tables if not part.only_page]
    facts = [f"<div>{escape(line)}</div>" for line in view.facts]
    return "\n".join(
        [f'<div><b style="white-space: pre-line">{escape(view.headline)}</b>', *facts, *tables, *drawn, "</div>"]
    )


def style() -> str:
    """The style sheet of pages, with the colours of data of both themes."""
    light, dark = properties("light"), properties("dark")
    rules = [
        f":root {{ {light} }}",
        f"@media screen and (prefers-color-scheme: dark) {{ :root:not([data-theme=light]) {{ {dark} }} }}",
        f"@media screen {{ :root[data-theme=dark] {{ {dark} }} }}",  # paper is white
    ]
    return (BROWSER / "page.css").read_text("utf-8") + "\n".join(rules)


@cache
def library() -> str:
    """Vega, Vega-Lite and Vega-Embed as one script; what vl-convert draws pictures with."""
    return vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;").replace("</script", "<\\/script")


def json_in_html(data: Any) -> str:
    """JSON that can stand in a script element: whatever names contain, it cannot end the element."""
    text = to_json(data, inf_nan_mode="null").decode()
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _modules() -> str:
    """An import map of the modules of ``browser``, as data URLs: so they import each other in a file from disk."""
    files = sorted((file for file in BROWSER.iterdir() if file.name.endswith(".js")), key=lambda file: file.name)
    imports = {f"fairlane/{file.name.removesuffix('.js')}": _data_url(file.read_bytes()) for file in files}
    return f'<script type="importmap">{json_in_html({"imports": imports})}</script>\n'


def _data_url(module: bytes) -> str:
    return f"data:text/javascript;charset=utf-8;base64,{b64encode(module).decode()}"


def _identifier(name: str) -> str:
    """A name that contains that of a result, as one of an element."""
    return sub(r"[^\w-]+", "-", name)


def _card(part: Table | Chart | Custom, name: str, title: str, data: dict[str, Any]) -> str:
    """A part as HTML; what its scripts need goes into ``data``."""
    kinds, note = ["CSV"], ""
    if isinstance(part, Chart):
        name, kinds, note = _identifier(part.name), ["SVG", "PNG", "CSV"], part.note
        spec = data["charts"][name] = part.spec.to_dict(validate=False)
        spec.pop("config", None)
        if not isinstance(part.spec, Panels):
            spec["width"] = 1  # the page makes it as wide as it is
        body = f'<div class="chart" role="img" aria-labelledby="{name}-sentence"></div>'
    elif isinstance(part, Custom):
        name, kinds, note = _identifier(part.name), ["SVG", "PNG", "CSV"], part.note
        data["custom"][name] = {"module": part.module, "data": part.data()}
        body = '<div class="custom"></div>'
    else:
        body, note = _table(part), part.explained(part.columns)
    if not isinstance(part, Custom):
        data["csv"][name] = _csv(part)
        scroller = "scroller low" if isinstance(part, Table) and len(part.rows) > MANY_ROWS else "scroller"
        body = f'<div class="{scroller}" tabindex="0" role="group" aria-label="{escape(title)}">{body}</div>'
    buttons = [f'<button type="button" aria-label="{escape(title)} as {kind}">{kind}</button>' for kind in kinds]
    wide = "card" if isinstance(part, Chart) and not part.wide else "card wide"
    return f"""<section class="{wide}" id="{name}" aria-labelledby="{name}-title">
<h2 id="{name}-title">{escape(title)}</h2>
<p class="sentence" id="{name}-sentence">{escape(part.sentence)}</p>
<div class="controls"></div>
{body}
<p class="note" id="{name}-note">{escape(note)}</p>
<div class="export">{"".join(buttons)}</div>
</section>"""


def _table(table: Table) -> str:
    head = "".join(f'<th scope="col"{_look(table, column)}>{escape(column.header)}</th>' for column in table.columns)
    return f'<table class="rows"><thead><tr>{head}</tr></thead><tbody>{cells_of(table)}</tbody></table>'


def cells_of(table: Table) -> str:
    """The rows of a table as HTML."""
    return "".join(_row(table, row) for row in table.rows if row is not None)


def _row(table: Table, row: Row) -> str:
    key = f' data-key="{escape(row["key"])}"' if table.keyed else ""
    return f"<tr{key}>{''.join(_cell(table, column, row) for column in table.columns)}</tr>"


def _look(table: Table, column: Column) -> str:
    classes = [*([] if table.is_left(column) else ["number"]), *([] if column.wrap else ["whole"])]
    return f' class="{" ".join(classes)}"'


def _cell(table: Table, column: Column, row: Row) -> str:
    text, number = column.cell(row), column.number(row)
    order = "" if number is None else f' data-order="{number!r}"'
    return f"<td{_look(table, column)}{order}>{_text(text)}</td>"


def _text(text: object) -> str:
    name = _CLASSES.get(type(text))
    return f'<span class="{name}">{escape(str(text))}</span>' if name else escape(str(text))


def _csv(part: Table | Chart) -> str:
    frame = part.frame if isinstance(part, Chart) else part.data
    if frame is not None:
        return frame.write_csv()
    if isinstance(part, Chart):
        plain = [{key: value for key, value in row.items() if not isinstance(value, list | dict)} for row in part.data]
        return pl.DataFrame(plain, infer_schema_length=None).write_csv()
    shown = [{column.header: str(column.cell(row)) for column in part.columns} for row in part.rows if row is not None]
    return pl.DataFrame(shown).write_csv()


def _provenance(view: View) -> Iterator[str]:
    for name, terms in view.provenance.items():
        known = {escape(term): escape(str(value)) for term, value in terms.items() if value not in (None, "")}
        rows = "".join(f"<dt>{term}</dt><dd>{value}</dd>" for term, value in known.items())
        yield f"<h3>{escape(name)}</h3><dl>{rows}</dl>"
