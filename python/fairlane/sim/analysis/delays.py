"""Delays of waits: how long, by which neighbours, and because of what, by inference and in truth.

A wait is *delayed* if it is longer than a threshold. By the two-sided inference of Smith et al. 2018 a delay is slow
communication if both sides block on the message, and then as long as the shorter of the two; if only one side blocks,
its partner was late. That can be inferred for rendezvous messages only: the sender of an eager message never blocks.
The simulator knows the truth: a wait is late partner up to the partner's own call, and network from then on.
"""

from typing import Literal

import polars as pl

from fairlane.sim.analysis.record import Record

LATE = "late partner"
"""The partner made its call after the rank had blocked."""
SLOW = "slow communication"
"""The message was under way when it could have been there."""
QUIET = 0.99
"""The quantile of the waits of a quiet stretch above which a wait is a delay."""


def wait_delays(record: Record, types: pl.DataFrame, threshold_ps: int = 0) -> pl.DataFrame:
    """One row per wait of the record, with both judgements of it.

    ``types`` are pairs of ranks with their ``neighbour``, as ``neighbour_types`` makes them of the record's messages.
    Waits up to ``threshold_ps`` are no delays; neither is the shorter of two sides. The waits have ``partner``,
    ``neighbour``, ``collective``, ``eager``; ``wait_ps`` and its exact parts ``late_ps`` and ``network_ps``;
    ``other_ps``, how long the other side blocked on the message; ``delayed``; ``inferred`` (null for eager messages and
    what is no delay), ``truth`` (the greater part, null for what is no delay), and ``inferred_ps``, the size of the
    delay by the inference.
    """
    messages = record.messages.select("message", "from_rank", "to_rank", "collective", "eager")
    waits = with_parts(record.waits).join(messages, on="message", how="left")
    sides = waits.group_by("message", "receiver").agg(pl.col("wait_ps").max().alias("other_ps"))
    other = sides.filter(pl.col("message").is_not_null()).with_columns(~pl.col("receiver"))
    pairs = types.select("from_rank", "to_rank", "neighbour").unique()
    joined = waits.join(other, on=["message", "receiver"], how="left")
    delayed = pl.col("wait_ps") > threshold_ps
    both = pl.col("other_ps") > threshold_ps
    return (
        joined.join(pairs, on=["from_rank", "to_rank"], how="left")
        .with_columns(
            pl.col("other_ps").fill_null(0),
            partner=pl.when("receiver").then("from_rank").otherwise("to_rank"),
            delayed=delayed,
            truth=pl.when(delayed).then(
                pl.when(pl.col("late_ps") > pl.col("network_ps")).then(pl.lit(LATE)).otherwise(pl.lit(SLOW))
            ),
        )
        .with_columns(
            inferred=pl.when(delayed & ~pl.col("eager")).then(pl.when(both).then(pl.lit(SLOW)).otherwise(pl.lit(LATE))),
            inferred_ps=pl.when(both).then(pl.min_horizontal("wait_ps", "other_ps")).otherwise("wait_ps"),
        )
    )


def with_parts(waits: pl.DataFrame) -> pl.DataFrame:
    """The waits with their length and its exact parts: until the partner's own call, and from then on."""
    late = pl.col("partner_at_ps").clip(pl.col("since_ps"), pl.col("end_ps")) - pl.col("since_ps")
    return waits.with_columns(wait_ps=pl.col("end_ps") - pl.col("since_ps"), late_ps=late).with_columns(
        network_ps=pl.col("wait_ps") - pl.col("late_ps")
    )


def quiet_wait(record: Record, quantile: float = QUIET) -> int:
    """Return a bound of nearly all point-to-point waits of a quiet stretch, ps: a threshold for delays elsewhere.

    With 0.5 it is their median, for a stretch that is not quiet. If all waits are in collectives, they count.
    """
    waits = record.waits.join(record.messages.select("message", "collective"), on="message")
    apart = waits.filter(~pl.col("collective"))
    chosen = apart if apart.height else waits
    return int((chosen["end_ps"] - chosen["since_ps"]).quantile(quantile, "higher") or 0)


def by_neighbour(delays: pl.DataFrame) -> pl.DataFrame:
    """For ``wait_delays``: one row per type of neighbour, with the exact parts of the waits and their quantiles.

    ``collective`` distinguishes waits on the messages of collectives from others.
    """
    wait = pl.col("wait_ps")
    return (
        delays.group_by("collective", "neighbour")
        .agg(
            pl.len().alias("waits"),
            pl.col("delayed").sum(),
            wait.sum(),
            pl.col("late_ps", "network_ps").sum(),
            wait.median().alias("median_ps"),
            wait.quantile(0.99, "linear").alias("p99_ps"),
            wait.max().alias("greatest_ps"),
            pl.col("late_ps", "network_ps").max().name.prefix("greatest_"),
        )
        .sort("collective", "neighbour")
    )


def confusion(delays: pl.DataFrame) -> pl.DataFrame:
    """Compare the inference with the truth, for ``wait_delays``: one row per ``inferred`` and ``truth``.

    ``count`` counts delays by their greater part. ``time_ps`` is exact: of a delay that is held for a late partner,
    its part until the partner's call is right and the rest is wrong. ``right`` says which rows are.
    """
    inferred = delays.filter(pl.col("inferred").is_not_null())
    counts = inferred.group_by("inferred", "truth").agg(pl.len().alias("count"))
    parts = [pl.col("late_ps").sum().alias(LATE), pl.col("network_ps").sum().alias(SLOW)]
    times = inferred.group_by("inferred").agg(*parts)
    long = times.unpivot(on=[LATE, SLOW], index="inferred", variable_name="truth", value_name="time_ps")
    cells = pl.DataFrame({"inferred": [LATE, LATE, SLOW, SLOW], "truth": [LATE, SLOW, LATE, SLOW]})
    return (
        cells.join(counts, on=["inferred", "truth"], how="left", maintain_order="left")
        .join(long, on=["inferred", "truth"], how="left", maintain_order="left")
        .with_columns(pl.col("count", "time_ps").fill_null(0), right=pl.col("inferred") == pl.col("truth"))
    )


def message_delays(record: Record, types: pl.DataFrame) -> pl.DataFrame:
    """One row per message: what neighbours its ranks are, and how long each side blocked on it, with the exact parts.

    Messages nobody waited for are in it, with zeros: ``receiver_ps``, ``receiver_late_ps``, ``receiver_network_ps``,
    and the same of the ``sender``. ``under_way_ps`` is how long a message took from when it was sent, or a rendezvous
    from the later of the two calls, until it was received; null if it was not.
    """
    parts = {"wait_ps": "", "late_ps": "late_", "network_ps": "network_"}
    waits = with_parts(record.waits).filter(pl.col("message").is_not_null())
    messages = record.messages
    for side, receiving in (("receiver", True), ("sender", False)):
        renamed = [pl.col(name).sum().alias(f"{side}_{word}ps") for name, word in parts.items()]
        rows = waits.filter(pl.col("receiver") == receiving).group_by("message").agg(*renamed)
        messages = messages.join(rows, on="message", how="left", maintain_order="left")
    filled = [pl.col(f"{side}_{word}ps").fill_null(0) for side in ("receiver", "sender") for word in parts.values()]
    pairs = types.select("from_rank", "to_rank", "neighbour").unique()
    began = pl.when("eager").then("sent_at_ps").otherwise(pl.max_horizontal("sent_at_ps", "posted_at_ps"))
    messages = messages.with_columns(filled).with_columns(under_way_ps=pl.col("received_at_ps") - began)
    return messages.join(pairs, on=["from_rank", "to_rank"], how="left", maintain_order="left")


def first_exchange(delays: pl.DataFrame, number: int = 1) -> pl.DataFrame:
    """For ``message_delays``: the first message with each tag between each ordered pair of ranks, one row per pair.

    That is the first exchange of every dimension and direction where ranks exchange with each of their neighbours. With
    ``number`` it is a later message with the tag, counted from 1; pairs with fewer are left out. Of a
    pair's messages each side's columns are those that it blocked on longest; ``eager`` is whether all are eager.
    """
    pair = ["from_rank", "to_rank"]
    ordered = delays.sort("sent_at_ps", "message").with_columns(_number=pl.int_range(pl.len()).over(*pair, "tag") + 1)
    firsts = ordered.filter(pl.col("_number") == number).drop("_number")
    sides = [
        pl.col(f"{side}_ps", f"{side}_late_ps", f"{side}_network_ps").sort_by(f"{side}_ps").last()
        for side in ("receiver", "sender")
    ]
    whole = (pl.len().alias("messages"), pl.col("eager").all(), pl.col("neighbour").first())
    every = firsts.group_by(pair, maintain_order=True).agg(*whole, pl.col("under_way_ps").max(), *sides)
    return every.sort(pair)


def table_one(
    delays: pl.DataFrame, threshold_ps: int, *, by: Literal["inference", "truth"] = "inference"
) -> pl.DataFrame:
    """Table I of Smith et al. 2018: by neighbours, how many ordered pairs are delayed because of what, and how long.

    ``delays`` are of ``message_delays``, as a rule those of one exchange (``first_exchange``). ``inference`` counts a
    message once: as slow communication if both sides block on it for more than the threshold, else as late partner.
    ``truth`` looks at the exact parts, each by itself, of the side where it is longer. The two rows for each type of
    neighbour have ``neighbour``, ``pairs`` (ordered), ``delay``, ``delayed_pairs``, ``greatest_ps`` (null if none is
    delayed).
    """
    if by == "inference":
        both = pl.min_horizontal("receiver_ps", "sender_ps")
        larger = pl.max_horizontal("receiver_ps", "sender_ps")
        is_slow = both > threshold_ps
        sizes = {LATE: pl.when(~is_slow & (larger > threshold_ps)).then(larger), SLOW: pl.when(is_slow).then(both)}
    else:
        late = pl.max_horizontal("receiver_late_ps", "sender_late_ps")
        slow = pl.max_horizontal("receiver_network_ps", "sender_network_ps")
        sizes = {LATE: pl.when(late > threshold_ps).then(late), SLOW: pl.when(slow > threshold_ps).then(slow)}
    pair = pl.struct("from_rank", "to_rank")
    counted = delays.group_by("neighbour").agg(pair.n_unique().alias("pairs"))
    parts = [
        delays.with_columns(size=size)
        .group_by("neighbour")
        .agg(
            pl.lit(name).alias("delay"),
            pair.filter(pl.col("size").is_not_null()).n_unique().alias("delayed_pairs"),
            pl.col("size").max().alias("greatest_ps"),
        )
        for name, size in sizes.items()
    ]
    return counted.join(pl.concat(parts), on="neighbour").sort("neighbour", "delay")
