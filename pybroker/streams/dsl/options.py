"""The keyword arguments of the DSL, which Kafka passes as `Consumed`, `Produced`, `Materialized` and so on.

Each TypedDict has the name of Kafka's class. A type checker verifies the keywords of a call, and `checked` does at run
time what a program without a type checker needs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TextIO, TypedDict

from pybroker.streams.errors import TopologyError
from pybroker.streams.serdes import AnySerde
from pybroker.streams.timestamps import TimestampExtractor
from pybroker.streams.topology.nodes import Partitioner
from pybroker.streams.windows import Duration

LONGEST_NAME = 249


class Named(TypedDict, total=False):
    """The name of the operation's node."""

    name: str | None


class Serdes(TypedDict, total=False):
    """The serdes of keys and values. None stands for those of the stream, or the application's defaults."""

    key_serde: AnySerde
    value_serde: AnySerde


class Consumed(Named, Serdes, total=False):
    """How a topic is read."""

    timestamp_extractor: TimestampExtractor | None
    offset_reset: str | None
    """`earliest`, `latest` or `none`."""


class Produced(Named, Serdes, total=False):
    """How a topic is written."""

    partitioner: Partitioner | None


class Grouped(Named, Serdes, total=False):
    """How a repartition topic before an aggregation is named and written."""


class Repartitioned(Produced, total=False):
    """How a repartition topic is named, partitioned and written."""

    partitions: int | None


class Materialized(Serdes, total=False):
    """The state store of a table."""

    store: str | None
    """The name of the store. A store with a name can be queried."""
    caching: bool
    """Whether updates of one key are combined until a commit or until the cache is full. True by default."""
    logging: bool | Mapping[str, str]
    """Whether the store has a changelog topic, or settings of this topic. True by default."""
    retention: Duration | None
    """How long windows are kept. The size of the window plus the grace by default."""
    history_retention: Duration | None
    """Make the store versioned, and keep old values of each key this long (KIP-889). It needs `store`."""


class NamedMaterialized(Named, Materialized, total=False):
    """The name of an operation's node, and the state store of its result."""


class ConsumedMaterialized(Consumed, Materialized, total=False):
    """How a topic is read, and the state store of the table."""


class WithKey(Named, total=False):
    """Whether the mapper receives the key before the value."""

    with_key: bool


class WithKeyMaterialized(NamedMaterialized, total=False):
    """Whether the mapper receives the key before the value, and the state store of the result."""

    with_key: bool


class StreamJoined(Named, Serdes, total=False):
    """The names, stores and serdes of a join of two streams."""

    with_key: bool
    """Whether the joiner receives the key before the values."""
    other_value_serde: AnySerde
    store: str | None
    """The base of the names of the two stores."""
    logging: bool | Mapping[str, str]
    grace: Duration | None
    """Only for a versioned table: how long a record waits for late updates of the table."""


class Joined(Named, Serdes, total=False):
    """The name and serdes of a join of a stream with a table."""

    with_key: bool
    grace: Duration | None
    """How long a record waits for late updates of a versioned table."""


class TableJoined(NamedMaterialized, total=False):
    """The names, partitioners and the store of a join on a foreign key."""

    with_key: bool
    """Whether the extractor of the foreign key receives the key before the value."""

    partitioner: Partitioner | None
    other_partitioner: Partitioner | None


class Printed(Named, total=False):
    """The text that is printed for each record, and its destination."""

    file: TextIO | None
    """Where `print` writes. Standard output by default."""

    label: str | None
    """The label in brackets. The name of the stream by default."""
    mapper: Callable[[Any, Any], str] | None
    """`(key, value) -> text`."""


class Branched(Named, total=False):
    """The name of a branch, and what is done with it."""

    with_function: Callable[[Any], Any] | None
    """Receives the stream of the branch, and returns the stream to store under the branch's name, or None."""
    with_consumer: Callable[[Any], object] | None
    """Receives the stream of the branch, which is not stored."""


def checked(options: Mapping[str, Any], allowed: Any, operation: str) -> dict[str, Any]:
    """Return the options of an operation that are set.

    Args:
        options: the keyword arguments of a call.
        allowed: the TypedDict of the operation.
        operation: the name of the method, for the message.

    Raises:
        TopologyError: an option is unknown, or a name is not valid.
    """
    known = allowed.__required_keys__ | allowed.__optional_keys__
    for option in options:
        if option not in known:
            raise TopologyError(f"unknown option {option!r} of {operation}: expected one of {', '.join(sorted(known))}")
    for option in ("name", "store"):
        if options.get(option) is not None:
            check_name(options[option], option, operation)
    return {option: value for option, value in options.items() if value is not None}


def check_name(name: str, option: str, operation: str) -> None:
    """Raise TopologyError if a name cannot be part of a topic name (`Named.validate`)."""
    legal = all(character.isascii() and (character.isalnum() or character in "._-") for character in name)
    if not name or name in (".", "..") or len(name) > LONGEST_NAME or not legal:
        raise TopologyError(
            f"invalid {option} {name!r} of {operation}: expected 1 to {LONGEST_NAME} ASCII letters, digits, '.', '_' "
            "and '-', and neither '.' nor '..'"
        )
