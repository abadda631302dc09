"""Records as text, and lines of text as records: what the console's commands print and read.

The engine does both without the GIL, a block at a time, and makes no object of a record (`native/client/src/text`).
`Consumer.format` takes a `RecordFormat`; a `LineSender` puts the records of lines into a producer's batches.
"""

from __future__ import annotations

from pybroker.client import native

DECODERS = (
    "String",
    "ByteArray",
    "Bytes",
    "ByteBuffer",
    "Boolean",
    "Short",
    "Integer",
    "Long",
    "Float",
    "Double",
    "UUID",
)
"""Kafka's deserializers that keys, values and headers can be shown by, without `Deserializer` behind the name."""
SHOWN = ("timestamp", "partition", "offset", "delivery", "epoch", "headers", "key", "value")
"""The parts of a record, in the order in which they are printed."""

FormattedRecords = native.FormattedRecords
LineSender = native.LineSender
RecordFormat = native.RecordFormat
