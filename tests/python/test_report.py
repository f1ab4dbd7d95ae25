"""The command that writes pages of results: where they go, and wrong input; the library that some pages need."""

from __future__ import annotations

import base64
import io
import json
import os
import re
import sys
import tarfile
import zlib
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import pytest

from fairlane import Run
from fairlane.cli.main import execute
from fairlane.views.report import write_report
from report_runs import EVIL, evil, simulated


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A small run in a folder."""
    return simulated(tmp_path_factory.mktemp("runs") / "small")


def test_names_cannot_break_out_of_the_page_and_it_loads_nothing(run: Run, tmp_path: Path) -> None:
    page = write_report(evil(run), tmp_path / "page.html").read_text("utf-8")
    assert EVIL not in page
    text = page.partition('id="data">')[2].partition("</script>")[0]
    data = json.loads(zlib.decompress(base64.b64decode(text)))
    assert EVIL in data["custom"]["fabric"]["data"]["jobs"]["name"]
    addresses = set(
        re.findall(r"""(?:src|href)=["']?(\w+:[^"' >]*)""", page.partition("<body>")[2].partition("<script")[0])
    )
    assert addresses == set()


def test_the_command_writes_the_page(run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run.folder is not None
    assert execute(["report", str(run.folder), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    page = run.folder / "report.html"
    assert told == {"page": str(page), "bytes": page.stat().st_size}
    assert run.meta.digest in page.read_text("utf-8")
    assert execute(["report", str(run.folder), "-o", str(tmp_path / "x.html"), "--compare", str(run.folder), "-q"]) == 0
    assert capsys.readouterr().out == f"{tmp_path / 'x.html'}\n"


def test_wrong_input_is_refused(run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = str(run.folder)
    wrong = {
        (str(tmp_path / "none"),): "none: ",
        (folder, "--compare", str(tmp_path / "none")): "none: ",
        (folder, "--out", str(tmp_path / "no" / "x.html")): "x.html: cannot be written: No such file or directory",
    }
    for arguments, words in wrong.items():
        assert execute(["report", *arguments]) == 2
        assert words in capsys.readouterr().err


@pytest.fixture
def fetching() -> ModuleType:
    """The script that fetches the browser's code."""
    path = Path(__file__).parents[2] / "tools" / "fetch_browser_code.py"
    spec = spec_from_file_location("fetch_browser_code", path)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def test_only_packages_with_the_locked_hash_are_taken(
    fetching: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    written = io.BytesIO()
    with tarfile.open(fileobj=written, mode="w:gz") as archive:
        member = tarfile.TarInfo("package/a.js")
        member.size = 4
        archive.addfile(member, io.BytesIO(b"true"))
    registry = tmp_path / "registry"
    (registry / "a" / "-").mkdir(parents=True)
    (registry / "a" / "-" / "a-1.0.0.tgz").write_bytes(written.getvalue())
    digest = fetching.base64.b64encode(fetching.hashlib.sha512(written.getvalue()).digest()).decode()
    lock = tmp_path / "package-lock.json"
    target = tmp_path / "vendor" / "a.js"
    monkeypatch.setattr(fetching, "LOCK", lock)
    monkeypatch.setattr(fetching, "ROOT", tmp_path)
    monkeypatch.setattr(fetching, "FILES", {"a": {"package/a.js": target}})
    monkeypatch.setenv("npm_config_registry", registry.as_uri())
    for integrity, code in {"sha512-AAAA": 1, f"sha512-{digest}": 0}.items():
        lock.write_text(
            json.dumps({"packages": {"node_modules/a": {"version": "1.0.0", "integrity": integrity}}}), "utf-8"
        )
        assert fetching.main() == code
        assert target.is_file() == (code == 0)
    assert target.read_bytes() == b"true"
    assert "its hash is not that of package-lock.json" in capsys.readouterr().err
    target.unlink()
    monkeypatch.setenv("npm_config_registry", (tmp_path / "nowhere").as_uri())
    assert fetching.main() == 0
    assert "warning: " in capsys.readouterr().err
    os.environ.pop("npm_config_registry")
    assert fetching.url_of("@b/c", "2.0.0") == "https://registry.npmjs.org/@b/c/-/c-2.0.0.tgz"
