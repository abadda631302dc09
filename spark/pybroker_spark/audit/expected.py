"""The acknowledged records of producers, as load generators report them. They reveal a lost end of a partition.

Owns the parsing of both formats: a load's JSON (its member `acknowledged`), or Parquet with the columns `topic`,
`partition`, `producer`, `acknowledged` and `failed`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

_COLUMNS = ("topic", "partition", "producer", "acknowledged", "failed")


class ExpectedError(Exception):
    """The report cannot be read. The message has its path and the expected format."""


@dataclass(frozen=True, slots=True)
class Expected:
    """One producer's counts for one partition.

    Without failures, sequences 0 to `acknowledged` - 1 must be in the log. Failed records have sequences in between,
    and may be in the log or not.
    """

    topic: str
    partition: int
    producer: int
    acknowledged: int
    failed: int = 0


def read_expected(path: Path) -> list[Expected]:
    """Read a load's report. Raises ExpectedError."""
    try:
        if path.suffix == ".json":
            return _expected(json.loads(path.read_text())["acknowledged"])
        return _expected(pq.read_table(path, columns=list(_COLUMNS)).to_pylist())
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ExpectedError(
            f"{path}: {error!r}: must be a load's JSON report with `acknowledged`, or Parquet with the columns topic,"
            " partition, producer, acknowledged and failed"
        ) from None


def _expected(rows: Iterable[Mapping[str, Any]]) -> list[Expected]:
    return [Expected(str(row["topic"]), *(int(row[name]) for name in _COLUMNS[1:])) for row in rows]
