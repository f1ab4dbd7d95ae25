"""An engine that simulates nothing: its tables are formulas of the time, so that a test can say what must come out.

Every rank of job ``j`` marks its first iteration at 1 ms and then one every ``pace[j]`` picoseconds (twice that time
when other jobs are there and ``j`` is the first); it computes 60 % of the time.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np

MS = 10**9
HOPS_PER_MS = 1000
Table = dict[str, tuple[str, bytes]]


def table(**columns: tuple[str, Sequence[Any]]) -> Table:
    """A table as the engine hands it over."""
    return {
        name: (dtype, json.dumps(list(values)).encode() if dtype == "json" else np.array(values, dtype).tobytes())
        for name, (dtype, values) in columns.items()
    }


class FakeEngine:
    """See the module. Each job of ``spec`` has ``hosts``, one for each rank, and a ``pace``."""

    def __init__(self, spec: str) -> None:
        self.jobs = json.loads(spec)["jobs"]
        self.now, self.packet_hops, self.shards = 0, 0, 1

    def run_window_budget(self, picoseconds: int, max_hops: int) -> bool:
        span = min(picoseconds - self.now, max(1, max_hops * MS // HOPS_PER_MS))
        self.now += span
        self.packet_hops += span * HOPS_PER_MS // MS
        return self.now >= picoseconds

    @property
    def messages(self) -> int:
        return 0

    @property
    def finished(self) -> bool:
        return False

    def progress(self) -> list[list[int]]:
        count = [0 if self.now < MS else 1 + (self.now - MS) // self._pace(job) for job in range(len(self.jobs))]
        return [[count[job]] * len(it["hosts"]) for job, it in enumerate(self.jobs)]

    def digest(self) -> str:
        return f"{self.now:x}"

    def table(self, name: str) -> Table:
        tables = {"ranks": self._ranks, "calls": self._calls, "ports": self._ports, "interference": self._waits}
        tables |= {"job_marks": self._marks, "under_way": self._under_way, "totals": self._totals}
        tables |= {"class_latency": self._class_latency, "class_bytes": self._class_bytes, "pauses": self._pauses}
        return {**tables, "failures": self._failures, "sweeps": self._sweeps}[name]()

    @staticmethod
    def _class_latency() -> Table:
        """No classes."""
        none: tuple[str, list[int]] = ("u8", [])
        return table(**{"class": ("json", [])}, of=("json", []), count=none, sum_low=none, sum_high=none)

    @staticmethod
    def _class_bytes() -> Table:
        return table(job=("u4", []), **{"class": ("json", [])}, bytes=("u8", []))

    @staticmethod
    def _pauses() -> Table:
        """No priority flow control."""
        names = ("first", "pauses", "paused", "longest", "peak", "expired", "dropped")
        counts: dict[str, tuple[str, Sequence[Any]]] = {name: ("u8", []) for name in names}
        return table(link=("u4", []), lane=("u1", []), storm=("u1", []), **counts)

    def _totals(self) -> Table:
        """Nothing lost, and no congestion control."""
        none = {name: ("u8", [0]) for name in ("packets_lost", "packets_retransmitted", "packets_given_up")}
        none |= {name: ("u8", [0]) for name in ("packets_trimmed", "packets_marked", "control_packets")}
        return table(packet_hops=("u8", [self.packet_hops]), **none)

    @staticmethod
    def _failures() -> Table:
        return table(job=("u4", []), time=("u8", []), **{"from": ("u4", []), "to": ("u4", [])})

    @staticmethod
    def _sweeps() -> Table:
        none: tuple[str, list[str]] = ("json", [])
        return table(time=("u8", []), routing=none, reason=none, links_down=("u8", []), cut_off=none)

    def _under_way(self) -> Table:
        """Every operation is over."""
        rows = [(job, rank) for job, it in enumerate(self.jobs) for rank, _ in enumerate(it["hosts"])]
        none = ("u8", [0 for _ in rows])
        job, rank = (("u4", [row[at] for row in rows]) for at in (0, 1))
        return table(job=job, rank=rank, compute=none, communication=none)

    def _pace(self, job: int) -> int:
        return int(self.jobs[job]["pace"]) * (2 if job == 0 and len(self.jobs) > 1 else 1)

    def _ranks(self) -> Table:
        rows = [(job, rank, host) for job, it in enumerate(self.jobs) for rank, host in enumerate(it["hosts"])]
        count = [0 if self.now < MS else 1 + (self.now - MS) // self._pace(job) for job, _, _ in rows]
        last = [MS + (n - 1) * self._pace(job) if n else 0 for n, (job, _, _) in zip(count, rows, strict=True)]
        same = ("u8", [0] * len(rows))
        return table(
            job=("u4", [job for job, _, _ in rows]),
            rank=("u4", [rank for _, rank, _ in rows]),
            host=("u4", [host for _, _, host in rows]),
            iterations=("u8", count),
            first_mark=("u8", [MS if n else 0 for n in count]),
            last_mark=("u8", last),
            compute=("u8", [self.now * 6 // 10] * len(rows)),
            communication=("u8", [self.now * 4 // 10] * len(rows)),
            late_partner=same,
            network=same,
            messages_sent=same,
            bytes_sent=same,
            finished=("u1", [0] * len(rows)),
            finished_at=same,
        )

    def _marks(self) -> Table:
        rows = [(job, n) for job, ranks in enumerate(self.progress()) for n in range(1, ranks[0] + 1)]
        return table(
            job=("u4", [job for job, _ in rows]),
            iteration=("u8", [n for _, n in rows]),
            time=("u8", [MS + (n - 1) * self._pace(job) for job, n in rows]),
            elapsed=("u8", [MS if n == 1 else self._pace(job) for job, n in rows]),
            timed=("u1", [0] * len(rows)),
        )

    def _calls(self) -> Table:
        jobs = range(len(self.jobs))
        return table(
            job=("u4", jobs),
            call=("json", ["wait_all" for _ in jobs]),
            count=("u8", [7 for _ in jobs]),
            time=("u8", [self.now * 4 // 10 * len(self.jobs[job]["hosts"]) for job in jobs]),
        )

    def _ports(self) -> Table:
        """Two lanes on each of the four links of ``fake_links``, which carry packets three quarters of the time."""
        rows = [(link, lane) for link in range(4) for lane in range(2)]
        return table(
            link=("u4", [link for link, _ in rows]),
            lane=("u1", [lane for _, lane in rows]),
            bytes=("u8", [4096 * (1 + lane) for _, lane in rows]),
            packets=("u8", [1 + lane for _, lane in rows]),
            waiting=("u8", [self.now // 10] * len(rows)),
            stalled=("u8", [self.now // (8 if lane else 16) for _, lane in rows]),
            max_queue=("u4", [3] * len(rows)),
            port_active=("u8", [self.now * 3 // 4] * len(rows)),
            port_stalled=("u8", [self.now // 5] * len(rows)),
        )

    def _waits(self) -> Table:
        """Job a's packets wait ``(a + 1) * (b + 2)`` thousandths of the time for job b's."""
        cells = [(a, b) for a in range(len(self.jobs)) for b in range(len(self.jobs))]
        return table(
            delayed=("u4", [a for a, _ in cells]),
            delaying=("u4", [b for _, b in cells]),
            waiting=("u8", [self.now // 1000 * (a + 1) * (b + 2) for a, b in cells]),
        )


def fake_links() -> tuple[Table, list[str]]:
    """Two hosts on one switch: links of host 0, host 1, and the switch's two."""
    links = table(
        link=("u4", range(4)),
        from_host=("i8", [0, 1, -1, -1]),
        from_switch=("i8", [-1, -1, 0, 0]),
        to_host=("i8", [-1, -1, 0, 1]),
        to_switch=("i8", [0, 0, -1, -1]),
        role=("json", ["host"] * 4),
        rail=("i8", [0] * 4),
        from_name=("json", ["host0", "host1", "leaf", "leaf"]),
        from_port=("u4", [1, 1, 1, 2]),
        to_name=("json", ["leaf", "leaf", "host0", "host1"]),
        to_port=("u4", [1, 2, 1, 1]),
        from_level=("u4", [0, 0, 1, 1]),
        to_level=("u4", [1, 1, 0, 0]),
        **{"class": ("u4", [0, 0, 1, 1])},
        bandwidth=("u8", [25_600_000_000] * 4),
        latency=("u8", [100_000] * 4),
    )
    return links, ["host up", "host down"]
