from __future__ import annotations

from typing import Any, NamedTuple, cast

import pytest

from pybroker.metadata.image import MetadataImage
from pybroker.metadata.quotas import CLIENT_ID, USER, ClientQuotasImage
from pybroker.net import quotas as of_net
from pybroker.net.native import DataPlane
from pybroker.net.quotas import Quotas, QuotaWindow


class Requested(NamedTuple):
    connection: int
    client_id: str
    principal: tuple[str, str] = ("User", "alice")


class Origin(NamedTuple):
    connection: int
    api_key: int


class Image(NamedTuple):
    quotas: ClientQuotasImage


class Played:
    """Quotas, and what they have said to a data plane."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.reported: list[Any] = []
        monkeypatch.setattr(of_net, "set_quotas", lambda _plane, **settings: self.reported.append(settings))
        monkeypatch.setattr(
            of_net, "set_client_quotas", lambda _plane, *of, **limits: self.reported.append((*of, limits))
        )
        monkeypatch.setattr(of_net, "count_request_time", lambda _plane, connection, spent: connection * 10 + spent)
        self.quotas = Quotas(cast("DataPlane", None), QuotaWindow(5, 2))

    def publish(self, image: ClientQuotasImage) -> None:
        self.quotas.publish(cast("Any", None), cast("MetadataImage", Image(image)))


def test_who_has_no_quotas_that_clients_can_have_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    played = Played(monkeypatch)
    played.publish(ClientQuotasImage())
    played.publish(ClientQuotasImage({(("ip", None),): {"connection_creation_rate": 1.0}}))
    assert played.reported == []


def test_changed_quotas_have_another_version_and_none_have_none(monkeypatch: pytest.MonkeyPatch) -> None:
    played = Played(monkeypatch)
    first = ClientQuotasImage({((USER, "alice"),): {"producer_byte_rate": 7.0}})
    for image in (first, first, ClientQuotasImage({((USER, "alice"),): {"producer_byte_rate": 8.0}}), first):
        played.publish(image)
    played.publish(ClientQuotasImage())
    played.publish(ClientQuotasImage({(("ip", None),): {"connection_creation_rate": 1.0}}))
    assert [reported["version"] for reported in played.reported] == [1, 2, 3, 0]
    assert played.reported[0] | {"version": 0} == {
        "version": 0,
        "samples": 5,
        "sample_ms": 2000,
        "remembered": 65_536,
        "forgotten_after_ms": 3_600_000,
    }


def test_a_client_is_answered_by_the_quotas_in_force(monkeypatch: pytest.MonkeyPatch) -> None:
    played = Played(monkeypatch)
    played.publish(ClientQuotasImage({((CLIENT_ID, "app"), (USER, None)): {"consumer_byte_rate": 7.0}}))
    played.quotas.respond(cast("Any", Requested(3, "app")))
    played.quotas.respond(cast("Any", Requested(4, "")))
    assert played.reported[1:] == [
        (3, 1, {"produce": None, "fetch": (7.0, "alice", "app"), "request": None}),
        (4, 1, {"produce": None, "fetch": None, "request": None}),
    ]


def test_time_counts_where_a_quota_is_about_it_but_for_what_brokers_ask(monkeypatch: pytest.MonkeyPatch) -> None:
    played = Played(monkeypatch)
    played.quotas.begin(frozenset({56}))
    played.publish(ClientQuotasImage({((USER, "alice"),): {"producer_byte_rate": 7.0}}))
    assert played.quotas.time_of(Origin(1, 3)) is None
    played.publish(ClientQuotasImage({((USER, "bob"),): {"request_percentage": 7.0}}))
    assert played.quotas.time_of(Origin(1, 56)) is None
    time = played.quotas.time_of(Origin(9, 3))
    assert time is not None
    assert time.finish() > 90, "the connection's time was counted"
