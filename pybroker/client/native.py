"""The gateway to Rust: the only module of this package that imports the extension.

An extension may be built without load generation (docs/adr/0034-load-generation-is-a-crate-and-a-feature.md); then
calls of its classes raise LoadUnavailableError.
"""

from __future__ import annotations

from pybroker._native import (
    ClientTls,
    ColumnReader,
    Delivery,
    Fetcher,
    FormattedRecords,
    LineSender,
    Outgoing,
    Producer,
    Received,
    Record,
    RecordColumns,
    RecordFormat,
    RowsDelivery,
    SaslCredentials,
    SaslExchange,
    Settlements,
    TlsSession,
    Transactions,
    keep_forever,
)
from pybroker.client.errors import LoadUnavailableError

try:
    from pybroker._native import KeyedStamps, LatencyHistogram, LoadGenerator, Tally
except ImportError:

    class _WithoutLoad:
        def __init__(self, *_arguments: object) -> None:
            raise LoadUnavailableError(
                "this pybroker was built without load generation (the cargo feature `load`), which measuring tools "
                "need: install a wheel that has it, or build one with `make wheels` or `pip install .` in a checkout"
            )

    KeyedStamps = LatencyHistogram = LoadGenerator = Tally = _WithoutLoad  # type: ignore[misc, assignment]

__all__ = [
    "ClientTls",
    "ColumnReader",
    "Delivery",
    "Fetcher",
    "FormattedRecords",
    "KeyedStamps",
    "LatencyHistogram",
    "LineSender",
    "LoadGenerator",
    "Outgoing",
    "Producer",
    "Received",
    "Record",
    "RecordColumns",
    "RecordFormat",
    "RowsDelivery",
    "SaslCredentials",
    "SaslExchange",
    "Settlements",
    "Tally",
    "TlsSession",
    "Transactions",
    "keep_forever",
]
