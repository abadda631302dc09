"""What happens to a transactional producer. Owns the shapes alone."""

from __future__ import annotations

from typing import NamedTuple

from pybroker.client.transaction.verdicts import Request


class InitWanted(NamedTuple):
    """The program calls `init_transactions`."""


class InitAnswered(NamedTuple):
    """An answer to InitProducerId."""

    code: int
    text: str
    """The answer in words, with who gave it."""
    producer_id: int
    epoch: int
    level: int
    """Of `transaction.version`, as the coordinator says it: 2 where a Produce adds its partitions (KIP-890)."""


class Begun(NamedTuple):
    """The program calls `begin_transaction`."""


class Suspended(NamedTuple):
    """The program gives the open transaction to another producer of the same name."""


class Resumed(NamedTuple):
    """The program goes on with a transaction that another producer has suspended."""

    producer_id: int
    epoch: int
    is_implicit: bool
    is_known: bool


class Answered(NamedTuple):
    """An answer about partitions or offsets of the open transaction."""

    request: Request
    code: int
    text: str


class Unanswered(NamedTuple):
    """Partitions or offsets were to be added, and no answer came: they may be in the transaction or not."""

    text: str


class RecordsFailed(NamedTuple):
    """The engine has given up a batch."""

    code: int
    text: str
    fatal: bool
    lost_sequence: bool
    """A broker may wait for its sequence numbers."""


class EndWanted(NamedTuple):
    """The program commits or aborts, or does so again after no answer came in time."""

    commits: bool


class EndAnswered(NamedTuple):
    """An answer to EndTxn; without one where the coordinator knows nothing of the transaction."""

    code: int
    text: str
    producer_id: int
    epoch: int
    """-1 where the answer names none."""
    level: int
    """As in `InitAnswered`; what the next transaction begins with."""
