"""Every message and record that `pybroker.protocol` declares, found by importing all of its modules."""

from __future__ import annotations

import pkgutil
from functools import cache
from importlib import import_module

import pytest

from pybroker.protocol import header, messages
from pybroker.protocol.messages import group_records, records, share_records, transaction_records
from pybroker.protocol.schema import Message

NOT_KAFKAS = {"RaftMessagesRequest", "RaftMessagesResponse"}
"""Messages that only pybroker nodes exchange."""
OWN_FIELDS = {("EnvelopeResponse", "committed_offset")}
"""Message and name of the tagged fields that Kafka does not define. Kafka's nodes skip them."""


@cache
def declared() -> tuple[type[Message], ...]:
    """Return all declared messages, records and headers, by name."""
    modules = [header]
    for package in (messages, records, group_records, share_records, transaction_records):
        found = pkgutil.iter_modules(package.__path__, f"{package.__name__}.")
        modules += [import_module(module.name) for module in found if not module.ispkg]
    classes = {
        cls
        for module in modules
        for cls in vars(module).values()
        if isinstance(cls, type) and issubclass(cls, Message) and cls is not Message
    }
    return tuple(sorted(classes, key=lambda cls: cls.__name__))


def of_kafka() -> list[type[Message]]:
    """Return the declared messages, records and headers that Kafka also defines, by name."""
    return [cls for cls in declared() if cls.__name__ not in NOT_KAFKAS]


def versions_of(cls: type[Message]) -> range:
    """Return every declared version of a message."""
    return range(cls.__message__.versions.first, cls.__message__.versions.last + 1)


def in_every_version(*kinds: str) -> list[object]:
    """Return parameters (class, version) for every version of every message of `kinds`, by default of all kinds."""
    return [
        pytest.param(cls, version, id=f"{cls.__name__}-v{version}")
        for cls in declared()
        if not kinds or cls.__message__.kind in kinds
        for version in versions_of(cls)
    ]
