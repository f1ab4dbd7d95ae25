"""Pages of results, made by ``fairlane.views.report`` on demand and kept while the server runs, and the server's own.

A page is kept by the digest of what it was made from, so results that are replaced get a new one.
"""

import re
import tempfile
from collections import OrderedDict
from dataclasses import dataclass
from hashlib import sha256
from html import escape
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from string import Template
from threading import Lock

from fairlane.results.manifest import MANIFEST, sha256_of
from fairlane.views.page import BROWSER, json_in_html, style
from fairlane.views.report import load_results, write_report

MOST_KEPT = 100
"""Pages that are kept; of more, those go that were asked for least recently."""


def build(folder: Path, compare: Path | None, file: Path) -> None:
    """Writes the page of the results in a folder.

    Raises ``ResultsError`` or ``ScenarioError`` if there can be none.
    """
    other = None if compare is None else load_results(compare, "compare")
    write_report(load_results(folder, "folder"), file, other, compare_name=compare.name if compare else "")


class Pages:
    """Pages that have been made. Can be used by several threads; one page is made at a time."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="fairlane-serve-")
        self._kept: OrderedDict[str, Path] = OrderedDict()
        self._lock = Lock()

    def page(self, folder: Path, compare: Path | None = None) -> str:
        """The page of the results in a folder, compared with those in another. Raises as ``build``."""
        with self._lock:
            key = _key(folder, compare)
            file = self._kept.get(key)
            if file is None:
                file = Path(self._folder.name) / f"{key}.html"
                build(folder, compare, file)
                if _key(folder, compare) == key:  # else it was replaced meanwhile
                    self._keep(key, file)
            else:
                self._kept.move_to_end(key)
            return file.read_text("utf-8")

    def _keep(self, key: str, file: Path) -> None:
        self._kept[key] = file
        while len(self._kept) > MOST_KEPT:
            _, oldest = self._kept.popitem(last=False)
            oldest.unlink(missing_ok=True)

    def close(self) -> None:
        """Removes all pages."""
        self._folder.cleanup()


def _key(folder: Path, compare: Path | None) -> str:
    """Return a digest of a page's inputs: names of folders, and the checksums of all files in their manifests."""
    key = sha256()
    for path in (folder, compare):
        manifest = path / MANIFEST if path else None
        digest = sha256_of(manifest) if manifest and manifest.is_file() else "none"
        key.update(f"{path}\n{digest}\n".encode("utf-8", "surrogateescape"))
    return key.hexdigest()


_SERVE = files("fairlane.lab.serve") / "browser"
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
    files: dict[str, Traversable] = {}
    for name, folder in (("fairlane", BROWSER), ("serve", _SERVE)):
        files |= {f"{name}/{file.name}": file for file in folder.iterdir() if file.name.endswith((".js", ".css"))}
    made = {name: Asset(file.read_bytes(), _TYPES[f".{name.rpartition('.')[2]}"]) for name, file in files.items()}
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


def error_page(message: str, nonce: str) -> str:
    """A page that says what is wrong, in plain text, and needs nothing else."""
    return Template((_SERVE / "error.html").read_text("utf-8")).substitute(
        words=escape(message), style=style(), nonce=nonce
    )


def served(report: str, nonce: str) -> str:
    """A report page as the server sends it: its scripts have a nonce, and a link leads back to the list.

    Names in a page cannot contain a tag: they are escaped wherever it has them.
    """
    link = '<nav class="served" aria-label="Results"><a href="/">All results</a></nav>'
    return _SCRIPT.sub(f'<script nonce="{nonce}"', report).replace("<header>", f"{link}<header>", 1)
