"""Events of a transactional producer. Owns the types only."""

from __future__ import annotations

from typing import NamedTuple

from pybroker.client.transaction.decisions import Request


class InitWanted(NamedTuple):
    """The program calls `init_transactions`."""


class InitCompleted(NamedTuple):
    """A response to InitProducerId."""

    code: int
    text: str
    """The error message, with the server."""
    producer_id: int
    epoch: int
    level: int
    """The coordinator's finalized level of `transaction.version`; from 2 on a Produce adds its partitions (KIP-890)."""


class Begun(NamedTuple):
    """The program calls `begin_transaction`."""


class Suspended(NamedTuple):
    """The program releases the open transaction to another producer of the same transactional id."""


class Resumed(NamedTuple):
    """The program takes over a transaction that another producer has suspended."""

    producer_id: int
    epoch: int
    is_implicit: bool
    is_known: bool


class Completed(NamedTuple):
    """A response about partitions or offsets of the open transaction."""

    request: Request
    code: int
    text: str


class Unanswered(NamedTuple):
    """No response to a request that adds partitions or offsets: they may be in the transaction or not."""

    text: str


class RecordsFailed(NamedTuple):
    """The engine has failed a batch."""

    code: int
    text: str
    fatal: bool
    lost_sequence: bool
    """A broker may expect the sequence numbers of the batch."""


class EndWanted(NamedTuple):
    """The program commits or aborts, or repeats that after no response arrived in time."""

    commits: bool


class EndCompleted(NamedTuple):
    """A response to EndTxn; or none was sent, because the coordinator does not know the transaction."""

    code: int
    text: str
    producer_id: int
    epoch: int
    """-1 where the response contains none."""
    level: int
    """As in `InitCompleted`; the level of the next transaction."""
