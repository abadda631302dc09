"""Formats records as text, and parses lines of text to records, for the console commands.

The engine does both without the GIL, a block at a time, and creates no object for a record
(`native/client/src/text`). `Consumer.format` takes a `RecordFormat`; a `LineSender` appends the records of lines to
a producer's batches.
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
"""Kafka's deserializers for the display of keys, values and headers, without the suffix `Deserializer`."""
SHOWN = ("timestamp", "partition", "offset", "delivery", "epoch", "headers", "key", "value")
"""The parts of a record, in the order in which they are printed."""

FormattedRecords = native.FormattedRecords
LineSender = native.LineSender
RecordFormat = native.RecordFormat
