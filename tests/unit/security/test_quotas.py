"""Which quotas bind a client, and the one place that says how long it is to wait."""

from __future__ import annotations

import pytest

from pybroker.handlers import metadata
from pybroker.metadata.quotas import CLIENT_ID, USER, ClientQuotasImage, QuotaEntity, quota_entity
from pybroker.net import pipeline
from pybroker.security.quotas import (
    CONSUMER_BYTE_RATE,
    PRODUCER_BYTE_RATE,
    REQUEST_PERCENTAGE,
    Client,
    ClientLimits,
    Limit,
    RequestTime,
    limits_of,
    throttle_time_ms,
)
from pybroker.testing import Broker
from tests.support.wire import Wire

ALICE, EVERY_USER = (USER, "alice"), (USER, None)
APP, EVERY_CLIENT = (CLIENT_ID, "app"), (CLIENT_ID, None)
# Kafka's order, and who shares a quota of each.
LEVELS: list[tuple[QuotaEntity, tuple[str | None, str | None]]] = [
    ((ALICE, APP), ("alice", "app")),
    ((ALICE, EVERY_CLIENT), ("alice", "app")),
    ((ALICE,), ("alice", None)),
    ((EVERY_USER, APP), ("alice", "app")),
    ((EVERY_USER, EVERY_CLIENT), ("alice", "app")),
    ((EVERY_USER,), ("alice", None)),
    ((APP,), (None, "app")),
    ((EVERY_CLIENT,), (None, "app")),
]


def image(*entities: QuotaEntity, key: str = PRODUCER_BYTE_RATE) -> ClientQuotasImage:
    return ClientQuotasImage({quota_entity(entity): {key: float(at)} for at, entity in enumerate(entities, 1)})


@pytest.mark.parametrize("first", range(len(LEVELS)))
def test_the_most_specific_entity_with_a_quota_binds_and_its_clients_share_it(first: int) -> None:
    quotas = image(*(entity for entity, _ in LEVELS[first:]))
    assert limits_of(quotas, "alice", "app").produce == Limit(1.0, *LEVELS[first][1])


def test_each_key_has_a_precedence_of_its_own() -> None:
    quotas = ClientQuotasImage(
        {
            quota_entity([ALICE]): {PRODUCER_BYTE_RATE: 1.0},
            quota_entity([EVERY_USER]): {PRODUCER_BYTE_RATE: 2.0, REQUEST_PERCENTAGE: 3.0},
            quota_entity([APP]): {CONSUMER_BYTE_RATE: 4.0},
        }
    )
    expected = ClientLimits(Limit(1.0, "alice", None), Limit(4.0, None, "app"), Limit(3.0, "alice", None))
    assert limits_of(quotas, "alice", "app") == expected
    assert limits_of(quotas, "bob", "other") == ClientLimits(Limit(2.0, "bob", None), None, Limit(3.0, "bob", None))


def test_quotas_of_others_and_of_client_ids_that_are_not_said_bind_nobody() -> None:
    nobody = ClientLimits(None, None, None)
    assert limits_of(image((ALICE, APP), (ALICE,), (APP,)), "bob", "other") == nobody
    assert limits_of(image((ALICE, EVERY_CLIENT), (EVERY_CLIENT,)), "alice", "") == nobody
    assert limits_of(ClientQuotasImage(), "alice", "app") == nobody


def test_the_time_of_a_request_counts_once_and_not_while_it_waits() -> None:
    counted, now = [], iter([100, 140, 1000, 1007])

    def count(nanoseconds: int) -> int:
        counted.append(nanoseconds)
        return 9

    time = RequestTime(count, lambda: next(now))
    time.begin()
    time.pause()
    time.pause()
    time.begin()
    assert (time.finish(), time.finish(), counted) == (9, 9, [47])


def test_answers_of_all_kinds_say_how_long_their_client_is_to_wait(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    def throttle(client: Client) -> int:
        assert throttle_time_ms(client) == 0
        return 125

    with Wire(broker.bootstrap_servers, client_id="hasty") as wire:
        assert wire.call("Metadata", 12, topics=None).throttle_time_ms == 0
        for module in (pipeline, metadata):
            monkeypatch.setattr(module, "throttle_time_ms", throttle)
        responses = [
            wire.call("Metadata", 12, topics=None),
            wire.call("ListGroups", 4),
            wire.call("Heartbeat", 4, group_id="", generation_id=1, member_id="m"),
            wire.call("DescribeConfigs", 4, resources=[]),
        ]
    assert [response.throttle_time_ms for response in responses] == [125] * len(responses)
