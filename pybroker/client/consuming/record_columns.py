"""Records of one partition as Arrow columns, and their conversion for Arrow libraries.

Owns the column names. The engine builds the columns and exports them by Arrow's PyCapsule interface. pyarrow and
polars are imported only by the calls that return their objects.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pybroker.client import native
from pybroker.client.errors import ClientError

if TYPE_CHECKING:
    import polars
    import pyarrow

COLUMNS = ("key", "value", "topic", "partition", "offset", "timestamp", "timestamp_type", "headers")
"""The default columns: those of Spark's Kafka connector, in its order, with headers."""
SENDABLE_COLUMNS = ("key", "value", "topic", "partition", "timestamp", "headers")
"""The columns that `Producer.send_columns` sends. It ignores the others, which the broker assigns."""

_IN_SNAKE_CASE = {"timestampType": "timestamp_type", "producerId": "producer_id"}


def in_snake_case(columns: Sequence[str]) -> list[str]:
    """Return column names in snake case; names in the spelling of Spark's connector are converted."""
    return [_IN_SNAKE_CASE.get(name, name) for name in columns]


class RecordColumns:
    """Records of one partition as Arrow columns: a struct array, by the PyCapsule interface."""

    __slots__ = ("_native",)

    def __init__(self, taken: native.RecordColumns) -> None:
        self._native = taken

    @property
    def topic(self) -> str:
        """Return the topic of all rows."""
        return self._native.topic

    @property
    def partition(self) -> int:
        """Return the partition of all rows."""
        return self._native.partition

    @property
    def rows(self) -> int:
        """Return the number of records."""
        return self._native.rows

    def __len__(self) -> int:
        return self._native.rows

    def __bool__(self) -> bool:
        """True, also without rows: then only the position advanced. `take` returns None where nothing arrived."""
        return True

    @property
    def bytes(self) -> int:
        """Return the bytes of keys and values, also of columns that were not selected."""
        return self._native.bytes

    @property
    def next_offset(self) -> int:
        """Return the offset where reading continues, also behind offsets without a consumer record."""
        return self._native.next_offset

    def __arrow_c_schema__(self) -> object:
        """Return a capsule `arrow_schema`; names are in snake case: `timestamp_type`, `producer_id`."""
        return self._native.__arrow_c_schema__()

    def __arrow_c_array__(self, requested_schema: object | None = None) -> tuple[object, object]:
        """Return capsules `arrow_schema` and `arrow_array` of the columns, without a copy and without a conversion."""
        return self._native.__arrow_c_array__(requested_schema)

    def to_arrow(self) -> pyarrow.RecordBatch:
        """Return a record batch of pyarrow, without a copy. Raises ClientError without pyarrow."""
        try:
            import pyarrow
        except ImportError:
            raise ClientError("to_arrow needs pyarrow: pip install pyarrow") from None
        batch: Any = pyarrow.record_batch(self)
        return batch

    def to_polars(self) -> polars.DataFrame:
        """Return a DataFrame of polars. Raises ClientError without polars."""
        try:
            import polars
        except ImportError:
            raise ClientError("to_polars needs polars: pip install polars") from None
        return polars.DataFrame(self)
