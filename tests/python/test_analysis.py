"""The analysis of a record, on small tables whose answers are known by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import polars as pl
import pytest

from fairlane.model.fabric.table import FabricTable
from fairlane.sim.analysis.delays import (
    LATE,
    SLOW,
    by_neighbour,
    confusion,
    first_exchange,
    message_delays,
    quiet_wait,
    table_one,
    wait_delays,
)
from fairlane.sim.analysis.links import AHEAD, FLIT_BYTES, NO_ROOM, OWN, Trend, delayers, link_flits, message_packets
from fairlane.sim.analysis.neighbours import groups_spanned, neighbour_types
from fairlane.sim.analysis.record import Record, View, extremes, rounds, spans
from fairlane.sim.analysis.result import dominant_share
from fairlane.sim.analysis.walk import walk
from fairlane.views.analysis.walk import links_chart

US = 10**6
RATE = 8 * 10**12  # a byte is a picosecond on the wire
A, B, C = 0, 1, 2
CALLS = ("from_rank", "to_rank", "bytes", "eager", "sent", "posted", "received", "acknowledged")


def messages(*rows: tuple[Any, ...]) -> pl.DataFrame:
    table = pl.DataFrame(list(rows), schema=list(CALLS), orient="row")
    instants = {name: f"{name}_at_ps" for name in CALLS[4:]}
    return (
        table.with_row_index("message")
        .rename(instants)
        .with_columns(token=pl.col("message") + 10, tag=pl.lit(0), collective=pl.lit(False))
        .with_columns(pl.col(list(instants.values())).cast(pl.UInt64))
    )


def waits(*rows: tuple[Any, ...]) -> pl.DataFrame:
    columns = ["rank", "call", "since_ps", "end_ps", "partner_at_ps", "message", "receiver"]
    return pl.DataFrame(list(rows), schema=columns, orient="row").with_columns(
        pl.col("since_ps", "end_ps", "partner_at_ps").cast(pl.UInt64)
    )


def departures(*rows: tuple[Any, ...]) -> pl.DataFrame:
    columns = ["time_ps", "link", "job", "token", "stage", "packet", "bytes", "queueing_ps"]
    table = pl.DataFrame(list(rows), schema=dict.fromkeys(columns, pl.Int64), orient="row")
    return table.with_columns(lane=pl.lit(0, pl.UInt8))


def record(sent: pl.DataFrame, waited: pl.DataFrame, left: pl.DataFrame | None = None) -> Record:
    left = departures() if left is None else left
    return Record.of("app", 0, (0, 1000 * US), messages=sent, waits=waited, departures=left)


def links(*ends: tuple[str, str, str]) -> pl.DataFrame:
    table = pl.DataFrame(list(ends), schema=["from_vertex", "to_vertex", "class"], orient="row")
    role = pl.when(pl.col("class") == "host").then(pl.lit("host")).otherwise(pl.lit("local"))
    return table.with_row_index("link").with_columns(role=role, bandwidth_bps=pl.lit(RATE))


LINE = links(("host 2", "switch 0", "host"), ("switch 0", "switch 1", "green"), ("switch 1", "host 1", "host"))


def chain() -> Record:
    """C's message to B waits 80 us on link 1 behind job X; so B is late with what A waits for."""
    sent = messages(
        (C, B, US, True, 0, 0, 90 * US, None),
        (B, A, 100, True, 95 * US, 0, 96 * US, None),
    )
    waited = waits(
        (A, "wait", 10 * US, 96 * US, 95 * US, 1, True),
        (B, "recv", 5 * US, 90 * US, 0, 0, True),
    )
    left = departures(
        (0, 0, 0, 10, 0, 0, US, 0),
        (1 * US, 1, 1, 7, 0, 0, 81 * US, 0),  # X's packet is on link 1 until 82 us
        (82 * US, 1, 0, 10, 0, 0, US, 80 * US),
        (83 * US, 2, 0, 10, 0, 0, US, 0),
    )
    return record(sent, waited, left)


def test_the_walk_goes_back_to_the_slow_message_its_link_and_the_job_in_the_way() -> None:
    found = walk(chain(), LINE, ["app", "X"])
    assert found is not None
    assert found.steps["rank"].to_list() == [A, B]
    assert found.steps["late_ps"].to_list() == [85 * US, 0]
    assert found.steps["network_ps"].to_list() == [US, 85 * US]
    assert (found.cause, found.slow) == ("slow message", 1)
    assert found.steps.row(1, named=True)["from_rank"] == C
    # On the wire its million bytes take 1 us of the 90 us.
    assert found.steps.row(1, named=True)["excess_ps"] == 89 * US
    worst = found.links.sort("queueing_ps").row(-1, named=True)
    assert (worst["link"], worst["class"], worst["greatest_ps"]) == (1, "green", 80 * US)
    assert found.delayers.rows() == [(1, AHEAD, "X", 80 * US)]
    assert found.jobs.rows() == [("X", 80 * US, 1.0)]


def test_bars_of_the_walk_are_the_parts_of_a_links_delay() -> None:
    found = walk(chain(), LINE, ["app", "X"])
    assert found is not None
    assert found.delayers.height > 0
    named = found.links.with_columns(pl.lit("leaf port 1 to spine").alias("link_name"), pl.lit("up").alias("class"))
    found = replace(found, links=named)
    chart = links_chart(found, ["app", "X"])
    assert sum(row["time"] for row in chart.data) == pytest.approx(1e-12 * int(found.delayers["queueing_ps"].sum()))
    assert chart.sentence == "Most of it at leaf port 1 to spine, 80.0 µs."


def test_the_walk_ends_at_a_partner_that_computed_longer() -> None:
    # Both come out of a wait at 10 us; A works 2 us and waits, B works 60 us and sends.
    sent = messages((B, A, 100, True, 0, 0, 10 * US, None), (B, A, 100, True, 70 * US, 0, 71 * US, None))
    waited = waits(
        (A, "recv", US, 10 * US, 0, 0, True),
        (B, "wait", US, 10 * US, 0, None, True),
        (A, "recv", 12 * US, 71 * US, 70 * US, 1, True),
    )
    found = walk(record(sent, waited), LINE, ["app"])
    assert found is not None
    assert (found.cause, found.slow, found.steps.height) == ("computing", None, 1)
    assert found.worked_ps == (70 - 10) * US - (12 - 10) * US


def test_a_walk_of_small_delays_ends_with_the_record_and_names_the_slowest_of_them() -> None:
    sent = messages((C, B, 0, True, 0, 0, 30 * US, None), (B, A, 0, True, 40 * US, 0, 90 * US, None))
    sent = pl.concat(
        [sent, messages((B, A, 0, True, 40 * US, 0, 90 * US, None)).with_columns(message=pl.lit(2, pl.UInt32))]
    )
    waited = waits((A, "recv", 0, 95 * US, 40 * US, 1, True), (B, "recv", 0, 30 * US, 0, 0, True))
    short = waited.with_columns(
        end_ps=pl.when(pl.col("rank") == A).then(pl.lit(84 * US, pl.UInt64)).otherwise("end_ps")
    )
    found = walk(record(sent, short), LINE, ["app"], start=0)
    # 44 us of network after B's call is more than half of 84 us.
    assert found is not None
    assert (found.cause, found.slow) == ("slow message", 0)
    early = short.with_columns(partner_at_ps=pl.lit(50 * US, pl.UInt64))
    moved = sent.with_columns(sent_at_ps=pl.when(pl.col("from_rank") == B).then(50 * US).otherwise(0).cast(pl.UInt64))
    found = walk(record(moved, early), LINE, ["app"], start=0)
    assert found is not None
    assert (found.cause, found.slow, found.steps.height) == ("beginning", 0, 2)
    assert found.steps["excess_ps"].to_list() == [34 * US, 30 * US]


def test_a_walk_from_a_rendezvous_goes_back_on_the_side_that_was_later() -> None:
    # A blocks on its send; B posts the receive late, after a wait for C.
    sent = messages((C, B, 0, True, 0, 5 * US, 50 * US, None), (A, B, 100, False, 0, 52 * US, 55 * US, 56 * US))
    waited = waits((A, "wait", 1 * US, 56 * US, 52 * US, 1, False), (B, "recv", 5 * US, 50 * US, 0, 0, True))
    found = walk(record(sent, waited), LINE, ["app"])
    assert found is not None
    assert found.steps["rank"].to_list() == [A, B]
    assert found.steps["origin_ps"].to_list() == [52 * US, 0]
    assert (found.cause, found.slow) == ("slow message", 1)


def test_a_walk_in_a_record_without_waits_is_none_and_one_without_the_message_ends() -> None:
    assert walk(record(messages(), waits()), LINE, ["app"]) is None
    found = walk(record(messages(), waits((A, "recv", 0, US, 0, None, True))), LINE, ["app"])
    assert found is not None
    assert (found.cause, found.slow) == ("beginning", None)


def test_waiting_without_room_goes_to_whose_packets_lay_beyond() -> None:
    # X's packet went over link 1 at 1 us and on over link 2 at 41 us; the message waits at link 1 from 2 us to 42 us.
    sent = messages((C, B, US, True, 0, 0, 50 * US, None))
    left = departures(
        (1 * US, 1, 1, 7, 0, 0, US, 0),
        (41 * US, 2, 1, 7, 0, 0, US, 0),
        (42 * US, 1, 0, 10, 0, 0, US, 40 * US),
    )
    found = record(sent, waits(), left)
    packets = message_packets(found, found.messages.row(0, named=True))
    assert packets["queueing_ps"].to_list() == [40 * US]
    assert delayers(found, packets, LINE, ["app", "X"]).rows() == [(1, NO_ROOM, "X", 40 * US)]


def test_packets_wait_for_packets_of_their_own_message() -> None:
    sent = messages((C, B, 2 * US, True, 0, 0, 50 * US, None))
    left = departures((0, 1, 0, 10, 0, 0, US, 0), (US, 1, 0, 10, 0, 1, US, US))
    found = record(sent, waits(), left)
    packets = message_packets(found, found.messages.row(0, named=True))
    assert delayers(found, packets, LINE, ["app"]).rows() == [(1, AHEAD, OWN, US)]


def types_of(found: Record) -> pl.DataFrame:
    names = pl.Enum(["same host", "other group"])
    near = (
        pl.when((pl.col("from_rank") + pl.col("to_rank")) == 1)
        .then(pl.lit("same host"))
        .otherwise(pl.lit("other group"))
    )
    return found.messages.select("from_rank", "to_rank", near.cast(names).alias("neighbour")).unique()


def two_sided() -> Record:
    """A late rendezvous between 0 and 1, a slow one between 0 and 2, an eager one, and a message nobody waited for."""
    sent = messages(
        (0, 1, 10, False, 40 * US, 0, 42 * US, 42 * US),
        (0, 2, 10, False, 10 * US, 12 * US, 80 * US, 85 * US),
        (2, 0, 10, True, 50 * US, 0, 60 * US, None),
        (1, 0, 10, False, 0, 0, 5 * US, 6 * US),
    )
    waited = waits(
        (1, "wait", 2 * US, 42 * US, 40 * US, 0, True),  # 38 us late, 2 us network; the sender does not block
        (2, "wait", 20 * US, 80 * US, 10 * US, 1, True),  # 60 us network
        (0, "wait", 15 * US, 85 * US, 12 * US, 1, False),  # 70 us network
        (0, "recv", 48 * US, 60 * US, 50 * US, 2, True),  # 2 us late, 10 us network, eager
    )
    return record(sent, waited)


def test_the_inference_looks_at_both_sides_and_the_truth_at_the_partners_call() -> None:
    found = two_sided()
    delays = wait_delays(found, types_of(found), threshold_ps=5 * US)
    assert delays["inferred"].to_list() == [LATE, SLOW, SLOW, None]
    assert delays["inferred_ps"].to_list()[:3] == [40 * US, 60 * US, 60 * US], "of two sides the shorter"
    assert delays["truth"].to_list() == [LATE, SLOW, SLOW, SLOW]
    assert delays["late_ps"].to_list() == [38 * US, 0, 0, 2 * US]
    assert delays["network_ps"].to_list() == [2 * US, 60 * US, 70 * US, 10 * US]
    assert delays["partner"].to_list() == [0, 0, 2, 2]


def test_the_confusion_counts_delays_and_weighs_them_by_their_exact_parts() -> None:
    found = two_sided()
    table = confusion(wait_delays(found, types_of(found), threshold_ps=5 * US))
    cells = {(row["inferred"], row["truth"]): (row["count"], row["time_ps"]) for row in table.to_dicts()}
    assert cells == {
        (LATE, LATE): (1, 38 * US),
        (LATE, SLOW): (0, 2 * US),
        (SLOW, LATE): (0, 0),
        (SLOW, SLOW): (2, 130 * US),
    }
    assert table.filter("right")["count"].sum() == 3
    # With a threshold above one of the sides the inference takes the other delay for a late partner, and is wrong.
    wrong = confusion(wait_delays(found, types_of(found), threshold_ps=65 * US))
    assert wrong.filter(pl.col("count") > 0).select("inferred", "truth", "count").rows() == [(LATE, SLOW, 1)]


def test_table_one_counts_ordered_pairs_and_takes_the_shorter_of_two_sides() -> None:
    found = two_sided()
    delays = message_delays(found, types_of(found))
    rows = table_one(delays.filter(~pl.col("eager")), 5 * US).rows()
    assert rows == [
        ("same host", 2, LATE, 1, 40 * US),
        ("same host", 2, SLOW, 0, None),
        ("other group", 1, LATE, 0, None),
        ("other group", 1, SLOW, 1, 60 * US),
    ]
    exact = table_one(delays, 5 * US, by="truth").rows()
    assert exact[3] == ("other group", 2, SLOW, 2, 70 * US), "the eager message and the longer of the sides"
    assert exact[0] == ("same host", 2, LATE, 1, 38 * US)


def test_of_a_first_exchange_every_pair_has_its_longest_waits() -> None:
    sent = messages(
        (0, 1, 1, True, 0, 0, 9, None),
        (0, 1, 9, False, 5, 0, 30, 40),
        (0, 1, 1, True, 60, 0, 99, None),  # a second one with the first tag
        (1, 0, 1, True, 7, 0, 9, None),
    ).with_columns(tag=pl.Series([0, 1, 0, 0]))
    waited = waits(
        (1, "wait", 0, 9, 4, 0, True),
        (1, "wait", 10, 30, 5, 1, True),
        (0, "wait", 35, 40, 0, 1, False),
        (1, "wait", 0, 99, 60, 2, True),
    )
    found = record(sent, waited)
    rows = first_exchange(message_delays(found, types_of(found)))
    assert rows.select("from_rank", "to_rank", "messages", "eager").rows() == [(0, 1, 2, False), (1, 0, 1, True)]
    assert rows.select("receiver_ps", "receiver_late_ps", "sender_ps").rows() == [(20, 0, 5), (0, 0, 0)]


def test_parts_of_the_waits_by_neighbour_sum_to_the_waits() -> None:
    found = two_sided()
    table = by_neighbour(wait_delays(found, types_of(found)))
    assert table["waits"].to_list() == [1, 3]
    assert (table["late_ps"] + table["network_ps"]).to_list() == table["wait_ps"].to_list() == [40 * US, 142 * US]
    assert quiet_wait(found) == 70 * US


@pytest.mark.parametrize(
    ("fabric", "pairs", "expected"),
    [
        (
            {"topology": "cascade", "groups": 2, "columns": 3, "rows": 2, "hosts_per_switch": 2},
            # Hosts 0 and 1 share a switch; 2 is in its row, 6 in its column, 8 in neither, 12 in the next group.
            [(0, 0), (0, 1), (0, 2), (0, 6), (0, 8), (0, 12)],
            ["same host", "same switch", "row link", "column link", "same group", "other group"],
        ),
        (
            {"topology": "dragonfly", "groups": 3, "switches_per_group": 2, "hosts_per_switch": 1, "global_links": 1},
            [(0, 1), (0, 2)],
            ["direct link", "other group"],
        ),
        (
            {"topology": "fat_tree", "hosts": 16, "levels": 3},
            # Switches of 4 ports: two hosts of a leaf, two leaves of a subtree.
            [(0, 1), (0, 2), (0, 4), (0, 15)],
            ["same switch", "same subtree", "other subtree", "other subtree"],
        ),
        (
            {"topology": "torus", "sides": [5, 4]},
            [(0, 0), (0, 1), (0, 4), (0, 12)],
            ["same host", "1 hop", "1 hop", "4 hops"],
        ),
    ],
)
def test_types_of_neighbours(fabric: dict[str, Any], pairs: list[tuple[int, int]], expected: list[str]) -> None:
    view = View.of(FabricTable.model_validate(fabric).spec, [], [])
    ranks = pl.DataFrame(pairs, schema=["from_rank", "to_rank"], orient="row")
    found = neighbour_types(view.fabric, range(view.fabric.hosts), ranks)
    assert found["neighbour"].to_list() == expected
    groups = groups_spanned(view.fabric, sorted({host for pair in pairs for host in pair}))
    assert groups == {"cascade": 2, "dragonfly": 2}.get(fabric["topology"])


def test_flits_are_counted_on_all_links() -> None:
    left = departures(
        (0, 1, 0, 1, 0, 0, 4 * FLIT_BYTES, 0), (5, 1, 1, 2, 0, 0, FLIT_BYTES, 0), (9, 2, 1, 2, 0, 0, 1, 0)
    )
    assert link_flits(record(messages(), waits(), left), LINE)["flits"].to_list() == [0, 5, 1]


def test_waits_of_quarters_of_flits_and_their_correlation() -> None:
    points = pl.DataFrame({"flits": [1.0, 2.0, 3.0, 4.0], "wait_ps": [0, 0, 5, 15]})
    trend = Trend.of(points, "wait_ps")
    assert (trend.low_p95, trend.high_p95) == (0, 15)
    assert trend.pearson == pytest.approx(0.9128709)  # 25 / sqrt(5 x 150): sums of products and squares of deviations
    assert Trend.of(points.head(1), "wait_ps") == Trend(None, None, None)
    assert Trend.of(points.with_columns(flits=pl.lit(1.0)), "wait_ps").pearson is None


def test_an_iteration_lasts_from_the_last_mark_to_the_last_mark() -> None:
    marks = pl.DataFrame(
        {"rank": [0, 0, 0, 0, 1, 1, 1], "iteration": [1, 2, 3, 4, 1, 2, 3], "at_ps": [5, 20, 30, 40, 10, 18, 90]}
    ).with_columns(name=pl.lit("job"), job=0, time_s=pl.col("at_ps").diff().over("rank") * 1e-12)
    found = spans(marks, timed=False)
    assert found.select("iteration", "from_ps", "to_ps").rows() == [(2, 5, 20), (3, 18, 90)]
    assert found["seconds"].to_list() == pytest.approx([10e-12, 70e-12])
    fastest, slowest = extremes(found)
    assert (fastest.iteration, slowest.iteration, slowest.from_ps, slowest.to_ps) == (2, 3, 18, 90)
    assert [span.name for span in extremes(found.head(1))] == ["only"]
    assert extremes(found.clear()) == []
    # Of the 15, 10, 10 and 8, 72 from mark to mark, 4 each are timed, and of the 72 as much as 50.
    parts = marks.with_columns(time_s=pl.when(pl.col("at_ps") == 90).then(50e-12).otherwise(4e-12))
    timed = spans(parts.with_columns(time_s=pl.when(pl.col("iteration") > 1).then("time_s")), timed=True)
    assert timed.select("iteration", "from_ps", "to_ps").rows() == [(2, 14, 20), (3, 26, 90)]
    assert timed["seconds"].to_list() == pytest.approx([4e-12, 50e-12])


def test_rounds_last_from_collective_to_collective() -> None:
    # Rank 1 is still in the collective before; then each of two ranks exchanges and sums, twice.
    rows, collective = [(1, 0, 8, True, 1, 0, 5, None)], [True]
    for begin, late in ((10, 0), (40, 25)):
        rows += [(0, 1, 9, True, begin, 0, begin + 2, None), (1, 0, 9, True, begin + 1, 0, begin + 3, None)]
        rows += [
            (0, 1, 8, True, begin + 5, 0, begin + 8, None),
            (1, 0, 8, True, begin + 6 + late, 0, begin + 9 + late, None),
        ]
        collective += [False, False, True, True]
    sent = messages(*rows).with_columns(collective=pl.Series(collective))
    found = rounds(record(sent, waits()))
    # The first rank has everything of the first sum at 18, the last at 19; of the second at 48 and at 74.
    assert found.select("iteration", "from_ps", "to_ps").rows() == [(1, 0, 20), (2, 18, 75)]
    assert found["seconds"].to_list() == pytest.approx([19e-12, 55e-12])
    assert rounds(record(sent.filter(~pl.col("collective")), waits())).is_empty()
    assert rounds(record(messages(), waits())).is_empty()


def test_waits_and_allreduce_dominate() -> None:
    table = pl.DataFrame({"call": ["wait_all", "allreduce", "isend"], "share": [0.5, 0.3, 0.2]})
    assert dominant_share(table) == pytest.approx(0.8)
