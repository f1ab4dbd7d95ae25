"""Changing the files of a folder of results on purpose."""

import json
from pathlib import Path

from fairlane.results.manifest import MANIFEST, sha256_of


def reseal(folder: Path) -> None:
    """Makes the manifest fit the files again, for tests of what checksums alone do not find."""
    manifest = json.loads((folder / MANIFEST).read_text())
    for name in list(manifest["files"]):
        path = folder / name
        manifest["files"][name] = {"sha256": sha256_of(path), "bytes": path.stat().st_size}
    (folder / MANIFEST).write_text(json.dumps(manifest))
