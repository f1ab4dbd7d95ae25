"""Demonstrates stepping: a serving simulator in Python sends KV caches through a fabric that a training job shares.

requests -> prefill (ranks 0 to 3) -> KV cache over the fabric -> decode with continuous batching (ranks 4 to 7)
"""

import random
from collections import deque
from heapq import heappop, heappush
from itertools import count
from statistics import quantiles
from typing import Any

from fairlane import Scenario, Simulation

MS = 10**9  # ps
PREFILL, DECODE = range(4), range(4, 8)
KV_BYTES = 2 * 32 * 8 * 128 * 2  # of a token: keys and values of 32 layers, 8 heads, 128 numbers of 2 bytes
PREFILL_TOKEN, DECODE_STEP, DECODE_SEQUENCE = MS // 40, 5 * MS, MS // 20
REQUESTS, GAP, TOKENS, ANSWER = 40, 1.2 * MS, (64, 256), 6


class Server:
    """Prefill and decode instances, one event after another."""

    def __init__(self, simulation: Simulation) -> None:
        self.simulation, self.order = simulation, count()
        self.events: list[tuple[int, int, str, Any]] = []
        self.prompts = {rank: deque[tuple[int, int]]() for rank in PREFILL}  # when they arrived, and their tokens
        self.sent: dict[int, int] = {}  # when the request of each KV cache arrived, by handle
        self.batch: dict[int, list[list[int]]] = {rank: [] for rank in DECODE}  # when it arrived, tokens so far
        self.decoding: set[int] = set()
        self.transfers: list[int] = []
        self.first_tokens: list[int] = []
        draw, time = random.Random(1), 0.0
        for _ in range(REQUESTS):
            time += draw.expovariate(1 / GAP)
            self.at(int(time), "arrive", draw.randint(*TOKENS))

    def at(self, time: int, kind: str, subject: int) -> None:
        """Puts an event into its place."""
        heappush(self.events, (time, next(self.order), kind, subject))

    def run(self) -> None:
        """Until all requests are answered: what comes first, an event or the end of a transfer."""
        while self.events or self.sent:
            time = self.events[0][0] if self.events else self.simulation.now + MS
            transfers = self.simulation.advance(time, first=True)
            for transfer in transfers:
                self.transfers.append(transfer.time - transfer.sent)
                self.batch[transfer.destination].append([self.sent.pop(transfer.handle), 0])
                self.decode(self.simulation.now, transfer.destination)
            if self.events and not transfers:
                time, _, kind, subject = heappop(self.events)
                getattr(self, kind)(time, subject)

    def arrive(self, time: int, tokens: int) -> None:
        """A request goes to the prefill instance with the shortest queue."""
        rank = min(PREFILL, key=lambda rank: len(self.prompts[rank]))
        self.prompts[rank].append((time, tokens))
        if len(self.prompts[rank]) == 1:
            self.at(time + tokens * PREFILL_TOKEN, "prefilled", rank)

    def prefilled(self, time: int, rank: int) -> None:
        """The KV cache goes to the decode instance with the smallest batch."""
        arrived, tokens = self.prompts[rank].popleft()
        target = min(DECODE, key=lambda rank: len(self.batch[rank]))
        self.sent[self.simulation.send("serving", rank, target, tokens * KV_BYTES, at=time)] = arrived
        if self.prompts[rank]:
            self.at(time + self.prompts[rank][0][1] * PREFILL_TOKEN, "prefilled", rank)

    def decode(self, time: int, rank: int) -> None:
        """Sequences that have arrived join the batch when a step begins."""
        if self.batch[rank] and rank not in self.decoding:
            self.decoding.add(rank)
            for sequence in self.batch[rank]:
                sequence[1] += 1
            self.at(time + DECODE_STEP + len(self.batch[rank]) * DECODE_SEQUENCE, "decoded", rank)

    def decoded(self, time: int, rank: int) -> None:
        """Each sequence of the step has a token more."""
        self.decoding.remove(rank)
        self.first_tokens += [time - arrived for arrived, tokens in self.batch[rank] if tokens == 1]
        self.batch[rank] = [sequence for sequence in self.batch[rank] if sequence[1] < ANSWER]
        self.decode(time, rank)


def main() -> None:
    """The same requests on a fabric of their own, and beside training."""
    serving = {"name": "serving", "ranks": 8, "workload": "stepped", "placement": {"hosts": [0, 4, 8, 12, 1, 5, 9, 13]}}
    experts = {"name": "all_to_all", "message_size": "2 MiB", "messages_per_iteration": 1, "compute": "1 ms"}
    training = {"name": "training", "ranks": 8, "workload": experts}
    fabric = {"topology": "fat_tree", "hosts": 16, "leaf_down": 4, "leaf_up": 1, "bandwidth": "200 Gb/s"}
    print("                  KV transfer, ms   time to first token, ms")
    print("                    p50      p90               p50      p90")
    for jobs in ([serving], [serving, training]):
        server = Server(Simulation(Scenario(fabric=fabric, jobs=jobs, duration="1 s")))
        server.run()
        columns = [quantiles(times, n=10) for times in (server.transfers, server.first_tokens)]
        transfer, first = ([f"{column[at] / MS:8.2f}" for at in (4, 8)] for column in columns)
        print(f"{' + '.join(str(job['name']) for job in jobs):20}{' '.join(transfer)}          {' '.join(first)}")


if __name__ == "__main__":
    main()
