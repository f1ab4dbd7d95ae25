"""What the server's own pages are made of: a template, modules, style sheets. They share those of report pages."""

import re
from dataclasses import dataclass
from html import escape
from importlib.resources import files
from importlib.resources.abc import Traversable
from string import Template

from pydantic_core import to_json

from fairlane.report.page import BROWSER, ECHARTS, constants
from fairlane.views.page import json_in_html, style

_SERVE = files("fairlane.serve") / "browser"
_TYPES = {".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8"}
_SCRIPT = re.compile(r"<script(?=[ >])")


@dataclass(frozen=True)
class Asset:
    """A file that pages load."""

    content: bytes
    kind: str
    """Its media type."""


def assets() -> dict[str, Asset]:
    """All of them by their paths below ``/assets``; nothing else can be asked for."""
    found: dict[str, Traversable] = {"echarts.js": ECHARTS}
    for name, folder in (("report", BROWSER), ("serve", _SERVE)):
        found |= {f"{name}/{file.name}": file for file in folder.iterdir() if file.name.endswith((".js", ".css"))}
    made = {name: Asset(file.read_bytes(), _TYPES[f".{name.rpartition('.')[2]}"]) for name, file in found.items()}
    made["report/page.css"] = Asset(style().encode(), _TYPES[".css"])
    return made | {"report/constants.js": Asset(constants(), _TYPES[".js"])}


def page(name: str, title: str, nonce: str, data: object, known: dict[str, Asset]) -> str:
    """A page whose module is ``serve/NAME``. ``title`` is plain text; ``data`` is what the module gets, as JSON."""
    modules = [path.removesuffix(".js") for path in known if "/" in path and path.endswith(".js")]
    imports = {module: f"/assets/{module}.js" for module in modules}
    return Template((_SERVE / "page.html").read_text("utf-8")).substitute(
        title=escape(title),
        body=(_SERVE / f"{name}.html").read_text("utf-8"),
        imports=json_in_html({"imports": imports}),
        data=json_in_html(data),
        module=to_json(f"serve/{name}").decode(),
        nonce=nonce,
    )


def error_page(words: str, nonce: str) -> str:
    """A page that says what is wrong, in plain text, and needs nothing else."""
    return Template((_SERVE / "error.html").read_text("utf-8")).substitute(
        words=escape(words), style=style(), nonce=nonce
    )


def served(report: str, nonce: str) -> str:
    """A report page as the server sends it: its scripts have a nonce, and a link leads back to the list.

    Names in a page cannot contain a tag: they are escaped wherever it has them.
    """
    link = '<nav class="served" aria-label="Results"><a href="/">All results</a></nav>'
    return _SCRIPT.sub(f'<script nonce="{nonce}"', report).replace("<body>", f"<body>{link}", 1)
