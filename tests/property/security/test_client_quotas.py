"""Which quota binds a client, and whose clients share it, against Kafka's own quota manager."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pybroker.metadata.quotas import CLIENT_ID, USER, ClientQuotasImage, quota_entity
from pybroker.security.quotas import PRODUCER_BYTE_RATE, limits_of
from tests.support import java_oracle
from tests.support.java_oracle import JavaOracle

pytestmark = pytest.mark.java

DEFAULT = ""
names = st.sampled_from(["ann", "bob & co", DEFAULT])
entities = st.tuples(st.none() | names, st.none() | names).filter(lambda entity: entity != (None, None))
clients = st.tuples(st.sampled_from(["ann", "bob & co", "eve"]), st.sampled_from(["ann", "bob & co", "eve", ""]))


@pytest.fixture(scope="module")
def oracle() -> Iterator[JavaOracle]:
    with java_oracle.running("QuotaOracle") as running:
        yield running


@settings(max_examples=150, deadline=None)
@given(quotas=st.lists(entities, unique=True, max_size=12), querying=st.lists(clients, min_size=1, max_size=8))
def test_the_quota_that_binds_a_client_is_the_one_that_kafka_finds(
    oracle: JavaOracle, quotas: list[tuple[str | None, str | None]], querying: list[tuple[str, str]]
) -> None:
    by_entity, theirs = {}, []
    for rate, (user, client) in enumerate(quotas, 1):
        parts = [(kind, name or None) for kind, name in ((USER, user), (CLIENT_ID, client)) if name is not None]
        by_entity[quota_entity(parts)] = {PRODUCER_BYTE_RATE: float(rate)}
        theirs.append({"user": user, "client": client, "rate": rate})
    image = ClientQuotasImage(by_entity)
    found = oracle.query("limits", quotas=theirs, clients=querying)["limits"]
    for (user, client), (rate, by_user, by_client) in zip(querying, found, strict=True):
        limit = limits_of(image, user, client).produce
        if rate is None:
            assert limit is None, (user, client)
            continue
        assert limit is not None, (user, client)
        shared = (limit.user or "", limit.client_id or "")
        assert (limit.per_second, *shared) == (rate, by_user.replace("%20%26%20", " & "), by_client), (user, client)
