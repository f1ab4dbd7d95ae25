"""The server of a folder of results: what it lists, its pages, whom it answers, and how it ends."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("tornado", reason="the extra `serve` is not installed")
from fairlane import load
from fairlane.cli.main import execute
from fairlane.lab.serve import folders as listing
from fairlane.lab.serve.folders import Folders
from fairlane.results.live import live_folder, read_live
from fairlane.views.page import BROWSER
from live_runs import running
from serving import Client, serving
from waiting import HANG_S, wait_for

EVIL = "<img src=x onerror=alert(1)> & 'x' \"y\""


# What is listed


def test_runs_are_listed_with_their_provenance(client: Client, root: Path) -> None:
    found = client.entries()
    assert set(found) == {"first", "more/second run"}
    meta = json.loads((root / "first" / "run.json").read_text())
    first = found["first"]
    assert (first["kind"], first["status"], first["page"]) == ("run", "finished", "/report/first")
    assert (first["scenario"], first["seed"], first["digest"]) == ("small", meta["seed"], meta["digest"])
    assert found["more/second run"]["page"] == "/report/more/second%20run"


def test_kinds_with_and_without_a_page_are_listed(client: Client, root: Path) -> None:
    metas = {"reproduction": "reproduction.json", "study": "study.json", "schedule": "schedule.json", "control": None}
    for kind, meta in metas.items():
        (root / kind).mkdir()
        (root / kind / "manifest.json").write_text(json.dumps({"kind": kind}))
        if meta:
            (root / kind / meta).write_text(json.dumps({kind: EVIL, "name": EVIL, "failures": 3}))
    shutil.copytree(root / "first", root / "control" / "runs" / "inner")
    found = client.entries()
    assert found["study"]["scenario"] == EVIL
    assert found["study"]["note"] == "3 of its runs failed"
    assert found["control/runs/inner"]["status"] == "finished"
    for kind in metas:
        entry = found[kind]
        assert (entry["kind"], entry["status"]) == (kind, "finished")
        assert (entry["page"] is None) == (kind == "control")
        answer = client.ask(f"/report/{kind}")
        if kind == "control":
            assert answer.status == 404
            assert "have no page" in answer.text
        else:  # what these files say is not what such results have
            assert answer.status == 409
            assert EVIL not in answer.text


def test_folders_that_are_not_complete_or_broken_are_listed_as_such(client: Client, root: Path) -> None:
    (root / "study").mkdir()
    (root / "study" / "spec.json").write_text('{"schema_version": 2, "version": "1", "sources": {}, "study": {}}')
    (root / "first" / "run.json").write_text("{")
    (root / "old").mkdir()
    (root / "old" / "run.json").write_text("{}")
    (root / "list").mkdir()
    (root / "list" / "manifest.json").write_text("[1]")
    (root / "nothing").mkdir()
    found = client.entries()
    assert (found["study"]["kind"], found["study"]["status"]) == ("study", "not complete")
    assert {path: found[path]["note"] for path in ("first", "old", "list")} == {
        "first": "run.json is not valid JSON",
        "old": "manifest.json is missing: it is not complete, or of an earlier version",
        "list": "manifest.json has no keys",
    }
    assert {found[path]["status"] for path in ("first", "old", "list")} == {"broken"}
    assert "nothing" not in found
    answer = client.ask("/report/first")
    assert answer.status == 404
    assert "run.json is not valid JSON" in answer.text


def test_the_served_folder_may_be_a_run_itself(root: Path) -> None:
    with serving(root / "first") as client:
        client.log_in()
        (entry,) = client.entries().values()
        assert (entry["path"], entry["name"], entry["page"]) == ("", "first", "/report/")
        assert client.ask("/report/").status == 200
        assert client.ask("/live/").status == 303


def test_folders_that_cannot_be_read_do_not_end_the_list(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = Folders(root)
    assert len(found.entries()) == 2
    scan = os.scandir

    def refusing(path: Path) -> object:
        if Path(path).name == "more":
            raise PermissionError(13, "Permission denied")
        return scan(path)

    monkeypatch.setattr(os, "scandir", refusing)
    assert [entry.path for entry in found.entries()] == ["first"]
    monkeypatch.setattr(listing, "MOST_FOLDERS", 1)
    found.entries()
    assert found.truncated


# Pages


def test_pages_are_made_once_and_anew_when_results_are_replaced(
    client: Client, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from fairlane.lab.serve import pages

    made: list[Path] = []
    build = pages.build

    def counted(folder: Path, compare: Path | None, file: Path) -> None:
        made.append(folder)
        build(folder, compare, file)

    monkeypatch.setattr(pages, "build", counted)
    first = client.ask("/report/first")
    assert first.status == 200
    assert load(root / "first").meta.digest in first.text  # type: ignore[union-attr]
    assert '<a href="/">All results</a>' in first.text
    assert client.ask("/report/first").status == 200
    assert len(made) == 1
    assert client.ask("/report/first?compare=more/second%20run").status == 200
    assert len(made) == 2
    manifest = root / "first" / "manifest.json"
    manifest.write_text(manifest.read_text() + "\n")
    assert client.ask("/report/first").status == 200
    assert len(made) == 3


def test_results_that_are_damaged_or_vanish_get_an_error_in_words(client: Client, root: Path) -> None:
    with (root / "first" / "jobs.parquet").open("ab") as file:
        file.write(b"x")
    answer = client.ask("/report/first")
    assert answer.status == 409
    assert "first/jobs.parquet: has changed since it was written" in answer.text
    assert str(root) not in answer.text
    assert client.ask("/report/more/second%20run?compare=first").status == 409
    shutil.rmtree(root / "first")
    assert client.ask("/report/first").status == 404
    assert client.ask("/report/more/second%20run?compare=first").status == 404
    assert "first" not in client.entries()


def test_all_modules_and_style_sheets_are_served(client: Client) -> None:
    known = {f"/assets/fairlane/{file.name}" for file in BROWSER.iterdir() if file.name.endswith((".js", ".css"))}
    own = {f"/assets/serve/{name}" for name in ("http.js", "index.js", "live.js", "serve.css")}
    text = client.ask("/").text
    assert all(path in known | own for path in re.findall(r'(?:src|href)="(/assets/[^"]*)"', text))
    for path in known | own:
        answer = client.ask(path)
        assert answer.status == 200, path
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
    for path in ("/assets/serve/page.html", "/assets/../server.py", "/assets/serve/..%2fserver.py", "/nothing", "//x"):
        assert client.ask(path).status == 404


# Runs in progress


def test_a_run_is_watched_and_stopped_from_there_and_its_results_are_read(root: Path) -> None:
    with serving(root) as client, running(root / "now") as process:
        client.log_in()
        first = wait_for(lambda: _progress(client, 0.0))
        assert client.entries()["now"]["status"] == "in progress"
        assert client.entries()["now"]["page"] == "/live/now"
        assert client.ask("/report/now").status == 404
        wait_for(lambda: _progress(client, first))
        state = wait_for(lambda: _measured(client))
        assert state["jobs"]["name"][-1] == "<total>"
        page = client.ask("/live/now").text
        assert "<total>" not in page
        _refuses_to_stop_for_others(client)
        assert read_live(root / "now").alive  # type: ignore[union-attr]
        action = client.action("/live/now")
        answer = client.ask("/api/stop/now", "POST", X_Fairlane_Token=action, Origin=f"http://127.0.0.1:{client.port}")
        assert (answer.status, answer.json) == (200, {"asked": True})
        assert process.wait() == 130
        ended = client.ask("/api/live/now").json
        assert (ended["status"], ended["report"], ended["state"]) == ("partial", "/report/now", None)
        assert client.entries()["now"]["status"] == "partial"
        assert client.ask("/live/now").headers["Location"] == "/report/now"
        assert client.ask("/report/now").status == 200
        again = client.ask("/api/stop/now", "POST", X_Fairlane_Token=action)
        assert (again.status, again.json["error"]) == (409, "The run is not in progress any more.")
    assert load(root / "now").meta.partial  # type: ignore[union-attr]


def _refuses_to_stop_for_others(client: Client) -> None:
    action = client.action("/live/now")
    good = {"X_Fairlane_Token": action}
    refused: list[dict[str, str]] = [
        {},
        {"X_Fairlane_Token": client.token},
        {"X_Fairlane_Token": ""},
        good | {"Cookie": ""},
        good | {"Origin": "http://evil.example"},
        good | {"Origin": "null"},
        good | {"Origin": f"https://127.0.0.1:{client.port}"},
        good | {"Origin": "http://127.0.0.1:1"},
        good | {"Sec_Fetch_Site": "cross-site"},
        good | {"Sec_Fetch_Site": "same-site"},
        good | {"Host": "evil.example"},
    ]
    for headers in refused:
        assert client.ask("/api/stop/now", "POST", **headers).status == 403, headers
    assert client.ask("/api/stop/now").status == 405
    assert client.ask("/api/stop/../now", "POST", **good).status == 404
    assert client.ask("/api/stop/first", "POST", **good).status == 409


@pytest.mark.long("lab/serve")
def test_a_run_that_was_killed_is_shown_as_killed(root: Path) -> None:
    with serving(root) as client, running(root / "now") as process:
        client.log_in()
        wait_for(lambda: _progress(client, 0.0))
        process.kill()
        process.wait()
        entry = client.entries()["now"]
        assert entry["status"] == "killed"
        assert entry["note"].startswith(f"process {process.pid} on ")
        found = client.ask("/api/live/now").json
        assert found["status"] == "killed"
        assert found["state"]["progress"]["share"] > 0
        answer = client.ask("/api/stop/now", "POST", X_Fairlane_Token=client.action("/live/now"))
        assert answer.status == 409


def test_a_live_folder_that_is_none_is_broken(client: Client, root: Path) -> None:
    live_folder(root / "odd").mkdir()
    assert "odd" not in client.entries()
    (live_folder(root / "odd") / "state.json").write_text('{"format": 1}')
    assert client.entries()["odd"]["status"] == "broken"
    assert client.ask("/live/odd").status == 404
    assert client.ask("/api/live/odd").status == 404


def _progress(client: Client, more: float) -> float | None:
    answer = client.ask("/api/live/now")
    state = answer.json.get("state")
    share = state["progress"]["share"] if state else 0.0
    return share if share > more else None


def _measured(client: Client) -> dict[str, dict[str, list[str]]] | None:
    state = client.ask("/api/live/now").json["state"]
    ready = state["matrix"]["victim"] and state["links"]["name"] and state["progress"]["hops_per_s"]
    return state if ready and state["jobs"]["iterations"] else None


# The command


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_command_prints_its_address_and_ends_cleanly(root: Path, number: int) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "fairlane", "serve", str(root)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        url = process.stdout.readline().strip()
        assert url.startswith("http://127.0.0.1:")
        port = int(url.partition("/?")[0].rpartition(":")[2])
        with socket.create_connection(("127.0.0.1", port), timeout=HANG_S) as idle:
            idle.sendall(b"GET / HTTP/1.1\r\n")  # a connection that is left open does not hold it up
            process.send_signal(number)
            out, err = process.communicate()
    finally:
        process.kill()
    assert (process.returncode, out) == (0, "")
    assert err == f"fairlane: {root} is served on port {port}; Ctrl-C ends it\n"


def test_wrong_input_is_refused(root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert execute(["serve", str(root), "--port", str(port)]) == 2
    assert f"--port = {port}: is in use; allowed: a free port" in capsys.readouterr().err
    for port in (65536, -1):
        assert execute(["serve", str(root), "--port", str(port)]) == 2
        assert f"--port = {port}: is no port; allowed: a free port from 1 to 65535" in capsys.readouterr().err
    assert execute(["serve", str(tmp_path / "none")]) == 2
    assert f'FOLDER = "{tmp_path / "none"}": cannot be read: No such file' in capsys.readouterr().err
    assert execute(["serve", str(root / "first" / "run.json")]) == 2
    assert "is no folder; allowed: a folder with results" in capsys.readouterr().err
    target = tmp_path / "no" / "folder" / "url"
    assert execute(["serve", str(root), "--out", str(target)]) == 2
    assert "--out" in capsys.readouterr().err
