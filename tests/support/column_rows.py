"""Batches of columns for tests of column programs, as a consumer returns them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pyarrow

TIMESTAMP = pyarrow.timestamp("us", "UTC")
HEADERS = pyarrow.list_(pyarrow.struct([("key", pyarrow.string()), ("value", pyarrow.binary())]))


def batch(rows: Iterable[tuple[str | None, str | None, int]]) -> Any:
    """Return rows of key, value and timestamp in milliseconds as a record batch."""
    every = list(rows)
    keys = [None if key is None else key.encode() for key, _, _ in every]
    values = [None if value is None else value.encode() for _, value, _ in every]
    return pyarrow.record_batch(
        {
            "key": pyarrow.array(keys, pyarrow.binary()),
            "value": pyarrow.array(values, pyarrow.binary()),
            "timestamp": pyarrow.array([time * 1000 for _, _, time in every], pyarrow.int64()).cast(TIMESTAMP),
            "headers": pyarrow.nulls(len(every), HEADERS),
            "offset": pyarrow.array(range(len(every)), pyarrow.int64()),
        }
    )


def rows_of(found: Any) -> list[tuple[bytes | None, bytes | None, int]]:
    """Return the rows of a record batch as keys, values and timestamps in milliseconds."""
    times = [each // 1000 for each in found["timestamp"].cast(pyarrow.int64()).to_pylist()]
    return list(zip(found["key"].to_pylist(), found["value"].to_pylist(), times, strict=True))
