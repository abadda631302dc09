"""Client quotas as records set them and take them away."""

from __future__ import annotations

from pybroker.metadata.quotas import EMPTY, ClientQuotasDelta, quota_entity
from pybroker.protocol.messages.records.client_quota import ClientQuotaRecord, EntityData


def record(*parts: tuple[str, str | None], key: str, value: float = 0.0, remove: bool = False) -> ClientQuotaRecord:
    entity = [EntityData(entity_type=kind, entity_name=name) for kind, name in parts]
    return ClientQuotaRecord(entity=entity, key=key, value=value, remove=remove)


def test_an_entity_is_the_same_in_whatever_order_its_parts_are_named() -> None:
    both = quota_entity([("user", "ann"), ("client-id", None)])
    assert both == quota_entity([("client-id", None), ("user", "ann")]) == (("client-id", None), ("user", "ann"))


def test_limits_come_change_and_go() -> None:
    image = EMPTY.apply(record(("user", "ann"), ("client-id", None), key="producer_byte_rate", value=5.0))
    assert image.of(("client-id", None), ("user", "ann")) == {"producer_byte_rate": 5.0}
    assert not image.of(("user", "ann"))
    image = image.apply(record(("user", None), key="request_percentage", value=50.0))
    image = image.apply(record(("user", "ann"), ("client-id", None), key="producer_byte_rate", value=6.0))
    assert image.of(("user", "ann"), ("client-id", None)) == {"producer_byte_rate": 6.0}
    image = image.apply(record(("user", "ann"), ("client-id", None), key="producer_byte_rate", remove=True))
    assert list(image.by_entity) == [(("user", None),)]


def test_what_is_not_there_may_be_taken_away() -> None:
    assert EMPTY.apply(record(("ip", None), key="connection_creation_rate", remove=True)) == EMPTY


def test_a_delta_becomes_another_image_and_keeps_what_is_the_same() -> None:
    old = EMPTY.apply(record(("user", "a"), key="x", value=1.0)).apply(record(("user", "b"), key="x", value=1.0))
    new = EMPTY.apply(record(("user", "b"), key="x", value=1.0)).apply(record(("user", "c"), key="x", value=1.0))
    delta = ClientQuotasDelta(old)
    delta.become(new)
    assert set(delta.changed) == {(("user", "a"),), (("user", "c"),)}
    built = delta.build()
    assert built == new
    assert built.of(("user", "b")) is old.of(("user", "b"))
    assert ClientQuotasDelta(old).build() is old
