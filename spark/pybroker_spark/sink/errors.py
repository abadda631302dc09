"""The errors of streaming writes, beside the client's.

    SinkError
    ├── TargetLostError   a topic, or records of it, that this query wrote or must check are missing
    ├── ReplayError       an attempt has other rows than the one that it repeats
    ├── SplitError        a batch is repeated by other tasks than those that began it
    ├── InterferenceError the log does not contain what this attempt wrote: an older one is still writing
    └── LedgerError       the ledger cannot be read

Each message has the query, the batch and, where there is one, topic, partition and offset. Spark retries the task
after any of them; rows in the log are not written again, so a retry is always safe.
"""

from __future__ import annotations


class SinkError(Exception):
    """Base of what this package raises."""


class TargetLostError(SinkError):
    """A topic or its records are missing."""


class ReplayError(SinkError):
    """The rows of a batch differ from those of its first attempt."""


class SplitError(SinkError):
    """The tasks of a batch differ from those of its first attempt."""


class InterferenceError(SinkError):
    """Another producer wrote with this attempt's producer id."""


class LedgerError(SinkError):
    """The ledger contains an entry that this version cannot read, or is not available."""
