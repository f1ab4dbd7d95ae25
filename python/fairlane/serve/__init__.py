"""A folder of results in the browser: a small server on this machine, with pages of results and of runs in progress.

It listens on 127.0.0.1 only and answers nobody who does not have its token (``server``). Pages are those of
``fairlane.report`` (``pages``); what is listed is read from the folder each time (``folders``), and runs in progress
are shown by the state that they write (``results.live``). The server writes nothing into the folder but the request
that a run stops. ``docs/serve.md`` says how it is used.
"""

from fairlane.serve.server import HOST, Server, serve

__all__ = ["HOST", "Server", "serve"]
