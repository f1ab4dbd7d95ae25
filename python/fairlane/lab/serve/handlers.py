"""Answers of the server: the list of results, pages of results and of runs in progress, their data, stop requests."""

import asyncio
import secrets
from dataclasses import asdict, dataclass
from http import HTTPStatus
from typing import Any
from urllib.parse import parse_qsl, quote, urlencode

from pydantic_core import to_json
from tornado.web import HTTPError, RequestHandler
from typing_extensions import override

from fairlane.core.errors import FairlaneError, ResultsError
from fairlane.lab.serve import pages
from fairlane.lab.serve.access import HEADER, Access, is_local, policy
from fairlane.lab.serve.folders import KINDS, Entry, Folders, OutsideError, within
from fairlane.lab.serve.pages import Asset, Pages
from fairlane.results.live import Found, State, read_live, request_stop
from fairlane.views.page import page as page_of_view
from fairlane.views.run import live

_HEADERS = {
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
_NO_TOKEN = "Open the address that fairlane serve has printed: it has the token."
_NOTHING = "There are no results here, or not any more."


@dataclass(frozen=True)
class Served:
    """State that all handlers share."""

    access: Access
    folders: Folders
    pages: Pages
    assets: dict[str, Asset]
    title: str
    """Title of the folder on pages."""
    cookie: str
    """The name of the cookie: servers on other ports have other ones."""


class Refused(HTTPError):
    """A request that is not answered, with the reason in words."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(status)
        self.message = message


class Handler(RequestHandler):
    """A request that is answered only if it may be."""

    SUPPORTED_METHODS = ("GET",)
    as_json = False

    @override
    def initialize(self, served: Served) -> None:
        """Takes what all handlers use."""
        self.served = served

    @override
    def set_default_headers(self) -> None:
        """Headers of every answer, errors included, and the nonce of its scripts."""
        self.nonce = secrets.token_urlsafe(16)
        self.clear_header("Server")
        self.set_header("Content-Security-Policy", policy(self.nonce))
        for name, value in _HEADERS.items():
            self.set_header(name, value)

    @override
    def prepare(self) -> None:
        """Refuses who may not ask."""
        access, headers = self.served.access, self.request.headers
        host = headers.get("Host", "")
        if not is_local(host):
            raise Refused(403, "The address has a name that is not this machine's.")
        known = access.has_session(self.get_cookie(self.served.cookie))
        queries = parse_qsl(self.request.query, keep_blank_values=True)
        given = next((value for key, value in queries if key == "token"), None)
        if given is not None and self.request.method == "GET" and (known or access.has_token(given)):
            self._log_in([(key, value) for key, value in queries if key != "token"])
        elif not known:
            raise Refused(403, _NO_TOKEN)
        elif self.request.method != "GET":
            site = headers.get("Sec-Fetch-Site")
            if not access.may_act(headers.get(HEADER), headers.get("Origin"), host, site):
                raise Refused(403, "This is not a request of a page of this server.")

    def _log_in(self, queries: list[tuple[str, str]]) -> None:
        """Gives whoever has the token a cookie, and takes the token out of the address."""
        self.set_cookie(self.served.cookie, self.served.access.session, path="/", httponly=True, samesite="Strict")
        # A path that begins with two slashes would be the address of another server.
        path = f"/{self.request.path.lstrip('/')}"
        self.redirect(f"{path}?{urlencode(queries)}" if queries else path, status=303)

    @override
    def write_error(self, status_code: int, **kwargs: Any) -> None:
        """Says what is wrong, in plain words."""
        error = kwargs.get("exc_info", (None, None))[1]
        message = error.message if isinstance(error, Refused) else f"{HTTPStatus(status_code).phrase}."
        if self.as_json:
            self.send({"error": message})
        else:
            self.finish(pages.error_page(message, self.nonce))

    def send(self, data: object) -> None:
        """Ends with JSON."""
        self.set_header("Content-Type", "application/json; charset=utf-8")
        self.finish(to_json(data, inf_nan_mode="null"))

    async def away(self, function: Any, *arguments: Any) -> Any:
        """Call a function that reads files or computes, while the server goes on answering."""
        return await asyncio.get_running_loop().run_in_executor(None, function, *arguments)

    async def entry(self, path: str) -> Entry:
        """Return the entry at a path; answers with an error if there is none."""
        try:
            known: Entry | None = await self.away(self.served.folders.entry, path)
        except OutsideError:
            known = None
        if known is None:
            raise Refused(404, _NOTHING)
        return known

    def send_page(self, name: str, title: str, data: object) -> None:
        """Ends with one of the server's own pages."""
        self.finish(pages.page(name, title, self.nonce, data))

    async def in_progress(self, path: str) -> Found | None:
        """The state of a run in progress, None if it has ended; answers with an error if it cannot be read."""
        try:
            live: Found | None = await self.away(read_live, within(self.served.folders.root, path))
        except (OutsideError, ResultsError):
            raise Refused(404, _NOTHING) from None
        return live

    def allow_styles(self) -> None:
        """Allows the page styles of its own: charts set them, and a page of a view has its style sheet in it."""
        self.set_header("Content-Security-Policy", policy(self.nonce, inline_styles=True))


class IndexPage(Handler):
    """The list of results."""

    def get(self) -> None:
        """Answers."""
        self.send_page("index", f"{self.served.title} – fairlane", {"title": self.served.title})


class IndexData(Handler):
    """The list of results as JSON."""

    as_json = True

    async def get(self) -> None:
        """Answers."""
        folders = self.served.folders
        entries = await self.away(folders.entries)
        self.send({"entries": [self.written(entry) for entry in entries], "truncated": folders.truncated})

    def written(self, entry: Entry) -> dict[str, Any]:
        """An entry with the addresses of its pages."""
        where = quote(entry.path)
        stored = entry.status in {"finished", "partial"}
        running = entry.status in {"in progress", "killed", "failed"}
        page = f"/report/{where}" if stored and entry.kind in KINDS else f"/live/{where}" if running else None
        name = entry.path or self.served.title
        return {**asdict(entry), "name": name, "page": page, "comparable": stored and entry.kind in KINDS}


class ReportPage(Handler):
    """The page of results, compared with others if these are named."""

    async def get(self, path: str) -> None:
        """Answers."""
        entry = await self.entry(path)
        compare = self.get_query_argument("compare", None, strip=False)
        if entry.status not in {"finished", "partial"}:
            raise Refused(404, entry.note or _NOTHING)
        if entry.kind not in KINDS:
            raise Refused(404, f"Results of the kind {entry.kind!r} have no page.")
        root = self.served.folders.root
        try:
            other = None if compare is None else within(root, (await self.entry(compare)).path)
            page = await self.away(self.served.pages.page, within(root, path), other)
        except OutsideError:
            raise Refused(404, _NOTHING) from None
        except (FairlaneError, OSError) as error:
            words = " ".join(str(error).replace(f"{root}/", "").split())
            raise Refused(409, words) from error
        self.allow_styles()
        self.finish(pages.served(page, self.nonce))


class LivePage(Handler):
    """The page of a run in progress."""

    async def get(self, path: str) -> None:
        """Answers; of a run that has ended with its report."""
        entry = await self.entry(path)
        if entry.status in {"finished", "partial"}:
            self.redirect(f"/report/{quote(path)}", status=303)
            return
        data = {"path": quote(path), "action": self.served.access.action, "header": HEADER}
        running = await self.in_progress(path)
        if running is None:
            raise Refused(404, _NOTHING)
        page = await self.away(_live_page, running.state, path)
        self.allow_styles()
        self.finish(pages.live(page, self.nonce, data))


def _live_page(state: State, name: str) -> str:
    return page_of_view(live.view(state, name))


class LiveData(Handler):
    """The state of a run in progress as JSON."""

    as_json = True

    async def get(self, path: str) -> None:
        """Answers."""
        entry = await self.entry(path)
        running = None if entry.status in {"finished", "partial"} else await self.in_progress(path)
        status_line = live.words_of(entry.status, entry.note, running.state if running else None)
        known = {"status": entry.status, "words": status_line, "report": None, "state": None}
        if running is None:
            self.send({**known, "report": f"/report/{quote(path)}"})
            return
        figures = await self.away(live.update, running.state)
        self.send({**known, "state": running.state.model_dump(mode="json"), "figures": figures})


class Stop(Handler):
    """Asks a run in progress to stop."""

    SUPPORTED_METHODS = ("POST",)
    as_json = True

    async def post(self, path: str) -> None:
        """Answers whether it was asked."""
        await self.entry(path)
        try:
            asked = await self.away(request_stop, within(self.served.folders.root, path))
        except (OutsideError, ResultsError) as error:
            raise Refused(409, str(error) or _NOTHING) from error
        if not asked:
            raise Refused(409, "The run is not in progress any more.")
        self.send({"asked": True})


class AssetFile(Handler):
    """A module or style sheet of the server's pages."""

    def get(self, name: str) -> None:
        """Answers."""
        asset = self.served.assets.get(name)
        if asset is None:
            raise Refused(404, "There is no such file.")
        self.set_header("Content-Type", asset.kind)
        self.set_header("Cache-Control", "no-cache")
        self.finish(asset.content)


class Nothing(Handler):
    """Everything else."""

    @override
    def prepare(self) -> None:
        """Refuses who may not ask, and everybody else."""
        super().prepare()
        if not self._finished:
            raise Refused(404, _NOTHING)


ROUTES: list[tuple[str, type[Handler]]] = [
    (r"/", IndexPage),
    (r"/api/results", IndexData),
    (r"/api/live/(.*)", LiveData),
    (r"/api/stop/(.*)", Stop),
    (r"/report/(.*)", ReportPage),
    (r"/live/(.*)", LivePage),
    (r"/assets/(.*)", AssetFile),
    (r".*", Nothing),
]
"""Addresses, and what answers them."""
