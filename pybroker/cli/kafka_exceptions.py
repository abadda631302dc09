"""How Kafka's tools put a broker's refusal in words: the name of a Java exception and its text.

Owns those names and texts, as far as the group tools print them; scripts look for them.
"""

from __future__ import annotations

from pybroker.client.errors import BrokerError, ClientError
from pybroker.protocol.errors import ErrorCode

_CLASSES = {
    ErrorCode.KAFKA_STORAGE_ERROR: "KafkaStorageException",
    ErrorCode.NON_EMPTY_GROUP: "GroupNotEmptyException",
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS: "CoordinatorLoadInProgressException",
    ErrorCode.UNKNOWN_SERVER_ERROR: "UnknownServerException",
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: "TopicAuthorizationException",
    ErrorCode.GROUP_AUTHORIZATION_FAILED: "GroupAuthorizationException",
    ErrorCode.REQUEST_TIMED_OUT: "TimeoutException",
}
"""Where the class is not named as the error code is."""
_MESSAGES = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: "This server does not host this topic-partition.",
    ErrorCode.COORDINATOR_NOT_AVAILABLE: "The coordinator is not available.",
    ErrorCode.NOT_COORDINATOR: "This is not the correct coordinator.",
    ErrorCode.INVALID_GROUP_ID: "The group id is invalid.",
    ErrorCode.UNKNOWN_MEMBER_ID: "The coordinator is not aware of this member.",
    ErrorCode.NON_EMPTY_GROUP: "The group is not empty.",
    ErrorCode.GROUP_ID_NOT_FOUND: "The group id does not exist.",
    ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC: (
        "Deleting offsets of a topic is forbidden while the consumer group is actively subscribed to it."
    ),
}


def java_message(code: ErrorCode) -> str:
    """The sentence of Kafka's clients for an error code."""
    return _MESSAGES.get(code, code.message)


def java_text(error: ClientError, message: str | None = None) -> str:
    """What Java prints of the exception that its client would raise; other failures in their own words."""
    if not isinstance(error, BrokerError):
        return str(error)
    return named(error.code, message or java_message(error.code))


def java_class(code: ErrorCode) -> str:
    """The exception of Kafka's clients for an error code."""
    name = _CLASSES.get(code) or "".join(map(str.capitalize, code.name.split("_"))) + "Exception"
    return f"org.apache.kafka.common.errors.{name}"


def named(code: ErrorCode, message: str) -> str:
    """An exception's class and its text."""
    return f"{java_class(code)}: {message}"
