"""The errors of the data source, beside the client's.

    SourceError
    ├── OptionError     an invalid option, schema or mode; also a ValueError
    ├── DataLossError   records to read were deleted; names topic, partition and offsets
    └── ReadTimeoutError  no record for kafkaConsumer.pollTimeoutMs; names topic, partition and offset

Spark displays the message unchanged, so each contains the option, or the topic, partition and offset, and the
expected value.
"""

from __future__ import annotations


class SourceError(Exception):
    """Base of what this package raises."""


class OptionError(SourceError, ValueError):
    """An option, a schema or a mode is invalid."""


class DataLossError(SourceError):
    """Records to read were deleted, and `failOnDataLoss` is true."""


class ReadTimeoutError(SourceError):
    """A partition returned nothing before the timeout."""
