"""Pages of results: made by ``fairlane.report`` on demand, and kept while the server runs.

A page is kept by the digest of what it was made from, so results that are replaced get a new one.
"""

import tempfile
from collections import OrderedDict
from hashlib import sha256
from pathlib import Path
from threading import Lock

from fairlane.report import load_results, write_report
from fairlane.results.manifest import MANIFEST, sha256_of

KINDS = frozenset({"run", "study", "saturation", "gpcnet", "cables", "schedule", "reproduction"})
"""Kinds of folders, by their manifests, that have a page; that of a robustness map is a reproduction."""
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
    """What a page depends on: names of folders, and the checksums of all files in them, which the manifest has."""
    found = sha256()
    for one in (folder, compare):
        manifest = one / MANIFEST if one else None
        digest = sha256_of(manifest) if manifest and manifest.is_file() else "none"
        found.update(f"{one}\n{digest}\n".encode("utf-8", "surrogateescape"))
    return found.hexdigest()
