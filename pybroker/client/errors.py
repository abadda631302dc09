"""What a client can fail with.

    ClientError
    ├── UnreachableError     no broker answered in time; names the servers and the last failure
    ├── UnknownBrokerError   a call names a broker by an id that no running broker of the cluster has
    ├── ConnectionLostError  a connection ended while an answer was awaited; names the server
    ├── AuthenticationError  a broker and this client do not believe each other; another try ends alike
    ├── UnservedApiError     the broker serves no version of an API that this client speaks
    ├── ControllersAskedError  a call asks brokers, and the servers are controllers
    ├── BrokerError          a broker answered with an error code: `.code` is the `ErrorCode`
    │   └── CommitFailedError  offsets were not committed, because the committer is not, or not any more, who it says
    ├── NoOffsetError        a partition has no committed offset, and auto.offset.reset=none
    ├── LogTruncationError   what was read was cut from the log, and auto.offset.reset=none: `.divergent` says where
    │   └── PartitionTruncatedError  the same of one partition, as a fetcher meets it
    ├── NewLeaderError       a partition has a new leader; consumers see to it themselves
    ├── DeliveryError        records were not acknowledged within delivery.timeout.ms
    ├── BufferFullError      buffer.memory stayed full for max.block.ms
    ├── TransactionError     something of a transaction failed: `.code` is the broker's `ErrorCode`, or NONE
    │   ├── TransactionAbortableError  this transaction fails: abort it, and begin another with the same producer
    │   ├── TransactionFatalError  no transaction of this producer succeeds any more: close it, mend what the text names
    │   │   └── ProducerFencedError  a newer producer has the transactional id: close this one
    │   └── TransactionTimeoutError  it is not known how a call ended: the same call again goes on with it
    ├── TransactionStateError  a call out of its order, a record outside of a transaction: the program is to be mended
    ├── TransactionAbortedError  a record was not sent because its transaction was aborted
    ├── RecordError          a record is too large, or a received batch cannot be read
    ├── SerializationError   a serializer or a partitioner of the program's failed
    ├── DeserializationError a deserializer of the program's failed: `.partition` and `.offset` say at which record
    ├── ArgumentError        an argument of a call is of a wrong type; also a TypeError
    ├── SettingError         a setting's or an argument's value cannot work; also a ValueError
    ├── LoadUnavailableError  the extension module was built without load generation; says how to get one with it
    ├── UnsendableError      a value does not fit the field of the request that it is for; also a ValueError
    ├── ConcurrentAccessError  a call while a call of another thread, or task, is inside of the same client
    ├── ForkedError          a client of another process is used after fork; also a RuntimeError
    └── ClosedError          the producer, consumer, fetcher or admin was closed

Every message says which server, topic and value it is about.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from pybroker.client.administration.groups import OffsetAndMetadata
from pybroker.client.administration.topics import TopicPartition
from pybroker.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Mapping


class ClientError(Exception):
    """Base of what this package raises."""


class UnreachableError(ClientError):
    """No broker answered in time."""


class UnknownBrokerError(ClientError):
    """A call names a broker that the cluster has not."""


class ConnectionLostError(ClientError):
    """A connection ended while an answer was awaited."""


class AuthenticationError(ClientError):
    """TLS or SASL failed: a certificate, a mechanism or credentials are refused by one side."""


class UnservedApiError(ClientError):
    """No version of an API is spoken by both sides."""


class ControllersAskedError(ClientError):
    """A call asks brokers, and the bootstrap servers are controllers (KIP-919)."""

    def __init__(self) -> None:
        # The words of Kafka's AdminClient, which its tools print.
        super().__init__("This Admin API is not yet supported when communicating directly with the controller quorum.")


class BrokerError(ClientError):
    """A broker answered with an error code."""

    def __init__(self, text: str, code: int) -> None:
        super().__init__(text)
        self.code = _known(code) or ErrorCode.UNKNOWN_SERVER_ERROR
        self.meaning = text
        """The broker's own words, without server and what was asked for; the whole text where they are not known."""
        self.broker_message: str | None = None
        """The words that came with the error code, where any came."""
        self.final = False
        """Another try gets the same answer, although Kafka calls the code retriable."""

    @classmethod
    def of(cls, server: str, what: str, code: int, message: str | None) -> Self:
        """Say which server answered what about which thing."""
        known = _known(code)
        name = known.name if known is not None else "an error code not known to this client"
        meaning = message or (known.message if known is not None else "no text")
        error = cls(f"{what}: {server} answered {name} ({code}): {meaning}", code)
        error.meaning, error.broker_message = meaning, message or None
        return error


def _known(code: int) -> ErrorCode | None:
    return next((known for known in ErrorCode if known == code), None)


class CommitFailedError(BrokerError):
    """The member that committed has lost its place in the group, or the group is rebalancing."""


class NoOffsetError(ClientError):
    """Nothing says where reading begins."""


class LogTruncationError(ClientError):
    """What a consumer has read, or another one of its group has, is in the log no longer (KIP-320)."""

    def __init__(self, truncated: Mapping[TopicPartition, tuple[OffsetAndMetadata, OffsetAndMetadata | None]]) -> None:
        super().__init__("; ".join(_describe(partition, *found) for partition, found in truncated.items()))
        self.positions = {partition: at for partition, (at, _) in truncated.items()}
        """Where the consumer stood."""
        self.divergent = {partition: parts for partition, (_, parts) in truncated.items()}
        """The first offset from which on the log differs from what was read; None where that is not known."""


def _describe(partition: TopicPartition, at: OffsetAndMetadata, parts: OffsetAndMetadata | None) -> str:
    name = f"{partition.topic}-{partition.partition}"
    where = f"from offset {parts.offset} (leader epoch {parts.leader_epoch}) on" if parts else "at an unknown offset"
    return (
        f"{name}: the log differs {where} from what was read up to position {at.offset} (leader epoch "
        f"{at.leader_epoch}), and auto.offset.reset=none; seek to go on"
    )


class PartitionTruncatedError(LogTruncationError):
    """The broker that a fetcher read a partition from has in its log no longer what was read (KIP-320, KIP-595)."""

    def __init__(self, topic: str, partition: int, read: tuple[int, int], parts: tuple[int, int]) -> None:
        """`read` and `parts` are (offset, leader epoch): where reading stood, and where the logs part."""
        at, end = (OffsetAndMetadata(offset, leader_epoch=epoch) for offset, epoch in (read, parts))
        super().__init__({TopicPartition(topic, partition): (at, end)})


class LoadUnavailableError(ClientError):
    """The extension module was built without load generation."""


class NewLeaderError(ClientError):
    """A partition (topic, number) has a new leader, of an epoch."""

    def __init__(self, topic: str, partition: int, epoch: int) -> None:
        super().__init__(f"{topic}-{partition} has a new leader, in epoch {epoch}")
        self.partition = topic, partition


class DeliveryError(ClientError):
    """Records were not acknowledged in time; whether they were written is not known."""


class BufferFullError(ClientError):
    """The producer's memory stayed full."""


class TransactionError(ClientError):
    """Something of a transaction failed; its kind says what the program does (KIP-1050)."""

    def __init__(self, text: str, code: int = 0) -> None:
        super().__init__(text)
        self.code = _known(code) or ErrorCode.UNKNOWN_SERVER_ERROR
        """What the broker answered; NONE where no answer is the reason."""


class TransactionAbortableError(TransactionError):
    """This transaction cannot be committed; after `abort_transaction` the producer begins another."""


class TransactionFatalError(TransactionError):
    """No transaction of this producer can succeed any more."""


class ProducerFencedError(TransactionFatalError):
    """A newer producer has the transactional id, or the coordinator has aborted a transaction that took too long."""


class TransactionTimeoutError(TransactionError):
    """No answer came in time, and the call may have had its effect; the same call again goes on with it."""


class TransactionStateError(ClientError):
    """A call out of its order; nothing has changed."""


class TransactionAbortedError(ClientError):
    """A record of a transaction that was aborted before it was sent."""


class RecordError(ClientError):
    """A record cannot be sent, or a received batch cannot be read."""


class SerializationError(ClientError):
    """A serializer or a partitioner of the program's failed, or returned what cannot be sent; nothing was sent."""


class DeserializationError(ClientError):
    """A deserializer of the program's failed; `seek` behind the record to go on without it."""

    def __init__(self, topic: str, partition: int, offset: int, part: str, error: Exception) -> None:
        kind = type(error).__name__
        super().__init__(
            f"topic {topic!r} partition {partition} offset {offset}: the {part}_deserializer failed: {kind}: {error}"
        )
        self.partition = topic, partition
        self.offset = offset


class ArgumentError(ClientError, TypeError):
    """An argument of a call is of a wrong type; nothing was done."""


class SettingError(ClientError, ValueError):
    """A setting's or an argument's value cannot work."""


class UnsendableError(ClientError, ValueError):
    """A value does not fit the field of the request that it is for; the text names field, value and range."""


class ConcurrentAccessError(ClientError):
    """A call while another thread, or another task, is inside of the same client; the first call is not disturbed."""


class ForkedError(ClientError, RuntimeError):
    """A client is used in a forked child of the process that created it; the child creates its own."""


class ClosedError(ClientError):
    """The object was closed."""
