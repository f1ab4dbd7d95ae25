"""What the server's own pages are made of: a template, modules, style sheets. They share those of pages of views."""

import re
from dataclasses import dataclass
from html import escape
from importlib.resources import files
from importlib.resources.abc import Traversable
from string import Template

from fairlane.views.page import BROWSER, json_in_html, style

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
    found: dict[str, Traversable] = {}
    for name, folder in (("fairlane", BROWSER), ("serve", _SERVE)):
        found |= {f"{name}/{file.name}": file for file in folder.iterdir() if file.name.endswith((".js", ".css"))}
    made = {name: Asset(file.read_bytes(), _TYPES[f".{name.rpartition('.')[2]}"]) for name, file in found.items()}
    return made | {"fairlane/page.css": Asset(style().encode(), _TYPES[".css"])}


def page(name: str, title: str, nonce: str, data: object) -> str:
    """A page whose module is ``serve/NAME``. ``title`` is plain text; ``data`` is what the module gets, as JSON."""
    return Template((_SERVE / "page.html").read_text("utf-8")).substitute(
        title=escape(title),
        body=(_SERVE / f"{name}.html").read_text("utf-8"),
        script=_script(name, nonce, data),
    )


def _script(name: str, nonce: str, data: object) -> str:
    return (
        f'<script type="application/json" id="given">{json_in_html(data)}</script>'
        f'<script type="module" nonce="{nonce}" src="/assets/serve/{name}.js"></script>'
    )


def live(page: str, nonce: str, data: object) -> str:
    """The page of a run in progress: that of its view, with how far it is, and the module that keeps it up to date."""
    progress = (_SERVE / "live.html").read_text("utf-8")
    sheet = (_SERVE / "serve.css").read_text("utf-8")
    text = served(page, nonce).replace("</head>", f"<style>{sheet}</style></head>", 1)
    text = text.replace('<div id="figures">', f'{progress}<div id="figures">', 1)
    head, end, tail = text.rpartition("</body>")
    return f"{head}{_script('live', nonce, data)}{end}{tail}"


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
    return _SCRIPT.sub(f'<script nonce="{nonce}"', report).replace("<header>", f"{link}<header>", 1)
