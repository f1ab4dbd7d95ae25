"""Counts of traces and fabrics of other simulators, each by a few lines that share nothing with fairlane's readers.

A trace is ranks, messages and their bytes between two ranks, and calls by their names in the file; a fabric is hosts
and links, two for each cable.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator
from math import prod
from pathlib import Path
from typing import Any

_CHAKRA = ("", "METADATA", "MEM_LOAD", "MEM_STORE", "COMP", "COMM_SEND", "COMM_RECV", "COMM_COLL")


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        value |= (data[at] & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if data[at - 1] < 0x80:
            return value, at


def _fields(data: bytes) -> Iterator[tuple[int, Any]]:
    """Numbers and contents of the fields of a protobuf message (protobuf.dev, Encoding)."""
    at = 0
    while at < len(data):
        key, at = _varint(data, at)
        if key & 7 == 2:
            size, at = _varint(data, at)
            yield key >> 3, data[at : at + size]
            at += size
        elif key & 7 == 0:
            value, at = _varint(data, at)
            yield key >> 3, value
        else:
            size = 8 if key & 7 == 1 else 4
            yield key >> 3, int.from_bytes(data[at : at + size], "little")
            at += size


def chakra(files: list[Path]) -> dict[str, Any]:
    """Of the files of all ranks: a message of metadata, then one for each node, with their lengths before them."""
    calls: Counter[str] = Counter()
    sizes = []
    for file in files:
        data, at, messages = file.read_bytes(), 0, []
        while at < len(data):
            size, at = _varint(data, at)
            messages.append(data[at : at + size])
            at += size
        for message in messages[1:]:
            fields = list(_fields(message))
            kind = next(value for number, value in fields if number == 3)
            attributes = [list(_fields(value)) for number, value in fields if number == 10]
            values = {pair[0][1].decode(): pair[-1][1] for pair in attributes}
            calls[f"{_CHAKRA[kind]}_NODE"] += 1
            if _CHAKRA[kind] == "COMM_SEND":
                sizes.append(values["comm_size"])
    return {"ranks": len(files), "messages": len(sizes), "bytes": sum(sizes), "calls": calls}


def goal(files: list[Path]) -> dict[str, Any]:
    """Of a schedule as text."""
    text = files[0].read_text()
    sizes = [int(size) for size in re.findall(r"\bsend (\d+)b", text)]
    calls = Counter(re.findall(r"^\s*(?:\w+:\s*)?(send|recv|calc)\b", text, re.MULTILINE))
    return {"ranks": len(re.findall(r"^rank", text, re.M)), "messages": len(sizes), "bytes": sum(sizes), "calls": calls}


def connections(files: list[Path]) -> dict[str, Any]:
    """Of a connection matrix of htsim."""
    text = files[0].read_text()
    sizes = [int(size) for size in re.findall(r"^\d+->\d+.*\bsize (\d+)", text, re.M)]
    (ranks,) = re.findall(r"^Nodes (\d+)", text, re.M)
    return {"ranks": int(ranks), "messages": len(sizes), "bytes": sum(sizes), "calls": {"flow": len(sizes)}}


def flows(files: list[Path]) -> dict[str, Any]:
    """Of a list of flows of ns-3, as many as its first line says."""
    first, *lines = files[0].read_text().splitlines()
    rows = [[int(word) for word in line.split()[:5]] for line in lines[: int(first)]]
    ranks = 1 + max(host for row in rows for host in row[:2])
    return {
        "ranks": ranks,
        "messages": len(rows),
        "bytes": sum(row[4] for row in rows),
        "calls": {"flow": len(rows)},
    }


def simai(files: list[Path]) -> dict[str, Any]:
    """Of a workload file of SimAI with one pipeline stage, in which every collective is of several GPUs."""
    lines = files[0].read_text().splitlines()
    ranks = int(re.findall(r"all_gpus: (\d+)", lines[0])[0])
    calls: Counter[str] = Counter()
    for line in lines[2:]:
        words = line.split()
        done = [kind for kind, size in zip(words[3:11:3], words[4:11:3], strict=True) if kind != "NONE" and int(size)]
        calls.update({"compute": 3 * ranks, "update": ranks * len(done) * (int(words[11]) > 0)})
        calls.update({kind: ranks * done.count(kind) for kind in set(done)})
    return {"ranks": ranks, "messages": 0, "bytes": 0, "calls": +calls}


def topo(files: list[Path]) -> dict[str, int]:
    """Of a fat-tree of htsim: each switch has as many cables down as its radix says."""
    numbers = [(key.lower(), int(value)) for key, value in re.findall(r"^(\w+)[ \t]+(\d+)", files[0].read_text(), re.M)]
    nodes = dict(numbers)["nodes"]
    down, up = ([value for key, value in numbers if key == name] for name in ("radix_down", "radix_up"))
    cables, below = [nodes], nodes
    for radix, uplinks in zip(down, up, strict=False):
        below = below // radix * uplinks
        cables.append(below)
    return {"hosts": nodes, "links": 2 * sum(cables[: len(down)])}


def ns3(files: list[Path]) -> dict[str, int]:
    """Of a topology of ns-3: the first line has the nodes, the switches and the links."""
    nodes, *others, links = map(int, re.findall(r"\b\d+\b", files[0].read_text().splitlines()[0]))
    return {"hosts": nodes - others[-1] - (others[-2] if len(others) > 1 else 0), "links": 2 * links}


def astra(files: list[Path]) -> dict[str, int]:
    """Of dimensions of ASTRA-sim: a ring of two has one link; NPUs of more than a switch have one to their router."""
    text = re.sub(r"#.*", "", files[0].read_text())
    lists = {key: values.replace(",", " ").split() for key, values in re.findall(r"(\w+):\s*\[([^]]*)\]", text)}
    sizes, forms = [int(size) for size in lists["npus_count"]], lists["topology"]
    of_one = {
        "Ring": lambda n: n if n > 2 else n - 1,
        "FullyConnected": lambda n: n * (n - 1) // 2,
        "Switch": lambda n: n,
    }
    cables = sum(prod(sizes) // size * of_one[form](size) for form, size in zip(forms, sizes, strict=True))
    routers = 0 if forms == ["Switch"] else prod(sizes)
    return {"hosts": prod(sizes), "links": 2 * (cables + routers)}


TRACES: dict[str, Callable[[list[Path]], dict[str, Any]]] = {
    "chakra": chakra,
    "goal": goal,
    "htsim-connections": connections,
    "ns3-flows": flows,
    "simai": simai,
}
FABRICS: dict[str, Callable[[list[Path]], dict[str, int]]] = {
    "htsim-topology": topo,
    "ns3-topology": ns3,
    "astra-network": astra,
}
