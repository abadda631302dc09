"""What producers say was acknowledged, as load generators report it: without it a lost end of a partition is not seen.

Owns the reading of the two forms: a load's JSON (its member `acknowledged`), or a Parquet file or directory with the
columns `topic`, `partition`, `producer` and `acknowledged`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq


class ExpectedError(Exception):
    """The report cannot be read; says which, and what would be right."""


@dataclass(frozen=True, slots=True)
class Expected:
    """One producer's count for one partition: sequences 0 to `acknowledged` - 1 are to be in the log."""

    topic: str
    partition: int
    producer: int
    acknowledged: int


def read_expected(path: Path) -> list[Expected]:
    """Read a load's report. Raises ExpectedError."""
    try:
        if path.suffix == ".json":
            return _expected(json.loads(path.read_text())["acknowledged"])
        return _expected(pq.read_table(path, columns=["topic", "partition", "producer", "acknowledged"]).to_pylist())
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ExpectedError(
            f"{path}: {error!r}: must be a load's JSON report with `acknowledged`, or Parquet with the columns topic,"
            " partition, producer and acknowledged"
        ) from None


def _expected(rows: Iterable[Mapping[str, Any]]) -> list[Expected]:
    return [
        Expected(str(row["topic"]), int(row["partition"]), int(row["producer"]), int(row["acknowledged"]))
        for row in rows
    ]
