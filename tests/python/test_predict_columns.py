"""Columns of monitoring: counters of InfiniBand under any of their names, and columns that are no counters."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from fairlane.cli.main import execute
from fairlane.cluster.counters.base import COUNTERS
from fairlane.cluster.counters.sysfs import COUNTERS_OF_FILES
from fairlane.core.errors import ScenarioError
from fairlane.learn.predict.table import CounterTable, column_of, columns_of, identifies, standard_name

LDMS = ["#Time", "Time_usec", "ProducerName", "component_id", "job_id", "app_id"]


def samples(names: list[str], runs: int = 8, timesteps: int = 6, **more: pl.Expr) -> pl.DataFrame:
    """What LDMS keeps of a job's timesteps; the time is a weighted sum of the counters."""
    rng = np.random.default_rng(5)
    rows = runs * timesteps
    values = rng.exponential(1e6, (rows, len(names)))
    frame = pl.DataFrame(
        {
            "#Time": 1.7e9 + np.arange(rows),
            "Time_usec": rng.integers(0, 1_000_000, rows),
            "ProducerName": ["n1"] * rows,
            "component_id": 7,
            "job_id": 4000 + np.arange(rows) // timesteps,
            "app_id": 0,
            "timestep": np.arange(rows) % timesteps,
            "seconds": 2 + values @ np.arange(1, len(names) + 1) * 1e-7,
            **{name: values[:, at] for at, name in enumerate(names)},
        }
    )
    return frame.with_columns(**more)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("port_xmit_data", "PortXmitData"),
        ("PortXmitData", "PortXmitData"),
        ("portxmitdata", "PortXmitData"),
        ("ib.port_xmit_data#mlx5_0.1", "PortXmitData#mlx5_0.1"),
        ("ib.port_rcv_data.rate#qib0.1", "PortRcvData.rate#qib0.1"),
        ("ib.port_unicast_xmit_packets#mlx5_0.1", "PortUnicastXmitPkts#mlx5_0.1"),
        ("ib.VL15_dropped#mlx5_0.1", "VL15Dropped#mlx5_0.1"),
        ("port_xmit_wait_sum", "PortXmitWait_sum"),
        ("PortXmitWait_max", "PortXmitWait_max"),
        ("flits_sum_vc0", "flits_sum_vc0"),
        ("some counter", "some counter"),
    ],
)
def test_a_counter_has_one_name(name: str, expected: str) -> None:
    assert standard_name(name) == expected
    assert standard_name(expected) == expected


def test_every_name_of_linux_is_a_counter_of_the_specification() -> None:
    assert {standard_name(name) for name in COUNTERS_OF_FILES} == set(COUNTERS) - {"QP1Dropped"}
    assert not [name for name in (*COUNTERS, *COUNTERS_OF_FILES) if identifies(name)]
    assert all(map(identifies, LDMS))
    # A name that two columns could stand for is found only as it is.
    assert column_of("port_xmit_data", ["PortXmitData", "portxmitdata"]) is None
    assert column_of("port_xmit_data", ["PortXmitData", "port_xmit_data"]) == "port_xmit_data"


def test_devices_may_have_other_names_where_a_counter_is_there_once() -> None:
    one, other = "ib.port_xmit_data#mlx5_0.1", "ib.port_xmit_data#mlx5_1.1"
    assert columns_of(["PortXmitData"], [one, "ib.port_rcv_data#mlx5_0.1"]) == {"PortXmitData": one}
    assert columns_of([one], ["port_xmit_data", "x#y"]) == {one: "port_xmit_data"}
    assert columns_of([one], ["PortXmitData#qib0.1"]) == {one: "PortXmitData#qib0.1"}
    assert columns_of(["PortXmitData"], [one, other]) == {"PortXmitData": None}
    assert columns_of([one, other], [one]) == {one: one, other: None}, "no column stands for two devices"
    assert columns_of(["PortXmitData.rate"], [one]) == {"PortXmitData.rate": None}
    assert columns_of(["PortXmitData_sum"], ["port_xmit_data_sum#mlx5_0.1"])["PortXmitData_sum"] is not None
    assert columns_of(["#Time"], ["#Epoch"]) == {"#Time": None}
    assert CounterTable.of(samples([one]), features=["port_xmit_data"]).features == (one,)


def test_columns_that_identify_a_row_are_no_counters() -> None:
    names = ["ib.port_xmit_data#mlx5_0.1", "ib.port_xmit_wait#mlx5_0.1"]
    table = CounterTable.of(samples(names))
    assert list(table.features) == names
    assert table.names == [str(4000 + run) for run in range(8)]
    named = CounterTable.of(samples(names), features=["component_id", "PortXmitWait*"])
    assert list(named.features) == ["component_id", names[1]]
    with pytest.raises(ScenarioError, match="no numeric column"):
        CounterTable.of(samples([]))
    with pytest.raises(ScenarioError, match="run: unknown column"):
        CounterTable.of(samples(names).drop("job_id"))


def test_a_model_is_applied_to_the_same_counters_by_other_names(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("sklearn")
    names = ["port_xmit_data", "port_xmit_wait", "port_rcv_data"]
    samples(names).write_csv(tmp_path / "runs.csv")
    model = ["--model", "ridge", "--parts", "base", "--folds", "4", "--coverage", "0.8", "-q"]
    fit = ["predict", "fit", str(tmp_path / "runs.csv"), "--out", str(tmp_path / "model.json"), *model]
    assert execute(fit) == 0
    others = samples(["PortXmitData#mlx5_0.1", "portxmitwait", "ib.port_rcv_data#mlx5_0.1"]).select(pl.all().reverse())
    others.select(reversed(others.columns)).write_csv(tmp_path / "later.csv")
    predicted = []
    for file in ("runs.csv", "later.csv"):
        capsys.readouterr()
        assert execute(["predict", "apply", str(tmp_path / "model.json"), str(tmp_path / file)]) == 0
        predicted.append(capsys.readouterr().out)
    assert predicted[0] == predicted[1]
    assert predicted[0].count("\n") == 48 + 1
