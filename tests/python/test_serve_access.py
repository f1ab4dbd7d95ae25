"""Whom the server of a folder of results answers: the token, other sites, other names, paths out of the folder."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

pytest.importorskip("tornado", reason="the extra `serve` is not installed")
from fairlane.lab.serve.access import Access, is_local
from fairlane.lab.serve.folders import OutsideError, within
from fairlane.lab.serve.handlers import ROUTES, Handler
from fairlane.results.live import live_folder
from serving import Client, serving

PATHS = ("/", "/api/results", "/report/first", "/live/first", "/api/live/first", "/assets/fairlane/kit.js", "/nothing")


def test_nobody_without_the_token_gets_anything(root: Path) -> None:
    with serving(root) as client:
        wrong = ("", f"?token={client.token[:-1]}", "?token=", f"?token={client.token}x", "?token=%ff", "?token=é")
        for path in PATHS:
            for query in wrong:
                answer = client.ask(path + query.replace("é", "%C3%A9"))
                assert answer.status == 403, path + query
                assert "Set-Cookie" not in answer.headers
                assert "first" not in answer.text
        for cookie in ("fairlane=x", f"fairlane-{client.port}={client.token}", f"fairlane-{client.port}="):
            assert client.ask("/api/results", Cookie=cookie).status == 403
        for method in ("POST", "PUT", "DELETE", "OPTIONS", "HEAD", "TRACE"):
            assert client.ask(f"/api/stop/first?token={client.token}", method).status in {403, 405}


def test_the_token_is_taken_out_of_the_address_and_becomes_a_strict_cookie(root: Path) -> None:
    with serving(root) as client:
        answer = client.log_in()
        assert (answer.status, answer.headers["Location"]) == (303, "/")
        attributes = {part.strip() for part in answer.headers["Set-Cookie"].split(";")[1:]}
        assert attributes == {"HttpOnly", "Path=/", "SameSite=Strict"}
        assert client.token not in answer.headers["Set-Cookie"]
        assert client.ask("/").status == 200
        again = client.ask(f"/report/first?compare=more&token={client.token}")
        assert (again.status, again.headers["Location"]) == (303, "/report/first?compare=more")
        elsewhere = client.ask(f"//evil.example/?token={client.token}")
        assert elsewhere.headers["Location"] == "/evil.example/"


def test_every_answer_has_the_headers_that_keep_others_out(client: Client) -> None:
    for path in (*PATHS, "/?token=wrong"):
        headers = client.ask(path).headers
        assert headers["X-Frame-Options"] == "DENY"
        assert headers["Referrer-Policy"] == "no-referrer"
        assert headers["Cross-Origin-Resource-Policy"] == "same-origin"
        policy = headers["Content-Security-Policy"]
        assert policy.startswith("default-src 'none'; script-src 'self' 'nonce-")
        assert "unsafe-eval" not in policy
        assert "unsafe-inline" not in policy.partition("style-src")[0]
        assert "frame-ancestors 'none'" in policy
        assert not [name for name in headers if name.lower().startswith("access-control")]
        assert "Server" not in headers
    assert client.ask("/").headers["Content-Security-Policy"] != client.ask("/").headers["Content-Security-Policy"]


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1.evil.example:80", "evil.example:8000", "", "0.0.0.0", "127.0.0.1:80:1", "[::1]"]
)
def test_other_names_of_the_server_are_refused(client: Client, host: str) -> None:
    assert client.ask("/api/results", Host=host).status in {400, 403}
    assert not is_local(host)


def test_its_own_names_are_answered_also_through_a_tunnel(client: Client) -> None:
    for host in ("127.0.0.1", "localhost", f"localhost:{client.port}", "127.0.0.1:9"):
        assert client.ask("/api/results", Host=host).status == 200


OUT = (
    "../secret",
    "first/../../secret",
    "%2e%2e/secret",
    "%2e%2e%2fsecret",
    "..%5csecret",
    "first%00",
    "/etc",
    "//etc",
    "more//second%20run",
    "link",
    "link/secret",
    "run-link",
    "circle",
    ".hidden",
    "%ff",
    "x" * 5000,
)


@pytest.mark.parametrize("path", OUT)
def test_nothing_outside_the_folder_is_read(client: Client, root: Path, path: str) -> None:
    (root / "link").symlink_to(root.parent)
    (root / "run-link").symlink_to(root.parent / "secret")
    (root / "circle").symlink_to(root / "circle")
    shutil.copytree(root / "first", root / ".hidden")
    (root / "first" / "link").symlink_to(root.parent / "secret")
    for address in ("/report/", "/live/", "/api/live/"):
        answer = client.ask(address + path)
        assert answer.status in {400, 404}
        assert "small" not in answer.text
    assert client.ask(f"/report/first?compare={path}").status in {400, 404}
    assert set(client.entries()) == {"first", "more/second run"}


def test_a_link_in_place_of_a_file_of_provenance_or_of_a_live_folder_is_not_followed(
    client: Client, root: Path
) -> None:
    (root / "first" / "run.json").rename(root.parent / "run.json")
    (root / "first" / "run.json").symlink_to(root.parent / "run.json")
    other = live_folder(root.parent / "other")
    other.mkdir()
    (other / "state.json").write_text("{}")
    live_folder(root / "other").symlink_to(other)
    found = client.entries()
    assert found["first"]["note"] == "run.json is a symbolic link"
    assert "other" not in found
    assert client.ask("/api/live/other").status == 404


def test_paths(tmp_path: Path) -> None:
    assert within(tmp_path, "") == tmp_path
    assert within(tmp_path, "a/b c") == tmp_path / "a" / "b c"
    for path in (".", "..", "a/..", "a//b", "/", "/a", "a/", ".a", "a\0"):
        with pytest.raises(OutsideError):
            within(tmp_path, path)


def test_secrets_are_long_different_and_not_shown() -> None:
    one, other = Access(), Access()
    found = {one.token, one.session, one.action, other.token, other.session, other.action}
    assert len(found) == 6
    assert min(map(len, found)) >= 43, "256 bits"
    assert one.token not in repr(one)


def test_no_route_answers_without_the_checks() -> None:
    assert all(issubclass(handler, Handler) for _, handler in ROUTES)
