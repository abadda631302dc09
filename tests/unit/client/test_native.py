"""The engine's own encodings, in every version, against the declared protocol's codec."""

from __future__ import annotations

import runpy
import struct
import sys
import time
from types import ModuleType

import pytest

import pybroker._native as extension
from pybroker.client import KeyedStamps, LoadGenerator, native
from pybroker.client.administration.topics import EARLIEST, TopicPartition
from pybroker.client.consuming.fetcher import Fetcher
from pybroker.client.errors import LoadUnavailableError, UnservedApiError
from pybroker.client.producing.producer import Producer
from tests.support.scripted_broker import SERVED, ScriptedBroker

PRODUCE, FETCH, LIST_OFFSETS, METADATA, API_VERSIONS, INIT_PRODUCER_ID = 0, 1, 2, 3, 18, 22
PARTITION = TopicPartition("t", 0)


def round_trip(broker: ScriptedBroker) -> list[bytes | None]:
    with Producer(broker.bootstrap_servers) as producer:
        for number in range(3):
            producer.send("t", b"value %d" % number, b"key")
    with Fetcher(broker.bootstrap_servers) as fetcher:
        fetcher.assign({PARTITION: EARLIEST})
        return [record.value for record in fetcher.poll(60)]


SPOKEN = [(key, v) for key, (first, last) in SERVED.items() if key <= INIT_PRODUCER_ID for v in range(first, last + 1)]
"""What the engine speaks. ApiVersions goes from 3 straight to 0, which every broker serves."""


@pytest.mark.parametrize(("key", "version"), [pair for pair in SPOKEN if pair not in {(18, 1), (18, 2)}])
def test_every_version_that_is_spoken_is_understood(key: int, version: int) -> None:
    served = {**SERVED, key: (version, version) if key != API_VERSIONS else (0, version)}
    with ScriptedBroker(served=served) as broker:
        assert round_trip(broker) == [b"value 0", b"value 1", b"value 2"]
        assert version in broker.seen[key]


@pytest.mark.parametrize(("key", "name"), [(PRODUCE, "Produce"), (INIT_PRODUCER_ID, "InitProducerId")])
def test_a_broker_that_is_too_new_for_a_producer_has_an_error_of_its_own(key: int, name: str) -> None:
    with ScriptedBroker(served={**SERVED, key: (100, 101)}) as broker, Producer(broker.bootstrap_servers) as producer:
        delivery = producer.send("t", b"x")
        with pytest.raises(UnservedApiError, match=rf"serves {name} in versions 100-101; this client speaks"):
            delivery.result()


@pytest.mark.parametrize(("key", "name"), [(FETCH, "Fetch"), (LIST_OFFSETS, "ListOffsets")])
def test_a_broker_that_is_too_new_for_a_fetcher_has_an_error_of_its_own(key: int, name: str) -> None:
    with ScriptedBroker(served={**SERVED, key: (100, 101)}) as broker, Fetcher(broker.bootstrap_servers) as fetcher:
        fetcher.assign({PARTITION: 0 if key == FETCH else EARLIEST})
        with pytest.raises(UnservedApiError, match=rf"serves {name} in versions 100-101"):
            fetcher.poll(60)


def test_stamped_records_show_who_made_them_in_which_order_and_when_they_were_due() -> None:
    due_us = time.time_ns() // 1000 - 2_000_000
    with ScriptedBroker() as broker:
        with Producer(broker.bootstrap_servers) as producer:
            LoadGenerator(producer).send_stamped("t", 0, 7, 40, 30, 3, (due_us, 1000.0))
            producer.flush()
            tally, latencies = LoadGenerator(producer).take_interval(0)
            assert producer.outcomes() == [("t", 0, 3, 0)]
        assert (tally.records, tally.bytes, latencies.count) == (3, 90, 3)
        assert latencies.at_quantile(0.01) >= 1_900_000, "latency counts from when a record is due"
        with Fetcher(broker.bootstrap_servers) as fetcher:
            fetcher.assign({PARTITION: EARLIEST})
            stamps = [struct.unpack(">QQq", record.value[:24]) for record in fetcher.poll(60) if record.value]
            assert stamps == [(7, 40 + number, due_us + 1000 * number) for number in range(3)]
            fetcher.seek(PARTITION, 0)
            while fetcher.native.count(10, True) != (3, 90):
                pass
            arrived, latencies = fetcher.native.take_arrivals()
            assert (arrived.records, arrived.bytes, arrived.failed, latencies.count) == (3, 90, 0, 3)
            assert arrived.latency_max_us >= 2_000_000
            assert fetcher.native.take_arrivals()[0].records == 0


def test_values_without_room_for_a_stamp_are_counted_apart() -> None:
    with ScriptedBroker() as broker:
        with Producer(broker.bootstrap_servers) as producer:
            producer.send("t", b"x" * 23)
        with Fetcher(broker.bootstrap_servers) as fetcher:
            fetcher.assign({PARTITION: EARLIEST})
            while fetcher.native.count(10, True) is None:
                pass
            arrived, latencies = fetcher.native.take_arrivals()
            assert (arrived.records, arrived.failed, latencies.count) == (1, 1, 0)


@pytest.mark.parametrize(("partition", "size", "reported"), [(-1, 100, "name one"), (0, 23, "23 bytes have no room")])
def test_a_stamp_needs_a_partition_and_room(partition: int, size: int, reported: str) -> None:
    with Producer("127.0.0.1:1") as producer, pytest.raises(ValueError, match=reported):
        LoadGenerator(producer).send_stamped("t", partition, 0, 0, size, 1)


def test_keyed_records_are_stamped_by_the_partition_that_their_key_leads_to() -> None:
    with ScriptedBroker() as broker:
        with Producer(broker.bootstrap_servers) as producer:
            KeyedStamps(5, 1.0, seed=3).send(producer, "t", 9, 40, 200)
            producer.flush()
        with Fetcher(broker.bootstrap_servers) as fetcher:
            fetcher.assign({PARTITION: EARLIEST})
            records = fetcher.poll(60)
        assert [struct.unpack(">QQ", (each.value or b"")[:16]) for each in records] == [(9, n) for n in range(200)]
        assert {each.key for each in records} == {b"0", b"1", b"2", b"3", b"4"}


@pytest.mark.parametrize(("keys", "skew"), [(0, 1.0), (5, -1.0), (5, float("nan"))])
def test_keys_without_sense_are_refused(keys: int, skew: float) -> None:
    with pytest.raises(ValueError, match="keys must be at least 1, and skew from 0 to 100"):
        KeyedStamps(keys, skew, 0)


def test_an_extension_without_load_generation_says_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    without = ModuleType("pybroker._native")
    load = {"KeyedStamps", "LatencyHistogram", "LoadGenerator", "Tally"}
    vars(without).update({name: value for name, value in vars(extension).items() if name not in load})
    monkeypatch.setitem(sys.modules, "pybroker._native", without)
    gateway = runpy.run_path(native.__file__)
    assert gateway["Producer"] is native.Producer
    for name in sorted(load):
        with pytest.raises(LoadUnavailableError, match="built without load generation"):
            gateway[name]()
