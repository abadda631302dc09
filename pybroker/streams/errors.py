"""The errors of `pybroker.streams`.

StreamsError
├── TopologyError            a topology that cannot be built
├── SerializationError       a key or a value that its serde cannot convert
├── ProcessorStateError      a state store that cannot be opened, read or written
└── InvalidStateStoreError   a query to a store that does not exist or is closed
"""

from __future__ import annotations


class StreamsError(Exception):
    """The base class of all errors of `pybroker.streams`."""


class TopologyError(StreamsError):
    """A topology is invalid: the message names the node, store or topic, and what is expected."""


class SerializationError(StreamsError):
    """A serde cannot convert a key or a value."""


class ProcessorStateError(StreamsError):
    """A state store cannot be opened, read or written."""


class InvalidStateStoreError(StreamsError):
    """A queried state store does not exist, has another type, or is closed."""
