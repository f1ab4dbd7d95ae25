"""Reads and writes of files: clients of a job, and servers on hosts that jobs share."""

from collections import deque
from collections.abc import Callable
from typing import Annotated, Literal, Self

import numpy
from numpy.typing import NDArray
from pydantic import Field, model_validator
from typing_extensions import override

from fairlane.core.errors import Problem
from fairlane.core.seeds import Purpose
from fairlane.core.units import SIZE, Bandwidth, Duration, Size
from fairlane.core.wording import plural
from fairlane.inputs.hosts import Host, HostsField
from fairlane.inputs.problems import Problems
from fairlane.model.workload.base import Count, Workload
from fairlane.model.workload.builder import JobScript, Rank
from fairlane.model.workload.writer import Request

MIB = 2**20
MOST_REQUESTS = 2**16
"""Requests of a client in an iteration: each is kept in memory."""
_WINDOW = 0
_BIT_SECONDS = 8 * 10**12
"""Picoseconds of a byte at 1 bit/s."""


class Storage(Workload):
    """Clients that write and read files on servers, such as checkpoints and training data.

    The last ranks of the job are servers, one on each of ``servers``; other jobs may have servers on the same hosts,
    and then share their links. In an iteration every client computes, reads, writes, and waits for all others in a
    barrier. A file goes in requests of ``message_size`` by puts and gets of the client's adapter, ``in_flight`` at
    once. The processors and disks of servers take no time: a server is as fast as its link.
    """

    message_size: Size = Field(default=MIB, gt=0, description="bytes of a request")
    compute: Duration | None = 0
    servers: HostsField = Field(
        default=None,
        description="the hosts of the servers: numbers, names or Slurm lists; without, one is placed as clients are",
    )
    write_size: Size = Field(default=MIB, description="bytes that each client writes in an iteration")
    read_size: Size = Field(default=0, description="bytes that each client reads in an iteration, before it writes")
    load_size: Size = Field(default=0, description="bytes that each client reads before the first iteration, not timed")
    in_flight: Annotated[int, Field(ge=1, le=1024)] = Field(
        default=8, description="requests of a client under way at once"
    )
    layout: Literal["file_per_client", "shared_file"] = Field(
        default="file_per_client",
        description="each client's own file on `stripes` servers, or one file over all servers in the order of clients",
    )
    stripes: Count = Field(default=1, description="servers over which a client's own file is striped")
    rate: Bandwidth | None = Field(
        default=None,
        ge=10**6,
        description="throttle: a client starts requests at this rate at most; its pauses are counted as computation",
    )

    @model_validator(mode="after")
    def _moves_files(self) -> Self:
        hosts = self.fixed_hosts()
        twice = next((host for at, host in enumerate(hosts) if host in hosts[:at]), None)
        if twice is not None:
            raise Problems(Problem("servers", f"host {twice} is listed twice", allowed="each host once"))
        if self.stripes > self.server_count:
            allowed = f"at most {self.server_count}, the number of servers"
            raise Problems(Problem("stripes", "more than servers", self.stripes, allowed))
        if not (self.write_size or self.read_size):
            message = "neither write_size nor read_size says what an iteration moves"
            raise Problems(Problem("write_size", message, allowed="bytes"))
        for key in ("write_size", "read_size", "load_size"):
            if len(self._requests(size := getattr(self, key))) > MOST_REQUESTS:
                most = SIZE.format(MOST_REQUESTS * self.message_size)
                allowed = f"at most {most} in requests of {SIZE.format(self.message_size)}"
                raise Problems(Problem(key, "too many requests", SIZE.format(size), allowed))
        return self

    @property
    def server_count(self) -> int:
        """Number of its last ranks that are servers."""
        return len(self.servers or ()) or 1

    @override
    def fixed_hosts(self) -> tuple[Host, ...]:
        return self.servers or ()

    @override
    def one_sided_targets(self) -> int:
        return self.server_count

    @override
    def problem_with(self, ranks: int) -> str | None:
        few = ranks <= self.server_count
        return f"more than {plural(self.server_count, 'server')}: the other ranks are clients" if few else None

    @override
    def repeats(self) -> bool:
        return True

    @override
    def parts(self, job: JobScript) -> NDArray[numpy.float64]:
        clients = self.imbalance.parts(job.ranks - self.server_count, job.stream(Purpose.COMPUTE))
        return numpy.concatenate([clients, numpy.full(self.server_count, clients.mean())])

    @override
    def write(self, rank: Rank, stages: list[list[int]]) -> None:
        rank.win_create(_WINDOW)
        if self._serves(rank):
            stages = [[0] * len(times) for times in stages]
        else:
            sizes = (self.write_size, self.read_size, self.load_size)
            used = {self._server(rank, number, size) for size in sizes for number in self._requests(size)}
            for server in sorted(used):
                rank.win_lock(_WINDOW, server, exclusive=False)
            self._move(rank, rank.rget, self.load_size)
        if self.load_size:
            rank.collective("barrier")
            rank.begin_timing()
        super().write(rank, stages)

    @override
    def communicate(self, rank: Rank, iteration: int) -> None:
        if not self._serves(rank):
            self._move(rank, rank.rget, self.read_size)
            self._move(rank, rank.rput, self.write_size)
        rank.collective("barrier")

    def _move(self, rank: Rank, start: Callable[[int, int, int], Request], size: int) -> None:
        """Writes the requests of a file of ``size`` bytes: the next one starts when the oldest is over."""
        under_way: deque[Request] = deque()
        for number in self._requests(size):
            if len(under_way) == self.in_flight:
                rank.wait(under_way.popleft())
            part = min(self.message_size, size - number * self.message_size)
            under_way.append(start(_WINDOW, self._server(rank, number, size), part))
            if self.rate is not None:
                rank.compute(part * _BIT_SECONDS // self.rate, memory_bound=1.0)
        rank.wait_all(under_way)

    def _requests(self, size: int) -> range:
        return range(-(-size // self.message_size))

    def _serves(self, rank: Rank) -> bool:
        return rank.index >= rank.ranks - self.server_count

    def _server(self, rank: Rank, number: int, size: int) -> int:
        """The rank of the server that has request ``number`` of the client's part of ``size`` bytes."""
        if self.layout == "shared_file":
            place = rank.index * len(self._requests(size)) + number
        else:
            place = rank.index * self.stripes + number % self.stripes
        return rank.ranks - self.server_count + place % self.server_count
