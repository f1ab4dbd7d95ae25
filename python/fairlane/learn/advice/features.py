"""Features of a run, and a first guess of its run time.

The features of an application come from one isolated simulation: its shares of computing, waiting for the network and
for late partners; number and size of its messages; utilisation of its links. Those of a condition are what the
application and its neighbours share: adapters, links by the weights of their lanes, and the isolated neighbours'
utilisation of links between switches.

The first guess, relative to the isolated reference run:

    T = c x + (1 - c) (b max(1, h / a, s / l) + (1 - b) (1 + v q (1 - w) / w))

``c`` is the share of computing in the time not spent on waiting for others, and ``x`` how much longer computing takes
under the cap. While it communicates, the application's busiest adapter has the utilisation ``h`` and its busiest link
between switches ``s``; ``b`` is the greater one. ``a`` is the share of the adapters that it uses. ``w`` is its share of
a link that all jobs want and ``v`` the utilisation by neighbours of links on its planes, so that ``l = max(w, 1 - v)``
of a link is left. A single message queues, where a link is busy, behind as many packets of the neighbours as are
arbitrated before it by weight, each of which takes ``q`` of the message's own time.
"""

from collections.abc import Sequence

import polars as pl

from fairlane.core.errors import Problem, ScenarioError
from fairlane.study.shipped.advice.measure import MEASURED

COLUMNS = (
    "case",
    "application",
    "rails",
    "placement",
    "seed",
    "co_scheduled",
    "link_share",
    "adapters",
    "adapters_shared",
    "interference_utilisation",
    "cap_w",
    *MEASURED,
)
"""The columns of a table of runs: that of ``fairlane advise`` and those of ``fairlane reproduce patki2016``."""
RENAMED = {
    "beside": "co_scheduled",
    "interference_use": "interference_utilisation",
    "waits_for_itself_ms": "self_queueing_ms",
    "host_use": "host_utilisation",
    "switch_use": "switch_utilisation",
}
"""Former names of columns."""
FEATURES = (
    "guess",
    "stretch",
    "adapters",
    "interference",
    "link_share",
    "neighbour_utilisation",
    "packed",
    "spread",
    "compute_share",
    "network_share",
    "late_share",
    "self_queueing",
    "collective_share",
    "host_utilisation",
    "switch_utilisation",
    "message_size",
    "message_rate",
)
"""The logarithm of the first guess; of the condition: how much longer computing takes, the part of the adapters used,
whether there are neighbours, the share of a link, how busy they keep links on the application's planes, and whether it
is packed or spread, else it is random; and of the isolated application, over its run time: computing, waiting for the
network and for late partners, its packets' waiting for each other, its calls' time in collectives, its busiest links at
hosts and between switches; logarithms of the mean message, kB, and of messages a millisecond."""
PACKET_TIME = 0.5
"""``q``: a packet of 2 KiB takes about half as long as a small message on an idle path of four links."""
_SAME = ("case", "application")
_REFERENCE = (*MEASURED, "adapters")


def described(runs: pl.DataFrame) -> pl.DataFrame:
    """The runs with ``FEATURES``, ``reference_ms`` and ``ratio``, run time over that of the reference.

    The reference is an application's isolated run with the most adapters and the highest power cap, on random hosts
    if there is one. Raises ``ScenarioError`` where there is none.
    """
    joined = runs.join(_references(runs), on=_SAME, how="left", maintain_order="left")
    if joined["reference_run_time_ms"].null_count():
        lost = joined.filter(pl.col("reference_run_time_ms").is_null())["application"][0]
        raise ScenarioError(Problem("link_share", "no run without neighbours", lost, "an empty cell"))
    time = pl.col("reference_run_time_ms")

    def part(name: str) -> pl.Expr:
        return pl.col(f"reference_{name}") / time

    messages = pl.max_horizontal(pl.col("reference_messages"), pl.lit(1e-9))
    made = joined.with_columns(
        reference_ms=time,
        ratio=pl.col("run_time_ms") / time,
        stretch=(pl.col("computing_ms") / pl.col("reference_computing_ms")).fill_nan(1.0),
        adapters=pl.col("adapters") / pl.col("reference_adapters"),
        interference=pl.col("link_share").is_not_null().cast(pl.Float64),
        link_share=pl.col("link_share").fill_null(1.0),
        neighbour_utilisation=pl.col("interference_utilisation") * pl.col("adapters_shared"),
        packed=(pl.col("placement") == "packed").cast(pl.Float64),
        spread=(pl.col("placement") == "spread").cast(pl.Float64),
        compute_share=part("computing_ms"),
        network_share=part("network_ms"),
        late_share=part("late_partner_ms"),
        self_queueing=part("self_queueing_ms"),
        collective_share=pl.col("reference_collective_share"),
        host_utilisation=pl.col("reference_host_utilisation"),
        switch_utilisation=pl.col("reference_switch_utilisation"),
        message_size=(pl.col("reference_kilobytes") / messages).log1p(),
        message_rate=(pl.col("reference_messages") / time).log1p(),
    )
    return made.with_columns(guess=_guess().log()).drop(f"reference_{name}" for name in _REFERENCE)


def _references(runs: pl.DataFrame) -> pl.DataFrame:
    order: Sequence[pl.Expr] = (
        pl.col("adapters").neg(),
        (pl.col("computing_ms") * 100 / pl.col("computing_ms").min().over(_SAME)).fill_nan(100).round(),
        pl.col("placement") != "random",
        pl.col("seed"),
    )
    first = runs.filter(pl.col("link_share").is_null()).sort(*order).group_by(_SAME, maintain_order=True).first()
    return first.select(*_SAME, *(pl.col(name).alias(f"reference_{name}") for name in _REFERENCE))


def _guess() -> pl.Expr:
    """The first guess of the ratio, by the columns of ``described``."""
    work, net = pl.col("compute_share"), pl.col("network_share")
    computed = (work / (work + net)).fill_nan(1.0)
    talking = pl.max_horizontal(1 - work, pl.lit(1e-3))
    at_host, between = (
        pl.min_horizontal(pl.col(name) / talking, pl.lit(1.0)) for name in ("host_utilisation", "switch_utilisation")
    )
    bound = pl.max_horizontal(at_host, between)
    share, busy = pl.col("link_share"), pl.col("neighbour_utilisation")
    left = pl.max_horizontal(share, 1 - busy)
    flowing = pl.max_horizontal(pl.lit(1.0), at_host / pl.col("adapters"), between / left)
    single = 1 + busy * PACKET_TIME * (1 - share) / share
    return computed * pl.col("stretch") + (1 - computed) * (bound * flowing + (1 - bound) * single)
