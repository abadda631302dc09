"""Our bytes are those of two independent implementations: `kio` and kafka-python's `kafka.protocol`.

Each peer reads a message of ours, must have understood every field as we meant it, and must write the same bytes again.
Messages and versions that a peer does not know are left out where the parameters are made.
"""

from __future__ import annotations

import io
from datetime import datetime, timedelta
from enum import Enum
from functools import cache
from importlib import import_module
from typing import Any
from uuid import UUID

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pybroker.protocol.codec import encode
from pybroker.protocol.messages.api_versions import ApiVersionsResponse
from pybroker.protocol.schema import FieldSpec, Message, Struct, fields_of
from tests.property.protocol.strategies import messages
from tests.support.declarations import OWN_FIELDS, of_kafka, versions_of

SOME = settings(
    max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)

KIO_NAMES = {
    "acceptable_recovery_lag_legacy": "acceptable_recovery_lag",
    "enable_2pc": "enable2_pc",
    "id": "id_",
    "kraft_version": "k_raft_version",
    "kraft_version_feature": "k_raft_version_feature",
    "type": "type_",
}
"""Where kio spells a field another way; beyond these it drops `_ms` from durations."""

KAFKA_PYTHON_NAMES = {
    "enable_2pc": "enable2_pc",
    "cluster_authorized_operations": "authorized_operations",
    "topic_authorized_operations": "authorized_operations",
}
"""Where kafka-python spells a field another way; its authorized operations are the set of the bits."""


NOT_IN_KAFKA_PYTHON = (
    "AddRaftVoter",
    "AllocateProducerIds",
    "AlterPartitionRequest",
    "AlterPartitionResponse",
    "AssignReplicasToDirs",
    "BrokerHeartbeat",
    "BrokerRegistration",
    "ControllerRegistration",
    "CreateDelegationToken",
    "DescribeDelegationToken",
    "Envelope",
    "ExpireDelegationToken",
    "FetchSnapshot",
    "GetTelemetrySubscriptions",
    "PushTelemetry",
    "RemoveRaftVoter",
    "RenewDelegationToken",
    "StreamsGroup",
    "UnregisterBroker",
    "UpdateRaftVoter",
)
"""What the names of messages begin with that kafka-python lacks: its clients have no use for them, or no calls yet."""


@cache
def _kio_class(cls: type[Message], version: int) -> Any:
    """The class that kio has for a message in a version; `None` where it has none."""
    package = "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in cls.__name__).removeprefix("_")
    kind = cls.__message__.kind
    package = package.removesuffix(f"_{kind}") if kind in ("request", "response") else package
    try:
        module = import_module(f"kio.schema.{package}.v{version}.{kind}")
    except ModuleNotFoundError:
        return None
    return getattr(module, cls.__name__)


@cache
def _kafka_python_class(cls: type[Message], version: int) -> Any:
    """The class that kafka-python has for a message; `None` where it has none, or not in that version.

    Its classes of what members of a group send each other begin with the version, which here is the caller's.
    """
    if cls.__name__.startswith("ConsumerProtocol"):
        return None
    for group in ("metadata", "consumer", "producer", "admin", "sasl"):
        peer = getattr(import_module(f"kafka.protocol.{group}"), cls.__name__, None)
        if peer is not None:
            return peer if version <= peer.max_version else None
    return None


def _known_by(peer: Any) -> list[object]:
    return [
        pytest.param(cls, version, id=f"{cls.__name__}-v{version}")
        for cls in of_kafka()
        for version in versions_of(cls)
        if peer(cls, version) is not None
    ]


@pytest.mark.parametrize(("cls", "version"), _known_by(_kio_class))
@SOME
@given(data=st.data())
def test_bytes_are_those_of_kio(cls: type[Message], version: int, data: st.DataObject) -> None:
    from kio.serial import entity_reader, entity_writer

    message = data.draw(messages(cls, version, for_peers=True))
    for field in fields_of(cls):
        if (cls.__name__, field.name) in OWN_FIELDS:
            setattr(message, field.name, field.default)
    encoded = encode(message, version)
    peer = _kio_class(cls, version)
    theirs, size = entity_reader(peer)(encoded, 0)
    assert size == len(encoded)
    _same_values(message, theirs, version)
    again = io.BytesIO()
    entity_writer(peer)(again, theirs)
    assert again.getvalue() == encoded


@pytest.mark.parametrize(("cls", "version"), _known_by(_kafka_python_class))
@SOME
@given(data=st.data())
def test_bytes_are_those_of_kafka_python(cls: type[Message], version: int, data: st.DataObject) -> None:
    message = data.draw(messages(cls, version))
    # With an error kafka-python reads the answer to ApiVersions as version 0, as a client should.
    if isinstance(message, ApiVersionsResponse):
        message.error_code = 0
    encoded = encode(message, version)
    peer = _kafka_python_class(cls, version)
    _same_values(message, peer.decode(encoded, version=version), version)
    assert bytes(_in_kafka_python(message, peer, version).encode(version=version)) == encoded


def _same_values(ours: Struct, theirs: Any, version: int) -> None:
    for field in fields_of(type(ours)):
        if version in field.versions and (type(ours).__name__, field.name) not in OWN_FIELDS:
            value = getattr(ours, field.name)
            peers = _attribute(theirs, field.name)
            where = f"{type(ours).__name__}.{field.name}"
            if field.struct is None or value is None:
                assert (peers if value is None else _plain(peers, field)) == value, where
            elif field.array:
                assert len(peers) == len(value), where
                for one, other in zip(value, peers, strict=True):
                    _same_values(one, other, version)
            else:
                _same_values(value, peers, version)


def _in_kafka_python(ours: Struct, peer: Any, version: int) -> Any:
    """Make kafka-python's object of a message of ours; it writes each tagged field that it is given."""
    reported = {}
    for field in fields_of(type(ours)):
        value = getattr(ours, field.name)
        if version not in field.versions or (version in field.tagged and value == field.default):
            continue
        name = field.name if field.name in peer._struct.fields else KAFKA_PYTHON_NAMES[field.name]
        if field.struct is not None and value is not None:
            inner = peer._struct.fields[name].data_class
            many = [_in_kafka_python(one, inner, version) for one in (value if field.array else [value])]
            value = many if field.array else many[0]
        elif field.type == "uuid":
            value = UUID(bytes=value)
        elif name == "authorized_operations":
            value = {bit for bit in range(32) if value >> bit & 1}
        reported[name] = value
    return peer(version=version, **reported)


def _attribute(theirs: Any, name: str) -> Any:
    for spelling in (name, KIO_NAMES.get(name), KAFKA_PYTHON_NAMES.get(name), name.removesuffix("_ms")):
        if spelling is not None and hasattr(theirs, spelling):
            return getattr(theirs, spelling)
    raise AssertionError(f"{type(theirs).__name__} has no {name}")


def _plain(value: Any, field: FieldSpec) -> Any:
    """A peer's value as we have it: milliseconds for times, numbers for enumerations, bytes for uuids."""
    if isinstance(value, list | tuple):
        return [_plain(element, field) for element in value]
    if isinstance(value, timedelta):
        return round(value / timedelta(milliseconds=1))
    if isinstance(value, datetime):
        return round(value.timestamp() * 1000)
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, UUID):
        return value.bytes
    if value is None and field.type.endswith("uuid"):
        return bytes(16)
    if field.name.endswith("authorized_operations"):
        return _signed(
            1 << 31 if value is None else value if isinstance(value, int) else sum(1 << bit for bit in value)
        )
    if value is None and field.type == "int64":
        return -1
    return bytes(value) if isinstance(value, memoryview | bytearray) else value


def _signed(number: int) -> int:
    return number - (1 << 32) if number >> 31 == 1 else number


def test_both_peers_know_what_is_declared() -> None:
    """So that a renamed module of a peer does not silence this file; kafka-python has the classic groups alone."""
    wanted = {cls.__name__ for cls in of_kafka() if cls.__message__.kind in ("request", "response")}
    classic = {name for name in wanted if not name.startswith(("ConsumerGroup", *NOT_IN_KAFKA_PYTHON))}
    for known, expected in ((_known_by(_kio_class), wanted), (_known_by(_kafka_python_class), classic)):
        found = {parameter.values[0].__name__ for parameter in known}  # type: ignore[attr-defined]
        assert expected - found == set(), "not compared with the peer"
