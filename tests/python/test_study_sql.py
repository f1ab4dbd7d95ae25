"""Queries of studies and papers: they only read, and columns keep their types."""

import polars as pl
import pytest

from fairlane.study.sql import Database, QueryError


def test_columns_of_any_type_can_be_asked_for() -> None:
    wide = pl.Series("wide", [1, 2], pl.Int128)
    table = pl.DataFrame({"text": ["x", None], "empty": [None, None], "float": [0.5, None], "flag": [True, None]})
    found = Database({"t": table.with_columns(wide)}).ask("SELECT * FROM t")
    assert found["text"].to_list() == ["x", None]
    assert found["empty"].to_list() == [None, None]
    assert found["float"].to_list() == [0.5, None]
    assert found["flag"].to_list() == [True, None]
    assert found["wide"].to_list() == [1, 2]
    assert Database({"t": table.clear()}).ask("SELECT * FROM t").height == 0


def test_queries_only_read_and_integers_stay_integers() -> None:
    database = Database({"t": pl.DataFrame({"a": [1, 2]})})
    assert database.ask("SELECT sum(a) AS a, sum(a) * 0.5 AS b FROM t").schema == {"a": pl.Int64, "b": pl.Float64}
    for wrong in ("DROP TABLE t", "SELECT 1; SELECT 2", "SELECT * FROM read_csv('/etc/passwd')", "COPY t TO 'x.csv'"):
        with pytest.raises(QueryError):
            database.ask(wrong)
