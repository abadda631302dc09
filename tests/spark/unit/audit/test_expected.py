"""What producers say was acknowledged, from a load's report."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pybroker_spark.audit.expected import Expected, ExpectedError, read_expected


def test_what_was_sent_is_read_from_a_loads_report(tmp_path: Path) -> None:
    rows = [{"topic": "t", "partition": 0, "producer": 3, "acknowledged": 10, "failed": 2, "client": 1}]
    (tmp_path / "load.json").write_text(json.dumps({"acknowledged": rows}))
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "load.parquet")
    for name in ("load.json", "load.parquet"):
        assert read_expected(tmp_path / name) == [Expected("t", 0, 3, 10, 2)]
    (tmp_path / "other.json").write_text("{}")
    with pytest.raises(ExpectedError, match=r"other.json.*must be a load's JSON report"):
        read_expected(tmp_path / "other.json")
