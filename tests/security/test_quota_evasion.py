"""A user's quota binds the user: neither many client ids nor many connections make more of it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from pybroker.client.administration.admin import Admin
from tests.conformance.sasl_clients import NONE, handshake, token
from tests.security.test_confused_rights import ALLOW, LITERAL, TOPIC, entries, plain, topics
from tests.support.batches import batch_of
from tests.support.conditions import wait_until
from tests.support.secured_server import PASSWORD, At
from tests.support.wire import Wire, produce, produced

__all__ = ["plain"]  # a fixture

NAME, WRITE = "evasion", 4
RATE = 20_000
BATCH = batch_of(b"x" * 60_000)
"""A third of what the window of ten seconds allows."""


@pytest.fixture
def limited(at: At, plain: Wire) -> Iterator[None]:
    """alice may write a topic, so many bytes in a second."""
    topics(plain, NAME)
    entries(plain, (TOPIC, NAME, LITERAL, WRITE, ALLOW))
    with Admin(at("PLAINTEXT")) as admin:
        admin.alter_client_quotas({"user": "alice"}, {"producer_byte_rate": RATE})
        wait_until(lambda: admin.describe_client_quotas({"user": "alice"}), within=60, what="the quota is known")
        yield
        admin.alter_client_quotas({"user": "alice"}, {"producer_byte_rate": None})


def throttled_ms(at: At, client_id: str, batch: bytes = BATCH) -> int:
    """How long a connection of alice's with a client id is to wait for a batch."""
    with Wire(at("SASL_PLAINTEXT"), client_id=client_id) as wire:
        handshake(wire, "PLAIN")
        assert token(wire, f"\0alice\0{PASSWORD}".encode()).error_code == NONE
        response = wire.query(produce(NAME, batch))
        assert produced(response).error_code == NONE
        return int(response.throttle_time_ms)


def test_many_client_ids_have_one_quota_between_them(at: At, limited: None) -> None:
    wait_until(lambda: throttled_ms(at, "first") > 0, within=60, what="the quota is in force and used")
    waits = [throttled_ms(at, f"another-{number}") for number in range(8)]
    assert all(wait > 0 for wait in waits), waits
    assert sorted(waits) == waits, "each adds to what the others have used"
