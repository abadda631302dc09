"""The answers to clients that ask and push, by a clock that is set."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from pybroker.metadata.delta import MetadataDelta
from pybroker.metadata.image import CLIENT_METRICS_RESOURCE, EMPTY_IMAGE, MetadataImage
from pybroker.protocol.errors import ErrorCode
from pybroker.protocol.messages.records.config import ConfigRecord
from pybroker.telemetry.client import Client, Push
from pybroker.telemetry.receivers import Receivers
from pybroker.telemetry.service import ZERO, Given, RefusedError, Telemetry

NOBODY = Client(ZERO, "app", "n", "v", "127.0.0.1", 1, "User:ANONYMOUS")


class Service:
    """Telemetry with a clock that is set, and a receiver that keeps what comes, or fails."""

    def __init__(self) -> None:
        self.now = 1_000_000
        self.failure: Exception | None = None
        self.pushes: list[Push] = []
        self.image: MetadataImage = EMPTY_IMAGE
        self.receivers = Receivers([self])
        self.telemetry = Telemetry(self.receivers, None, max_bytes=100, now_ms=lambda: self.now)
        self.subscribe("s", metrics="a.", **{"interval.ms": "1000"})

    def receive(self, push: Push) -> None:
        if self.failure is not None:
            raise self.failure
        self.pushes.append(push)

    def subscribe(self, resource: str, **texts: str | None) -> None:
        delta = MetadataDelta(self.image)
        for key, value in texts.items():
            delta.apply(
                ConfigRecord(resource_type=CLIENT_METRICS_RESOURCE, resource_name=resource, name=key, value=value)
            )
        self.image = delta.build()
        self.telemetry.publish(delta, self.image)

    def query(self, client: Client = NOBODY) -> Given:
        return self.telemetry.query(client, 5)

    async def push(
        self,
        given: Given,
        payload: bytes = b"x",
        *,
        subscription: int | None = None,
        codec: int = 0,
        last: bool = False,
    ) -> None:
        client = NOBODY._replace(instance_id=given.instance_id)
        named = given.requested.subscription_id if subscription is None else subscription
        await self.telemetry.push(client, 5, named, payload, codec, is_last=last)

    def again(self, given: Given) -> Given:
        return self.query(NOBODY._replace(instance_id=given.instance_id))


@pytest.fixture
def service() -> Iterator[Service]:
    made = Service()
    yield made
    made.receivers.close()


def refused(code: ErrorCode, match: str | None = None) -> pytest.RaisesExc[RefusedError]:
    return pytest.raises(RefusedError, match=match, check=lambda error: error.code == code)


async def test_a_client_without_id_gets_one_and_pushes(service: Service) -> None:
    given, other = service.query(), service.query()
    assert given.instance_id not in (ZERO, other.instance_id)
    assert given.requested[1:] == (("a.",), 1000)
    await service.push(given)
    await service.push(other, b"")
    assert [(push.payload, push.interval_ms) for push in service.pushes] == [(b"x", 1000)], "nothing is no push"
    assert service.telemetry.counts()[:4] == (2, 0, 0, 1)


async def test_who_comes_too_early_is_throttled(service: Service) -> None:
    given = service.query()
    early = "arrived before the next push interval time"
    with refused(ErrorCode.THROTTLING_QUOTA_EXCEEDED, early):
        service.again(given)
    await service.push(given)
    with refused(ErrorCode.THROTTLING_QUOTA_EXCEEDED, early):
        await service.push(given)
    assert service.telemetry.counts().throttle == 2
    service.now += 1000
    await service.push(given)
    await service.push(given, last=True)
    with refused(ErrorCode.INVALID_REQUEST, "sent the previous request with state terminating to TRUE"):
        await service.push(given)


async def test_a_changed_subscription_is_asked_for_at_once(service: Service) -> None:
    given = service.query()
    service.subscribe("t", metrics="b.")
    with refused(ErrorCode.UNKNOWN_SUBSCRIPTION_ID):
        await service.push(given)
    changed = service.again(given)
    assert changed.requested.metrics == ("a.", "b.")
    service.now += 1000  # as in Kafka: a push that was refused counts, too
    await service.push(changed)
    service.subscribe("s", metrics=None, **{"interval.ms": None})
    assert service.again(given).requested[1:] == (("b.",), 300_000)


async def test_an_outdated_subscription_and_a_codec_are_mended_by_asking_again(service: Service) -> None:
    given = service.query()
    with refused(ErrorCode.UNKNOWN_SUBSCRIPTION_ID, "Unknown client subscription id"):
        await service.push(given, subscription=given.requested.subscription_id ^ 1)
    assert service.again(given) == given
    service.now += 1000
    with refused(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, r"Unknown compression type \[5\]"):
        await service.push(given, codec=5)
    assert service.again(given) == given
    assert service.telemetry.counts().unknown_subscription_request == 1


@pytest.mark.parametrize("instance_id", [ZERO, bytes(15) + b"\1"])
async def test_an_id_that_is_none_cannot_push(service: Service, instance_id: bytes) -> None:
    with refused(ErrorCode.INVALID_REQUEST, "invalid client instance id"):
        await service.push(service.query()._replace(instance_id=instance_id))
    assert service.pushes == []


async def test_what_is_too_large_or_no_payload_is_refused(service: Service) -> None:
    given = service.query()
    with refused(ErrorCode.TELEMETRY_TOO_LARGE, "larger than the maximum allowed size"):
        await service.push(given, bytes(101))
    service.now += 1000
    with refused(ErrorCode.INVALID_RECORD):
        await service.push(given, b"no gzip", codec=1)
    service.now, service.failure = service.now + 1000, RuntimeError("no")
    with refused(ErrorCode.INVALID_RECORD, "no"):
        await service.push(given)
    assert service.telemetry.counts()[3:] == (0, 2)


async def test_a_client_is_forgotten_with_its_connection(service: Service) -> None:
    given = service.query()
    service.telemetry.forget(5)
    assert service.telemetry.counts().instance_count == 0
    assert service.again(given) == given, "it comes for the first time"
