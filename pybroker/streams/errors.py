"""The errors of `pybroker.streams`.

StreamsError
├── TopologyError            a topology that cannot be built
├── MissingSourceTopicError  a source topic does not exist
├── SerializationError       a key or a value that its serde cannot convert
├── ProcessorStateError      a state store that cannot be opened, read or written
├── InvalidStateStoreError   a query to a store that does not exist or is closed
├── DirectoryLockedError     a state directory that another instance or thread uses
├── TaskCorruptedError       the state of a task cannot be continued: it is restored from the changelogs
└── TaskMigratedError        a task belongs to another member now
"""

from __future__ import annotations


class StreamsError(Exception):
    """The base class of all errors of `pybroker.streams`."""


class TopologyError(StreamsError):
    """A topology is invalid: the message names the node, store or topic, and what is expected."""


class MissingSourceTopicError(StreamsError):
    """A source topic of a running application does not exist."""


class SerializationError(StreamsError):
    """A serde cannot convert a key or a value."""


class ProcessorStateError(StreamsError):
    """A state store cannot be opened, read or written."""


class InvalidStateStoreError(StreamsError):
    """A queried state store does not exist, has another type, or is closed."""


class DirectoryLockedError(StreamsError):
    """Another process, or another thread of this process, has locked a state directory."""


class TaskCorruptedError(StreamsError):
    """The state of a task does not fit its changelogs, or is damaged. It is deleted and restored."""

    def __init__(self, message: str, task_id: str) -> None:
        super().__init__(message)
        self.task_id = task_id


class TaskMigratedError(StreamsError):
    """The member was removed from its group, or its producer was fenced: its tasks belong to others."""


RECOVERED = (TaskCorruptedError, TaskMigratedError)
"""Errors after which a thread creates its tasks again. No exception handler decides about them."""
