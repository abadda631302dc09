"""What a fetcher reads: from where, in which order, and how it can be moved."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from pybroker.client.administration.admin import Admin
from pybroker.client.administration.topics import EARLIEST, LATEST, NewTopic, TopicPartition
from pybroker.client.consuming.fetcher import AsyncFetcher, Fetcher, Record
from pybroker.client.errors import BrokerError, ClientError, ClosedError, SettingError
from pybroker.client.producing.producer import Producer
from pybroker.testing import Broker

FIRST, SECOND = TopicPartition("t", 0), TopicPartition("t", 1)


@pytest.fixture(scope="module")
def servers() -> Iterator[str]:
    """A broker with topic `t`: partition 0 holds 0..999, partition 1 is empty."""
    with Broker() as broker:
        with Admin(broker.bootstrap_servers) as admin:
            admin.create_topics([NewTopic("t", 2, 1)])
            admin.wait_for_leaders("t")
        with Producer(broker.bootstrap_servers, {"batch.size": 2000}) as producer:
            for number in range(1000):
                producer.send(
                    "t", b"%d" % number, key=b"k" if number % 2 else None, partition=0, timestamp_ms=number + 1
                )
        yield broker.bootstrap_servers


def read(fetcher: Fetcher, count: int) -> list[Record]:
    records: list[Record] = []
    while len(records) < count:
        arrived = fetcher.poll(60)
        assert arrived, f"only {len(records)} of {count} records came"
        records += arrived
    return records


def poll_for_ever(fetcher: Fetcher) -> None:
    while True:
        fetcher.poll(1)


def test_every_record_comes_once_and_in_order(servers: str) -> None:
    with Fetcher(servers) as fetcher:
        fetcher.assign({FIRST: EARLIEST})
        records = read(fetcher, 1000)
        assert [int(r.value or b"") for r in records] == [r.offset for r in records] == list(range(1000))
        assert [r.timestamp_ms for r in records] == list(range(1, 1001))
        assert (records[0].key, records[1].key, records[0].partition, records[0].topic) == (None, b"k", 0, "t")


def test_poll_hands_out_at_most_what_it_is_asked_for(servers: str) -> None:
    with Fetcher(servers, {"auto.offset.reset": "earliest"}) as fetcher:
        fetcher.assign([FIRST])
        assert [r.offset for r in fetcher.poll(60, 3)] == [0, 1, 2]
        assert fetcher.positions()[FIRST] == 3
        assert [r.offset for r in fetcher.poll(60, 2)] == [3, 4]


def test_reading_begins_at_any_offset_also_inside_a_batch(servers: str) -> None:
    with Fetcher(servers) as fetcher:
        fetcher.assign({FIRST: 517})
        assert [r.offset for r in fetcher.poll(60, 2)] == [517, 518]
        fetcher.seek(FIRST, 17)
        assert fetcher.poll(60, 1)[0].offset == 17
        fetcher.seek(FIRST, EARLIEST)
        assert fetcher.poll(60, 1)[0].offset == 0


def test_a_seek_of_one_partition_loses_nothing_of_another(servers: str) -> None:
    with Fetcher(servers) as fetcher:
        fetcher.assign({FIRST: EARLIEST, SECOND: LATEST})
        assert fetcher.poll(60, 10)[-1].offset == 9
        fetcher.seek(SECOND, LATEST)
        assert [r.offset for r in read(fetcher, 990)] == list(range(10, 1000))
        with pytest.raises(ClientError, match="is not assigned"):
            fetcher.seek(TopicPartition("t", 7), 0)


def test_from_the_end_only_new_records_come(servers: str) -> None:
    with Fetcher(servers) as fetcher, Producer(servers) as producer:
        fetcher.assign({SECOND: LATEST})
        assert fetcher.poll(0.05) == []
        written = producer.send("t", b"new", partition=1, headers=[("h", b"1"), ("none", None)]).result()
        (record,) = fetcher.poll(60)
        assert (record.offset, record.value) == (written.offset, b"new")
        assert list(record.headers) == [("h", b"1"), ("none", None)]


def test_an_offset_out_of_range_goes_where_the_reset_says(servers: str) -> None:
    with Fetcher(servers, {"auto.offset.reset": "earliest"}) as fetcher:
        fetcher.assign({FIRST: 5_000})
        assert fetcher.poll(60, 1)[0].offset == 0
    with Fetcher(servers, {"auto.offset.reset": "none"}) as fetcher:
        fetcher.assign({FIRST: 5_000})
        with pytest.raises(BrokerError, match=r'topic "t" partition 0: OFFSET_OUT_OF_RANGE'):
            fetcher.poll(60)
        with pytest.raises(SettingError, match="no start offset"):
            fetcher.assign([FIRST])


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
def test_compressed_batches_come_back(servers: str, codec: str) -> None:
    topic = f"c-{codec}"
    with Admin(servers) as admin:
        admin.create_topics([NewTopic(topic, 1, 1)])
        admin.wait_for_leaders(topic)
    with Producer(servers, {"compression.type": codec}) as producer:
        for number in range(500):
            producer.send(topic, b"value %d" % number * 10)
    with Fetcher(servers) as fetcher:
        fetcher.assign({TopicPartition(topic, 0): EARLIEST})
        assert [r.value for r in read(fetcher, 500)] == [b"value %d" % number * 10 for number in range(500)]


def test_counting_reads_what_polling_reads(servers: str) -> None:
    with Fetcher(servers) as fetcher:
        fetcher.assign({FIRST: 400})
        records = size = 0
        while records < 600:
            counted = fetcher.native.count(10)
            assert counted is not None
            records, size = records + counted[0], size + counted[1]
        assert (records, size) == (600, sum(len(b"%d" % n) + n % 2 for n in range(400, 1000)))


def test_a_closed_fetcher_says_so(servers: str) -> None:
    fetcher = Fetcher(servers)
    fetcher.assign({FIRST: EARLIEST})
    fetcher.close()
    with pytest.raises(ClosedError, match="the fetcher is closed"):
        poll_for_ever(fetcher)  # what had arrived before is still handed out


async def test_the_asyncio_face_waits_without_blocking(servers: str) -> None:
    async with AsyncFetcher(servers) as fetcher:
        fetcher.assign({FIRST: 990})
        assert [r.offset for r in await fetcher.poll(60)] == list(range(990, 1000))
        assert await fetcher.poll(0.05) == []
