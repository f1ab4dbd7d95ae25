"""Who may use a server: its tokens, the names of this machine, and the policy of its pages."""

import hmac
import secrets
from dataclasses import dataclass, field
from urllib.parse import urlsplit

NAMES = ("127.0.0.1", "localhost")
"""Names in ``Host``; the port may be another one, that of a tunnel."""
HEADER = "X-Fairlane-Token"
"""The header of the second token."""
SAFE_SITES = (None, "same-origin", "none")
"""Values of ``Sec-Fetch-Site`` of requests that change something."""


def _random() -> str:
    return secrets.token_urlsafe(32)


@dataclass(frozen=True)
class Access:
    """The secrets of a server."""

    token: str = field(default_factory=_random, repr=False)
    """In the address that is printed."""
    session: str = field(default_factory=_random, repr=False)
    """In the cookie."""
    action: str = field(default_factory=_random, repr=False)
    """In requests that change something."""

    def has_token(self, given: str) -> bool:
        """Whether it is the token."""
        return _same(given, self.token)

    def has_session(self, given: str | None) -> bool:
        """Whether it is the cookie's value."""
        return given is not None and _same(given, self.session)

    def may_act(self, action: str | None, origin: str | None, host: str, site: str | None) -> bool:
        """Whether a request that changes something comes from a page of this server."""
        here = origin is None or (urlsplit(origin).scheme == "http" and urlsplit(origin).netloc == host)
        return action is not None and _same(action, self.action) and here and site in SAFE_SITES


def is_local(host: str) -> bool:
    """Whether a ``Host`` is one of this machine's own names."""
    name, _, port = host.partition(":")
    return name in NAMES and (not port or (port.isascii() and port.isdigit()))


def _same(given: str, secret: str) -> bool:
    """Compares in a time that does not depend on where they differ."""
    return hmac.compare_digest(given.encode("utf-8", "surrogateescape"), secret.encode())


def policy(nonce: str, *, inline_styles: bool = False) -> str:
    """A Content-Security-Policy: scripts and data of this server only, and inline scripts with this nonce."""
    styles = "'unsafe-inline'" if inline_styles else f"'self' 'nonce-{nonce}'"
    return "; ".join(
        (
            "default-src 'none'",
            f"script-src 'self' 'nonce-{nonce}'",
            f"style-src {styles}",
            "img-src 'self' data: blob:",
            "connect-src 'self'",
            "base-uri 'none'",
            "form-action 'none'",
            "frame-ancestors 'none'",
        )
    )
