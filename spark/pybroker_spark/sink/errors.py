"""What a streaming write can fail with, beside what the client raises.

    SinkError
    ├── TargetLostError   a topic, or records of it, are missing that this query wrote or has to check
    ├── ReplayError       an attempt has other rows than the one that it repeats
    ├── SplitError        a batch is repeated by other tasks than those that began it
    ├── InterferenceError the log does not hold what this attempt wrote: an older one is still writing
    └── LedgerError       the ledger cannot be read

Each names the query, the batch and, where there is one, topic, partition and offset. Spark tries the task again after
any of them; what is written twice by that is subtracted, so trying again never harms.
"""

from __future__ import annotations


class SinkError(Exception):
    """Base of what this package raises."""


class TargetLostError(SinkError):
    """A topic or records of it are gone."""


class ReplayError(SinkError):
    """The rows of a batch are not what they were at first."""


class SplitError(SinkError):
    """A batch is split differently from how it was at first."""


class InterferenceError(SinkError):
    """Something else wrote under this attempt's identity."""


class LedgerError(SinkError):
    """The ledger holds what this version cannot read, or does not answer."""
