"""A view in a file that a user has named: a picture of all its charts, or a page."""

from pathlib import Path

from fairlane.errors import Problem, ScenarioError
from fairlane.inputs.files import replacing
from fairlane.views.model import View
from fairlane.views.style import Look

FORMATS = (".png", ".svg", ".pdf", ".html")


def write(view: View, path: Path) -> Path:
    """Writes a view, and returns the path. Raises ``ScenarioError`` if that is not possible."""
    from fairlane.views.page import page
    from fairlane.views.picture import picture

    kind = path.suffix.lower().removeprefix(".")
    if f".{kind}" not in FORMATS:
        raise ScenarioError(Problem("--out", "unknown picture format", str(path), ", ".join(FORMATS)))
    content = page(view).encode() if kind == "html" else picture(view, view.charts, Look(format=kind))  # type: ignore[arg-type]
    try:
        with replacing(path) as scratch:
            scratch.write_bytes(content)
    except OSError as error:
        raise ScenarioError(Problem("", f"cannot be written: {error.strerror}", file=str(path))) from None
    return path
