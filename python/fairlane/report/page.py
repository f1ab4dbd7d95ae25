"""The page: one HTML file with its style sheet, its modules, ECharts and the data, which needs nothing else.

Modules are data URLs of an import map, so that they can import each other in a file that is opened from disk.
"""

import base64
from html import escape
from importlib.resources import files
from importlib.resources.abc import Traversable
from string import Template
from typing import Any

from pydantic_core import to_json

from fairlane.results.errors import ResultsError

_BROWSER = files("fairlane.report") / "browser"
_ECHARTS = files("fairlane.report") / "vendor" / "echarts.min.js"


def html(title: str, data: dict[str, Any]) -> str:
    """The page with these data. ``title`` is plain text.

    Raises:
        ResultsError: fairlane was built without the JavaScript library.
    """
    require_echarts()
    modules = sorted((one for one in _BROWSER.iterdir() if one.name.endswith(".js")), key=lambda one: one.name)
    imports = {f"report/{module.name.removesuffix('.js')}": _data_url(module) for module in modules}
    return Template((_BROWSER / "page.html").read_text("utf-8")).substitute(
        title=escape(title),
        style=(_BROWSER / "page.css").read_text("utf-8"),
        imports=json_in_html({"imports": imports}),
        library=_ECHARTS.read_text("utf-8").replace("</script", "<\\/script"),
        data=json_in_html(data),
    )


def has_echarts() -> bool:
    """Whether fairlane was built with the JavaScript library that pages need."""
    return _ECHARTS.is_file()


def require_echarts() -> None:
    """Raises ``ResultsError`` if fairlane was built without the JavaScript library."""
    if not has_echarts():
        words = "is missing, and pages need it: make build downloads it, and packages of fairlane contain it"
        raise ResultsError(f"{_ECHARTS}: {words}")


def json_in_html(data: Any) -> str:
    """JSON that can stand in a script element: whatever names contain, it cannot end the element."""
    text = to_json(data, inf_nan_mode="null").decode()
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _data_url(module: Traversable) -> str:
    return f"data:text/javascript;charset=utf-8;base64,{base64.b64encode(module.read_bytes()).decode()}"
