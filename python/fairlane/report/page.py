"""The page: one HTML file with its style sheet, its modules, ECharts and the data, which needs nothing else.

Modules are data URLs of an import map, so that they can import each other in a file that is opened from disk. Those in
``browser`` are for every page, those in ``browser/KIND`` for one kind: ``main.js`` adds its cards, ``body.html`` and
``style.css`` are optional.
"""

import base64
from html import escape
from importlib.resources import files
from importlib.resources.abc import Traversable
from string import Template
from typing import Any

from pydantic_core import to_json

from fairlane.colours import LIGHT
from fairlane.results.errors import ResultsError
from fairlane.views.page import json_in_html, style

BROWSER = files("fairlane.report") / "browser"
"""Modules, style sheets and templates of pages."""
ECHARTS = files("fairlane.report") / "vendor" / "echarts.min.js"
"""The JavaScript library that draws charts; ``make build`` downloads it."""


def html(title: str, data: dict[str, Any], kind: str) -> str:
    """The page with these data.

    Args:
        title: Plain text.
        data: What the page contains.
        kind: The folder in ``browser`` with its modules.

    Raises:
        ResultsError: fairlane was built without the JavaScript library.
    """
    require_echarts()
    own = BROWSER / kind
    imports = {f"report/{name}": _data_url(module.read_bytes()) for name, module in _modules(BROWSER).items()}
    imports["report/constants"] = _data_url(constants())
    imports |= {f"report/{kind}/{name}": _data_url(module.read_bytes()) for name, module in _modules(own).items()}
    return Template((BROWSER / "page.html").read_text("utf-8")).substitute(
        title=escape(title),
        kind=kind,
        style=style() + _optional(own / "style.css"),
        body=_optional(own / "body.html"),
        imports=json_in_html({"imports": imports}),
        library=ECHARTS.read_text("utf-8").replace("</script", "<\\/script"),
        data=json_in_html(data),
    )


def constants() -> bytes:
    """The module ``report/constants``: what figures and pages have in common, of ``views.scales`` and ``colours``."""
    from fairlane.views import scales

    values = {"WIDE": scales.WIDE, "FEW_LARGE": scales.FEW_LARGE, "DECADES": scales.DECADES, "COLOURS": LIGHT.palette}
    return b"".join(f"export const {name} = ".encode() + to_json(value) + b";\n" for name, value in values.items())


def has_echarts() -> bool:
    """Whether fairlane was built with the JavaScript library that pages need."""
    return ECHARTS.is_file()


def require_echarts() -> None:
    """Raises ``ResultsError`` if fairlane was built without the JavaScript library."""
    if not has_echarts():
        words = "is missing, and pages need it: make build downloads it, and packages of fairlane contain it"
        raise ResultsError(f"{ECHARTS}: {words}")


def _modules(folder: Traversable) -> dict[str, Traversable]:
    """The modules of a folder by name, in order."""
    found = sorted(folder.iterdir(), key=lambda one: one.name)
    return {one.name.removesuffix(".js"): one for one in found if one.name.endswith(".js")}


def _optional(file: Traversable) -> str:
    return file.read_text("utf-8") if file.is_file() else ""


def _data_url(module: bytes) -> str:
    return f"data:text/javascript;charset=utf-8;base64,{base64.b64encode(module).decode()}"
