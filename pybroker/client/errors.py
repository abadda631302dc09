"""The errors of clients.

    ClientError
    ├── UnreachableError     no broker responded in time; names the servers and the last failure
    ├── UnknownBrokerError   a call names a broker id that no running broker of the cluster has
    ├── ConnectionLostError  a connection ended before the response arrived; names the server
    ├── AuthenticationError  TLS or SASL failed on either side; a retry fails too
    ├── UnservedApiError     the broker serves no version of an API that this client supports
    ├── UnsupportedEndpointTypeError  a call requires brokers, and the servers are controllers
    ├── BrokerError          a broker returned an error code: `.code` is the `ErrorCode`
    │   └── CommitFailedError  offsets were not committed: the committer is not a member of the group (any more)
    ├── NoOffsetError        a partition has no committed offset, and auto.offset.reset=none
    ├── LogTruncationError   consumed records were truncated, and auto.offset.reset=none: `.divergent` has the offsets
    │   └── PartitionTruncatedError  the same of one partition, raised by a fetcher
    ├── NewLeaderError       a partition has a new leader; consumers handle it themselves
    ├── DeliveryError        records were not acknowledged within delivery.timeout.ms
    ├── BufferFullError      buffer.memory stayed full for max.block.ms
    ├── TransactionError     a transactional call failed: `.code` is the broker's `ErrorCode`, or NONE
    │   ├── TransactionAbortableError  the transaction fails: abort it, and begin another with the same producer
    │   ├── TransactionFatalError  no transaction of this producer can succeed: close it, fix the named cause
    │   │   └── ProducerFencedError  a newer producer has the transactional id: close this one
    │   └── TransactionTimeoutError  the outcome of a call is unknown: repeat the call
    ├── TransactionStateError  a call in the wrong state, or a record outside of a transaction: a bug of the program
    ├── TransactionAbortedError  a record was not sent because its transaction was aborted
    ├── RecordError          a record is too large, or a received batch cannot be read
    ├── SerializationError   a serializer or a partitioner of the program failed
    ├── DeserializationError a deserializer of the program failed: `.partition` and `.offset` identify the record
    ├── ArgumentError        an argument of a call has a wrong type; also a TypeError
    ├── SettingError         a setting or an argument has an invalid value; also a ValueError
    ├── LoadUnavailableError  the extension module was built without load generation; explains how to get it
    ├── UnsendableError      a value does not fit its field of the request; also a ValueError
    ├── ConcurrentAccessError  a call while a call of another thread, or task, is inside of the same client
    ├── ForkedError          a client of another process is used after fork; also a RuntimeError
    └── ClosedError          the producer, consumer, fetcher or admin was closed

Every message names the server, topic and value that it concerns.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from pybroker.client.administration.groups import OffsetAndMetadata
from pybroker.client.administration.topics import TopicPartition
from pybroker.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Mapping


class ClientError(Exception):
    """Base of the errors of this package."""


class UnreachableError(ClientError):
    """No broker responded in time."""


class UnknownBrokerError(ClientError):
    """A call names a broker id that the cluster does not have."""


class ConnectionLostError(ClientError):
    """A connection ended before the response arrived."""


class AuthenticationError(ClientError):
    """TLS or SASL failed: one side rejects a certificate, a mechanism or credentials."""


class UnservedApiError(ClientError):
    """Client and broker have no common version of an API."""


class UnsupportedEndpointTypeError(ClientError):
    """A call requires brokers, and the bootstrap servers are controllers (KIP-919)."""

    def __init__(self) -> None:
        # The message of Kafka's AdminClient, which its tools print.
        super().__init__("This Admin API is not yet supported when communicating directly with the controller quorum.")


class BrokerError(ClientError):
    """A broker returned an error code."""

    def __init__(self, text: str, code: int) -> None:
        super().__init__(text)
        self.code = _known(code) or ErrorCode.UNKNOWN_SERVER_ERROR
        self.meaning = text
        """The broker's message, without server and subject; the whole text where the message is unknown."""
        self.broker_message: str | None = None
        """The error message of the response, where it has one."""
        self.final = False
        """A retry gets the same response, although Kafka calls the code retriable."""

    @classmethod
    def of(cls, server: str, what: str, code: int, message: str | None) -> Self:
        """Build the error with a message that names the server and the subject."""
        known = _known(code)
        name = known.name if known is not None else "an error code not known to this client"
        meaning = message or (known.message if known is not None else "no text")
        error = cls(f"{what}: {server} answered {name} ({code}): {meaning}", code)
        error.meaning, error.broker_message = meaning, message or None
        return error


def _known(code: int) -> ErrorCode | None:
    return next((known for known in ErrorCode if known == code), None)


class CommitFailedError(BrokerError):
    """The committing member is not in the group any more, or the group is rebalancing."""


class NoOffsetError(ClientError):
    """A partition has no committed offset and no reset policy."""


class LogTruncationError(ClientError):
    """Records that the consumer, or another of its group, has read were truncated from the log (KIP-320)."""

    def __init__(self, truncated: Mapping[TopicPartition, tuple[OffsetAndMetadata, OffsetAndMetadata | None]]) -> None:
        super().__init__("; ".join(_describe(partition, *found) for partition, found in truncated.items()))
        self.positions = {partition: at for partition, (at, _) in truncated.items()}
        """The position of the consumer, by partition."""
        self.divergent = {partition: parts for partition, (_, parts) in truncated.items()}
        """The first offset from which on the log differs from the consumed records; None where it is unknown."""


def _describe(partition: TopicPartition, at: OffsetAndMetadata, parts: OffsetAndMetadata | None) -> str:
    name = f"{partition.topic}-{partition.partition}"
    where = f"from offset {parts.offset} (leader epoch {parts.leader_epoch}) on" if parts else "at an unknown offset"
    return (
        f"{name}: the log differs {where} from what was read up to position {at.offset} (leader epoch "
        f"{at.leader_epoch}), and auto.offset.reset=none; seek to go on"
    )


class PartitionTruncatedError(LogTruncationError):
    """A broker has truncated records that the fetcher has read from the partition (KIP-320, KIP-595)."""

    def __init__(self, topic: str, partition: int, read: tuple[int, int], parts: tuple[int, int]) -> None:
        """`read` and `parts` are (offset, leader epoch): the position, and where the logs diverge."""
        at, end = (OffsetAndMetadata(offset, leader_epoch=epoch) for offset, epoch in (read, parts))
        super().__init__({TopicPartition(topic, partition): (at, end)})


class LoadUnavailableError(ClientError):
    """The extension module was built without load generation."""


class NewLeaderError(ClientError):
    """A partition (topic, number) has a new leader, with this leader epoch."""

    def __init__(self, topic: str, partition: int, epoch: int) -> None:
        super().__init__(f"{topic}-{partition} has a new leader, in epoch {epoch}")
        self.partition = topic, partition


class DeliveryError(ClientError):
    """Records were not acknowledged in time; it is unknown whether they were written."""


class BufferFullError(ClientError):
    """The producer's memory stayed full for max.block.ms."""


class TransactionError(ClientError):
    """A transactional call failed; the class of the error defines the program's reaction (KIP-1050)."""

    def __init__(self, text: str, code: int = 0) -> None:
        super().__init__(text)
        self.code = _known(code) or ErrorCode.UNKNOWN_SERVER_ERROR
        """The error code of the broker's response; NONE without a response."""


class TransactionAbortableError(TransactionError):
    """The transaction cannot be committed. After `abort_transaction` the producer can begin another."""


class TransactionFatalError(TransactionError):
    """No transaction of this producer can succeed any more."""


class ProducerFencedError(TransactionFatalError):
    """A newer producer has the transactional id, or the coordinator has aborted the transaction after its timeout."""


class TransactionTimeoutError(TransactionError):
    """No response arrived in time, and the call may have had its effect. Repeat the same call to complete it."""


class TransactionStateError(ClientError):
    """A call in the wrong state; nothing has changed."""


class TransactionAbortedError(ClientError):
    """A record of a transaction that was aborted before the record was sent."""


class RecordError(ClientError):
    """A record cannot be sent, or a received batch cannot be read."""


class SerializationError(ClientError):
    """A serializer or a partitioner of the program failed, or returned an invalid value; nothing was sent."""


class DeserializationError(ClientError):
    """A deserializer of the program failed; `seek` behind the record to skip it."""

    def __init__(self, topic: str, partition: int, offset: int, part: str, error: Exception) -> None:
        kind = type(error).__name__
        super().__init__(
            f"topic {topic!r} partition {partition} offset {offset}: the {part}_deserializer failed: {kind}: {error}"
        )
        self.partition = topic, partition
        self.offset = offset


class ArgumentError(ClientError, TypeError):
    """An argument of a call has a wrong type; nothing was done."""


class SettingError(ClientError, ValueError):
    """A setting or an argument has an invalid value."""


class UnsendableError(ClientError, ValueError):
    """A value does not fit its field of the request; the message names field, value and range."""


class ConcurrentAccessError(ClientError):
    """A call while another thread, or another task, is inside of the same client; the first call is not affected."""


class ForkedError(ClientError, RuntimeError):
    """A client is used in a forked child of the process that created it; the child creates its own."""


class ClosedError(ClientError):
    """The client was closed."""
