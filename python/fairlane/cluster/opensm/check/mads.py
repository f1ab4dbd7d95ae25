"""Sends management datagrams one after the other, in a process of its own, by libibmad, as infiniband-diags do.

A process of ``smpquery`` for each table would take 10 to 15 ms, most of it for attaching to the simulated subnet; a
query of a process that is attached takes 60 to 90 us. ``libumad2sim`` has to be loaded before the process starts, so
this is a program: run with ``smp``, or with ``path`` and the LID of the subnet manager.

Standard input has the queries. For ``smp``: LID and attribute of 16 bits each and a modifier of 32 bits, all
little-endian. For ``path``: two GIDs. Standard output has a byte for each query, 1 if it was answered, and the 64 bytes
of the answer.
"""

import ctypes
import struct
import sys

__all__ = ["main"]

LIBRARY = "libibmad.so.5"
SIZE = 64  # bytes of an answer
_CLASSES = (0x01, 0x81, 0x03)  # management by LID, by directed route, and subnet administration
_MOST_UNANSWERED = 20  # queries, each of which waits for some seconds; then the process ends


class _Route(ctypes.Structure):
    _fields_ = (
        ("cnt", ctypes.c_int),
        ("p", ctypes.c_uint8 * 64),
        ("drslid", ctypes.c_uint16),
        ("drdlid", ctypes.c_uint16),
    )


class _PortId(ctypes.Structure):
    """``ib_portid_t`` of ``infiniband/mad.h``."""

    _fields_ = (
        ("lid", ctypes.c_int),
        ("drpath", _Route),
        ("grh_present", ctypes.c_int),
        ("gid", ctypes.c_uint64 * 2),
        ("qp", ctypes.c_uint32),
        ("qkey", ctypes.c_uint32),
        ("sl", ctypes.c_uint8),
        ("pkey_idx", ctypes.c_uint),
    )


class _Port:
    """The port of this host that queries leave by."""

    def __init__(self) -> None:
        self._mad = ctypes.CDLL(LIBRARY)
        self._mad.mad_rpc_open_port.restype = ctypes.c_void_p
        self._mad.smp_query_via.restype = ctypes.c_void_p
        pointer, number = ctypes.c_void_p, ctypes.c_uint
        self._mad.smp_query_via.argtypes = [pointer, pointer, number, number, number, pointer]
        self._mad.ib_path_query_via.argtypes = [pointer, ctypes.c_char_p, ctypes.c_char_p, pointer, pointer]
        classes = (ctypes.c_int * len(_CLASSES))(*_CLASSES)
        self._own = self._mad.mad_rpc_open_port(None, 0, classes, len(_CLASSES))
        if not self._own:
            sys.exit("the port of the simulated host cannot be opened")
        self._answer = ctypes.create_string_buffer(SIZE)

    def smp(self, query: bytes) -> bytes | None:
        """The data of an SMP, or None without an answer."""
        lid, attribute, modifier = struct.unpack("<HHI", query)
        ctypes.memset(self._answer, 0, SIZE)
        there = ctypes.byref(_PortId(lid=lid))
        if not self._mad.smp_query_via(self._answer, there, attribute, modifier, 0, self._own):
            return None
        return self._answer.raw

    def path(self, query: bytes, manager: int) -> bytes | None:
        """The path record between two GIDs, or None if there is none."""
        there = ctypes.byref(_PortId(lid=manager))
        lid = self._mad.ib_path_query_via(self._own, query[:16], query[16:], there, self._answer)
        return None if lid < 0 else self._answer.raw


def main() -> None:
    """Answers the queries of standard input."""
    kind, *rest = sys.argv[1:]
    port, size = _Port(), 8 if kind == "smp" else 32
    asked = sys.stdin.buffer.read()
    unanswered = 0
    for begin in range(0, len(asked), size):
        query = asked[begin : begin + size]
        answer = port.smp(query) if kind == "smp" else port.path(query, int(rest[0]))
        unanswered += answer is None
        if unanswered > _MOST_UNANSWERED:
            sys.exit(f"{unanswered} queries without an answer")
        sys.stdout.buffer.write(b"\x00" + bytes(SIZE) if answer is None else b"\x01" + answer)


if __name__ == "__main__":
    main()
