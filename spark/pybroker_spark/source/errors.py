"""What the data source can fail with, beside what the client raises.

    SourceError
    ├── OptionError     an option, schema or mode that cannot work; also a ValueError
    ├── DataLossError   records that were to be read are gone; names topic, partition and offsets
    └── ReadTimeoutError  a partition gave nothing for kafkaConsumer.pollTimeoutMs; names topic, partition and offset

Spark hands the text on as it is, so each says which option or which topic, partition and offset it is about, and what
would be right.
"""

from __future__ import annotations


class SourceError(Exception):
    """Base of what this package raises."""


class OptionError(SourceError, ValueError):
    """An option, a schema or a mode cannot work."""


class DataLossError(SourceError):
    """Records that were to be read are gone, and `failOnDataLoss` is true."""


class ReadTimeoutError(SourceError):
    """A partition gave nothing in time."""
