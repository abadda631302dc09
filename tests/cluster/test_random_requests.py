"""Requests that every client could send, of every API in every version, with values at their bounds and beyond.

Each is answered, in its form, and none with the error that stands for what nobody has thought of. From a seed: a
failure names the request.
"""

from __future__ import annotations

import logging
import random
import struct
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from pybroker.handlers.registry import RegisteredApi, registered_apis
from pybroker.protocol.api_keys import ApiKey
from pybroker.protocol.codec import encode, schema_of
from pybroker.protocol.errors import ErrorCode
from pybroker.protocol.header import flexible
from pybroker.protocol.schema import FieldSpec, fields_of
from pybroker.testing import Broker
from tests.support.wire import Wire, header

REQUESTS = 300
APIS = sorted(registered_apis().values(), key=lambda api: api.key)
TEXTS = (
    *("", " ", ".", "..", "[", "a*", "\x00", "xé", "a" * 300, "0", "1", "-1", "1e3", "NaN", "99999999999999999999"),
    *("t1", "t2", "compact", "__consumer_offsets", "__cluster_metadata", "g1", "g2", "m1", "Stable", "/nowhere"),
    *("consumer", "uniform", "range", "roundrobin", "retention.ms", "cleanup.policy", "segment.bytes"),
    *("min.insync.replicas", "remote.storage.enable", "log.cleaner.threads", "group.consumer.assignors"),
    *("User:x", "user", "client-id", "ip", "SCRAM-SHA-256", "x" * 32_767, "9" * 32_767, "\U0001f600" * 8_191),
    *("\xe4," * 10_922, "\0" * 32_767, "User:" + "'" * 32_762),
)
SERVED: dict[str, str] = {"telemetry.receivers": "last-values"}
"""All APIs are served with it."""
SETTINGS = {
    **SERVED,
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
    "allow.everyone.if.no.acl.found": "true",
}
"""All of a broker with an authorizer, without which the APIs of its entries are refused."""
NUMBERS = {
    "int8": (0, 1, 2, 3, 4, -1, 127, -128),
    "int16": (0, 1, 2, 3, -1, 32767, -32768),
    "int32": (0, 1, 2, 3, 5, -1, -2, 1000, 30000, 2**31 - 1, -(2**31)),
    "int64": (0, 1, 5, -1, -2, -3, -4, -5, -6, 10**15, 2**63 - 1, -(2**63)),
    "uint16": (0, 65535),
    "uint32": (0, 2**32 - 1),
}
BYTES = (b"", b"\0\0", bytes(range(20)), b"\0\1\0\0\0\1\0\2t1\xff\xff\xff\xff")


class Maker:
    """Makes requests from a seed."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.topic_ids = [bytes(16)]

    def request(self) -> tuple[RegisteredApi, int, Any]:
        api = self.random.choice(APIS)
        version = self.random.randint(api.min_version, api.max_version)
        return api, version, self.struct(api.request_type, version)

    def struct(self, kind: Any, version: int) -> Any:
        shown = [one for one in fields_of(kind) if version in one.versions or version in one.tagged]
        return kind(**{one.name: self.value(one, version) for one in shown})

    def value(self, one: FieldSpec, version: int) -> Any:
        if version in one.nullable and self.random.random() < 0.12:
            return None
        if one.array:
            return [self.item(one, version) for _ in range(self.random.choice((0, 1, 1, 2, 3)))]
        return self.item(one, version)

    def item(self, one: FieldSpec, version: int) -> Any:
        kind, choose = one.type.removeprefix("[]"), self.random.choice
        if one.struct is not None:
            return self.struct(one.struct, version)
        if one.name == "acks":
            return choose((-1, 1, 2))  # Nobody waits for an answer to a Produce with 0.
        if one.name in ("num_partitions", "count"):
            return choose((-2, -1, 0, 1, 2, 3))
        if one.name.endswith("_ms"):
            return choose((-1, 0, 1, 50))  # A request that has to wait is answered soon.
        if kind in NUMBERS:
            return choose(NUMBERS[kind])
        made = {
            "string": lambda: choose(TEXTS),
            "bool": lambda: choose((True, False)),
            "uuid": lambda: choose((*self.topic_ids, self.random.randbytes(16))),
            "float64": lambda: choose((0.0, -1.0, float("nan"))),
        }
        return made.get(kind, lambda: choose(BYTES))()


def errors_of(response: Any) -> Iterator[int]:
    """All error codes in an answer."""
    for one in fields_of(type(response)):
        value = getattr(response, one.name)
        if one.name == "error_code":
            yield int(value)
        elif one.struct is not None and value is not None:
            for inner in value if isinstance(value, list) else [value]:
                yield from errors_of(inner)


def decoded(api: RegisteredApi, version: int, frame: bytes) -> Any:
    kind = getattr(sys.modules[api.request_type.__module__], f"{api.name}Response")
    start = 5 if flexible(api.key, version) and api.key != ApiKey.API_VERSIONS else 4
    response, size = schema_of(kind).decode(frame, version, start)
    assert start + size == len(frame)
    return response


@pytest.mark.parametrize(("seed", "properties"), [(1, SERVED), (2, SERVED), (3, SERVED), (4, SETTINGS), (5, SETTINGS)])
def test_every_request_is_answered_with_an_error_of_its_own_or_none(
    seed: int, properties: dict[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    maker, seen = Maker(seed), set()
    with (
        caplog.at_level(logging.ERROR),
        Broker(
            num_partitions=2, offsets_topic_num_partitions=2, group_min_session_timeout_ms=1, properties=properties
        ) as broker,
        Wire(broker.bootstrap_servers) as wire,
    ):
        topics = [{"name": name, "num_partitions": 2, "replication_factor": 1} for name in ("t1", "t2", "compact")]
        created = wire.call("CreateTopics", 7, topics=topics, timeout_ms=10_000).topics
        maker.topic_ids += [topic.topic_id.bytes for topic in created]
        for number in range(REQUESTS):
            api, version, request = maker.request()
            what = f"request {number}: {api.name} version {version}: {request!r:.9000}"
            frame = header(api.key, version, number, flexible=flexible(api.key, version)) + encode(request, version)
            wire.send_frame(frame)
            try:
                response = wire.read_frame()
            except (ConnectionError, TimeoutError) as error:
                raise AssertionError(f"{what} is not answered") from error
            assert response[:4] == struct.pack(">i", number), what
            errors = set(errors_of(decoded(api, version, response)))
            assert ErrorCode.UNKNOWN_SERVER_ERROR not in errors, what
            seen |= errors
    assert ErrorCode.NONE in seen
    assert len(seen) > 10, "requests reach what decides about them"
    assert [record for record in caplog.records if record.exc_info is not None] == []
