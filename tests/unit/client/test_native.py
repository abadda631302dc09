"""The engine's own encodings, in every version, against the declared protocol's codec."""

from __future__ import annotations

import pytest

from pybroker.client.errors import UnservedApiError
from pybroker.client.fetcher import Fetcher
from pybroker.client.producer import Producer
from pybroker.client.topics import EARLIEST, TopicPartition
from tests.support.scripted_broker import SERVED, ScriptedBroker

PRODUCE, FETCH, LIST_OFFSETS, METADATA, API_VERSIONS, INIT_PRODUCER_ID = 0, 1, 2, 3, 18, 22
PARTITION = TopicPartition("t", 0)


def round_trip(broker: ScriptedBroker) -> list[bytes | None]:
    with Producer(broker.bootstrap_servers) as producer:
        for number in range(3):
            producer.send("t", b"value %d" % number, b"key")
    with Fetcher(broker.bootstrap_servers) as fetcher:
        fetcher.assign({PARTITION: EARLIEST})
        return [record.value for record in fetcher.poll(10)]


SPOKEN = [(key, v) for key, (first, last) in SERVED.items() for v in range(first, last + 1)]
"""ApiVersions goes from 3 straight to 0, which every broker serves."""


@pytest.mark.parametrize(("key", "version"), [pair for pair in SPOKEN if pair not in {(18, 1), (18, 2)}])
def test_every_version_that_is_spoken_is_understood(key: int, version: int) -> None:
    served = {**SERVED, key: (version, version) if key != API_VERSIONS else (0, version)}
    with ScriptedBroker(served=served) as broker:
        assert round_trip(broker) == [b"value 0", b"value 1", b"value 2"]
        assert version in broker.seen[key]


@pytest.mark.parametrize(("key", "name"), [(PRODUCE, "Produce"), (INIT_PRODUCER_ID, "InitProducerId")])
def test_a_broker_that_is_too_new_for_a_producer_is_told_apart(key: int, name: str) -> None:
    with ScriptedBroker(served={**SERVED, key: (100, 101)}) as broker, Producer(broker.bootstrap_servers) as producer:
        delivery = producer.send("t", b"x")
        with pytest.raises(UnservedApiError, match=rf"serves {name} in versions 100-101; this client speaks"):
            delivery.result()


@pytest.mark.parametrize(("key", "name"), [(FETCH, "Fetch"), (LIST_OFFSETS, "ListOffsets")])
def test_a_broker_that_is_too_new_for_a_fetcher_is_told_apart(key: int, name: str) -> None:
    with ScriptedBroker(served={**SERVED, key: (100, 101)}) as broker, Fetcher(broker.bootstrap_servers) as fetcher:
        fetcher.assign({PARTITION: 0 if key == FETCH else EARLIEST})
        with pytest.raises(UnservedApiError, match=rf"serves {name} in versions 100-101"):
            fetcher.poll(10)
